"""Asks a small model what kind of request the newest one is, before it may choose a tool.

Offered tools, a small model calls one for a greeting, a summary or a poem, and answers with its result. Asked for the
kind of the request alone, it knows that these need none. What it takes for writing may still name a page or a change:
such signs are looked at as well.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from agent.core.models import JsonObject
from agent.planning.decision_schema import build_choice_schema
from agent.planning.parse import read_last_object
from agent.planning.planner import PlannerModel
from agent.planning.request import PlanningRequest
from agent.planning.round_attempt import Attempt
from agent.planning.round_prompt import build_round_messages, say
from agent.planning.rules import read_calls
from agent.prompts import render
from agent.text.codes import find_codes
from agent.text.numbers import find_numbers
from agent.text.terms import extract_terms
from agent.tools import ToolSpec
from agent.tools.catalogue import CatalogueIndex, is_foreign, split_name
from agent.tools.client_tools import CLIENT_ORIGIN

WRITING: Final = "writing"
KINDS_WITHOUT_TOOLS: Final = ("small talk", WRITING, "general knowledge", "conversation")
CALCULATION: Final = "calculation"
KINDS_WITH_TOOLS: Final = (CALCULATION, "time", "lookup", "action")
BEGIN_CHARS, END_CHARS = 300, 150
"""Characters of a long request that show its kind. The answer's prompt holds all of it, and reading it takes a small
model on a laptop seconds."""
TEXT_HERE, PAGE, CHANGE = (
    "write or change a text here in the chat",
    "read a page, file or folder",
    "save, add, change, assign or send something",
)
_ADDRESS = re.compile(
    r"https?://|\bwww\.|(?:^|[\s\"'(])(?:~|\.{0,2})/[\w.-]+|\b[\w-]+\.[a-z][a-z0-9]{1,4}\b", re.IGNORECASE
)
"""A URL, a path or a file's name."""


async def needs_no_tool(model: PlannerModel, request: PlanningRequest, attempt: Attempt) -> bool:
    """Whether the request is answered by writing alone. Raises `ModelError`.

    False for a reply that names no kind: endpoints may ignore the schema."""
    messages = build_round_messages(replace(request, question=_shorten(request.question)), attempt.tools)
    kind = await _choose(model, messages, render("decide_kind"), "kind", (*KINDS_WITHOUT_TOOLS, *KINDS_WITH_TOOLS))
    is_known_by_heart = kind == CALCULATION and not _has_figures(request)
    if (kind not in KINDS_WITHOUT_TOOLS and not is_known_by_heart) or _fits_a_tool(request, attempt.tools, kind):
        return False
    if not _ADDRESS.search(request.question):
        return True
    choices = (TEXT_HERE, PAGE, CHANGE)
    question = "\n".join((render("decide_source"), *(f"- {choice}" for choice in choices)))
    return await _choose(model, messages, question, "wanted", choices) == TEXT_HERE


async def _choose(
    model: PlannerModel, messages: Sequence[JsonObject], question: str, name: str, choices: Iterable[str]
) -> str:
    """The model's choice for the request, or "" if it chose nothing."""
    *before, last = messages
    asking = (*before, say("user", f"{last['content']}\n{question}"))
    reply = await model.ask(asking, build_choice_schema(choices, name))
    return str(read_last_object(reply.text, name).get(name, ""))


def _shorten(text: str) -> str:
    """Where a text to work on is pasted, what is wanted stands before or after it."""
    return text if len(text) <= BEGIN_CHARS + END_CHARS else f"{text[:BEGIN_CHARS]} [...] {text[-END_CHARS:]}"


def _has_figures(request: PlanningRequest) -> bool:
    """Whether there is anything to calculate with, or things of the user's to count: "How many legs has a spider?" is
    taken for a calculation."""
    text = "\n".join((*(message.content for message in request.history), request.question))
    return bool(find_numbers(text)) or bool(request.catalogue.sources & {"files", "collections"})


def _fits_a_tool(request: PlanningRequest, tools: Iterable[ToolSpec], kind: str) -> bool:
    """Whether the request is a command of a tool of ours, or its words, codes or skills point to one that is not."""
    specs = {spec.name: spec for spec in tools}
    if read_calls(request.question, specs):
        return True
    words = {*extract_terms(request.question)}
    if any(words >= {*extract_terms(split_name(card.name))} for card in request.catalogue.skills):
        return True
    others = [spec for spec in specs.values() if is_foreign(spec) or spec.origin == CLIENT_ORIGIN]
    if not others:
        return False
    changing = [spec for spec in others if spec.effect != "read"]
    # Their descriptions are in English: words of another language fit none of them.
    is_unsure = kind == WRITING and bool(changing) and bool(request.answer_language)
    scores = CatalogueIndex(others).compute_scores(request.question)
    return is_unsure or bool(find_codes(request.question)) or any(score > 0 for score in scores.values())
