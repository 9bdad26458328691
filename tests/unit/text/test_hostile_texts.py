"""Texts made to hurt their readers: four times the text takes about four times as long."""

from collections.abc import Callable
from contextlib import suppress
from itertools import product
from math import inf
from time import thread_time

import pytest

from agent.answers.addresses import find_unexplained_addresses
from agent.answers.answer_without_model import answer_background_prompt
from agent.answers.derived.tables import read_tables
from agent.answers.figures import find_unexplained_figures
from agent.answers.names import find_unexplained_names
from agent.core.errors import PlanInvalidError
from agent.llm.prompts import format_block
from agent.net.client import Page
from agent.planning.parse import parse_reply
from agent.planning.rounds.part_texts import select_parts
from agent.planning.rules import find_unknown_part
from agent.policy.guardrails.message_labels import split_attachments
from agent.text.dates import find_dates
from agent.text.follow_up import list_names, read_alone
from agent.text.own_words import OwnWords
from agent.text.quantifiers import asks_for_each
from agent.text.question_parts import split_joined_questions, split_phrases
from agent.text.requested_form import remove_form, split_questions
from agent.text.superscripts import write_fractions
from agent.text.unit_labels import read_input_units
from gateway.features.documents.engine.grounded_answers.answer_units import parse_answer
from gateway.features.documents.engine.ingest.coverage import mail_source, text_source
from gateway.features.incident.tools.actions import extract_action_items
from mcp_tools.builtin.request_commands import BEFORE_FACT
from mcp_tools.builtin.web_fetch import extract
from mcp_tools.client.sanitize import sanitize_text

READERS: dict[str, Callable[[str], object]] = {
    "form": remove_form,
    "questions": split_questions,
    "joined": split_joined_questions,
    "phrases": split_phrases,
    "figures": lambda text: find_unexplained_figures(text, text),
    "commands": lambda text: find_unknown_part(text[:4_000], ()),
    "parts": lambda text: select_parts([text], (), lambda part: False),
    "names": lambda text: find_unexplained_names(text, "Anna Berg"),
    "names beside": lambda text: find_unexplained_names(f"Cilla Dahl {text}", "Anna Berg"),
    "for each": lambda text: asks_for_each(text, "output a list"),
    "mail addresses": lambda text: find_unexplained_addresses("Write to ann@example.org.", text),
}
FRAMES = ("what is a{}and what is b?", "please output{}x", "a?{}b", "give me{}a list", "in an{}x", "a,{}b")


UNITS = (" ", "\n", "\u00a0", "ÅB", "A-", "-", "_", "and what ", ", ", "1+1=2 ", "1")


@pytest.mark.parametrize("reader", READERS)
def test_time_grows_with_the_text_and_no_faster(reader: str) -> None:
    def seconds(frame: str, unit: str, size: int) -> float:
        text = frame.format((unit * size)[:size])
        started = thread_time()
        READERS[reader](text)
        return thread_time() - started

    for frame, unit in product(FRAMES, UNITS):
        READERS[reader](frame.format(unit))
        large = seconds(frame, unit, 4_000)
        assert large < 0.035 or large < 9 * seconds(frame, unit, 1_000) + 0.035, (frame, unit)


PLAIN: dict[str, tuple[Callable[[str], object], str]] = {
    "conjunctions": (read_alone, "and "),
    "quotes without a date": (find_dates, "> "),
    "lines without a date": (find_dates, "\n"),
    "marks of tags without a name": (split_attachments, "<"),
}


@pytest.mark.parametrize(("read", "unit"), PLAIN.values(), ids=PLAIN)
def test_half_a_megabyte_of_nothing_is_passed_over(read: Callable[[str], object], unit: str) -> None:
    text = unit * (500_000 // len(unit))
    read(unit)
    started = thread_time()
    read(text)
    assert thread_time() - started < 0.25


def read_page(style: str) -> object:
    html = f"<ol style='{style}'><li>Words of an item.</li></ol>" * 2
    return extract(Page("https://example.org/", 200, "text/html", html.encode(), "utf-8", truncated=False))


def read_mail_source(text: str) -> object:
    return mail_source.read_source(text.encode(), "eml", "utf-8", inf)


RUNS: dict[str, tuple[Callable[[str], object], str, str]] = {
    "a tag in a prompt that is none": (lambda text: format_block("result", text), "<{}x", " "),
    "escapes of a terminal that do not end": (
        lambda text: text_source.read_source(text.encode(), "txt", "utf-8", inf), "{}", "\x1b]a"
    ),
    "returns in the header of a mail": (read_mail_source, "From: a@b.example\nSubject: {}\n\nbody", "\r"),
    "empty lines of an answer": (parse_answer, "a{}b", "\n"),
    "spaces in an answer as JSON": (parse_answer, '{{"answer":"a{}b"}}', " "),
    "spaces before a citation": (parse_answer, "a{}b", " \u00a0"),
    "a line of a table that is none": (read_tables, "| {}x", "-"),
    "chats that do not end": (answer_background_prompt, "### Task: {}", "<chat_history>"),
    "a text of a server that hides titles": (sanitize_text, "{}\x1b", "\x9d"),
    "styles of a list": (read_page, "{}", "list-style:x "),
    "comments in a damaged plan": (parse_reply, '{{"steps": [{{"tool": x {}}}]}}', "/* "),
    "a fraction without a slash": (write_fractions, "1/\u2082 {}", "\u00b9"),
    "a word of a description": (lambda text: read_input_units(f"x\n{text}"), "{}", "a"),
    "letters before a statement": (
        lambda text: OwnWords(text).find_statement("b", BEFORE_FACT), "{}xb", "\n"
    ),
    "statements that begin within a word": (
        lambda text: OwnWords(text).find_statement("a", BEFORE_FACT), "{}", "xa."
    ),
    "names in a question": (list_names, "Is {}?", "Aa Bb "),
    "an owner who is not named": (extract_action_items, "Please fix it, owner {}!", " "),
    "an action item that is none": (extract_action_items, "ai {}x", " "),
}  # fmt: skip


@pytest.mark.parametrize(("read", "frame", "unit"), RUNS.values(), ids=RUNS)
def test_a_long_run_is_read_once(read: Callable[[str], object], frame: str, unit: str) -> None:
    def seconds(size: int) -> float:
        text = frame.format(unit * (size // len(unit)))
        started = thread_time()
        with suppress(PlanInvalidError):
            read(text)
        return thread_time() - started

    seconds(10)
    assert seconds(40_000) < 0.6
