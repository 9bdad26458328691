"""Texts made to hurt their readers: four times the text takes about four times as long."""

from collections.abc import Callable
from itertools import product
from time import thread_time

import pytest

from agent.answers.addresses import find_unexplained_addresses
from agent.answers.figures import find_unexplained_figures
from agent.answers.names import find_unexplained_names
from agent.planning.rounds.part_texts import select_parts
from agent.planning.rules import find_unknown_part
from agent.policy.guardrails.message_labels import split_attachments
from agent.text.dates import find_dates
from agent.text.quantifiers import asks_for_each
from agent.text.question_parts import split_joined_questions, split_phrases
from agent.text.requested_form import remove_form, split_questions

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
