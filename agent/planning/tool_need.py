"""Asks a small model whether a request needs a tool at all, whether the tool that it chose is one for the request, and
whether the request asks for a change.

Offered tools, a small model calls one for a greeting, a summary or a poem, and answers with its result. The questions
are asked by themselves, after examples as a conversation: what the model knows of a request it then says, whatever its
language. The prompts hold nothing of the room, so that an endpoint reads their beginnings once.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

from agent.core.models import JsonObject
from agent.llm.prompts import render
from agent.planning.decision_schema import build_choice_schema
from agent.planning.parse import read_last_object
from agent.planning.planner import PlannerModel
from agent.planning.request import PlanningRequest
from agent.planning.round_prompt import DESCRIPTION_CHARS, SHOWN_INPUTS, encode_decision, say
from agent.planning.rules import read_calls
from agent.text.terms import extract_terms
from agent.tools import ToolSpec
from agent.tools.catalogue import CatalogueIndex, get_first_sentence, is_foreign, keep_ends, split_name
from agent.tools.client_tools import CLIENT_ORIGIN

WRITING, TOOL = "writing", "tool"
YES, NO = "yes", "no"
INFORMATION, CHANGE = "information", "change"
NEED, FIT, ASK = "needs", "fits", "asks"
"""The fields of the replies."""
BEGIN_CHARS, END_CHARS = 300, 150
"""Characters of a long request that show what it asks for. The answer's prompt holds all of it, and reading it takes a
small model on a laptop seconds."""
BEFORE_CHARS = 100
"""Characters of the last turn, of each side."""
QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")
"""The usual one, and those of Chinese and Japanese, and of Arabic."""
SEPARATOR: Final = "\n=> "
"""Between an example and its reply, in the files of examples."""


async def needs_no_tool(model: PlannerModel, request: PlanningRequest, tools: Sequence[ToolSpec]) -> bool:
    """Whether the request is answered by writing alone. Raises `ModelError`.

    False for a reply that says neither: endpoints may ignore the schema. False too, without a question, for commands
    and for words of a skill or of somebody else's tool: what those are for, only they say."""
    if _names_an_own_thing(request, tools):
        return False
    if await _choose(model, NEED, (WRITING, TOOL), _describe(request)) != WRITING:
        return False
    earlier = [message.content for message in request.history if message.role == "user"]
    if not earlier or not any(mark in request.question for mark in QUESTION_MARKS):
        return True
    # "And the smaller one?" alone says nothing of what it is about: it needs what the question before it needed.
    return await _choose(model, NEED, (WRITING, TOOL), _shorten(earlier[-1])) == WRITING


async def asks_for_change(model: PlannerModel, request: PlanningRequest) -> bool:
    """Whether the request wants something to be changed, sent, ordered or saved. Raises `ModelError`. False for a reply
    that says neither."""
    return await _choose(model, ASK, (INFORMATION, CHANGE), _describe(request)) == CHANGE


async def fits_request(model: PlannerModel, request: PlanningRequest, spec: ToolSpec) -> bool:
    """Whether the result of a tool is what the request asks for. Raises `ModelError`. True for a reply that says
    neither."""
    properties = spec.input_schema.get("properties")
    inputs = ", ".join([*properties][:SHOWN_INPUTS]) if isinstance(properties, dict) else ""
    line = f"- {spec.name}({inputs}): {get_first_sentence(spec.description, DESCRIPTION_CHARS)}"
    question = render("fits_question", tool=line, request=_shorten(request.question))
    return await _choose(model, FIT, (YES, NO), question) != NO


async def _choose(model: PlannerModel, field: str, choices: Sequence[str], question: str) -> str:
    """The model's choice, or "" if it chose nothing."""
    reply = await model.ask((*_build_examples(field), say("user", question)), build_choice_schema(choices, field))
    return str(read_last_object(reply.text, field).get(field, ""))


@cache
def _build_examples(field: str) -> tuple[JsonObject, ...]:
    """The instruction of a question, and its examples as turns of a conversation."""
    messages = [say("system", render(field))]
    for example in render(f"{field}_examples").split("\n\n"):
        asking, _, choice = example.partition(SEPARATOR)
        content = render("fits_question", **_read_fields(asking)) if field == FIT else asking
        messages += [say("user", content), say("assistant", encode_decision({field: choice}))]
    return tuple(messages)


def _read_fields(example: str) -> dict[str, str]:
    tool, _, request = example.partition("\n")
    return {"tool": tool, "request": request}


def _describe(request: PlanningRequest) -> str:
    """The newest request, after the end of the last turn, which may explain it."""
    spoken = [message.content for message in request.history[-2:]]
    before = " - ".join(text[:BEFORE_CHARS].replace("\n", " ") for text in spoken)
    return f"(before: {before})\n{_shorten(request.question)}" if before else _shorten(request.question)


def _shorten(text: str) -> str:
    """Where a text to work on is pasted, what is wanted stands before or after it."""
    return keep_ends(text, BEGIN_CHARS, END_CHARS, " [...] ")


def _names_an_own_thing(request: PlanningRequest, tools: Sequence[ToolSpec]) -> bool:
    """Whether the request is a command of a tool of ours, or in the words of a skill or of somebody else's tool."""
    if read_calls(request.question, {spec.name: spec for spec in tools}):
        return True
    words = {*extract_terms(keep_ends(request.question))}
    names = ({*extract_terms(split_name(card.name))} for card in request.catalogue.skills)
    if any(name and words >= name for name in names):
        return True
    others = [spec for spec in tools if is_foreign(spec) or spec.origin == CLIENT_ORIGIN]
    return any(score > 0 for score in CatalogueIndex(others).compute_scores(request.question).values())
