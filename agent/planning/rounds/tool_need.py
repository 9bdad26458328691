"""Asks a small model whether a request needs a tool at all, whether the tool that it chose is one for the request, and
whether the request asks for a change.

Offered tools, a small model calls one for a greeting, a summary or a poem, and answers with its result. The questions
are asked by themselves, after examples as a conversation: what the model knows of a request it then says, whatever its
language. The prompts hold nothing of the room, so that an endpoint reads their beginnings once.

What a request needs is asked for as one plain word: an answer waits for it, and each token of a JSON object around it
takes a laptop a tenth of a second. The words name kinds of things that are looked up or done. A model that had to say
"tool" or "writing" took every fifth everyday turn for work of a tool. The answer has a prompt of its own: after these
examples, as turns or as text, it is a single word too.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from agent.core.errors import ModelContextError
from agent.core.json_schema import get_properties
from agent.core.json_walk import iter_nodes
from agent.core.models import JsonObject
from agent.llm.prompts import read_examples, render
from agent.planning.parse import read_last_object
from agent.planning.planner import PlannerModel
from agent.planning.request import ACTION, PlanningRequest
from agent.planning.rounds.decision_schema import build_choice_schema
from agent.planning.rounds.named_files import list_named_files
from agent.planning.rounds.prompt import DESCRIPTION_CHARS, SHOWN_INPUTS, encode_decision, say
from agent.planning.rules import read_calls
from agent.text.codes import find_codes
from agent.text.numbers import find_numbers
from agent.text.terms import extract_query_terms, extract_terms
from agent.tools import ToolSpec
from agent.tools.catalogue import CatalogueIndex, get_first_sentence, keep_ends, split_name
from agent.tools.client_tools import is_from_outside

YES, NO = "yes", "no"
INFORMATION, CHANGE = "information", "change"
OTHER = "other"
NEED, FIT, ASK, MEANING = "needs", "fits", "asks", "means"
"""The questions, as their prompts are named; all but the first are also the fields of the replies."""
ASK_BEGIN_CHARS, ASK_END_CHARS = 1_500, 500
"""Characters of a request that show whether it asks for a change. That is asked only where a change was decided on, and
the sentence that wants it may stand anywhere in a mail."""
BEGIN_CHARS, END_CHARS = 160, 90
"""Characters of a long request that show what it asks for. The answer's prompt holds all of it, and reading it takes a
small model on a laptop seconds."""
NAMING_BEGIN_CHARS, NAMING_END_CHARS = 300, 150
"""Characters of a long request in which a name of a file counts; one in the middle is part of a pasted text."""
BEFORE_CHARS = 100
"""Characters of the last turn, of each side."""


async def ask_need(model: PlannerModel, request: PlanningRequest, tools: Sequence[ToolSpec]) -> str:
    """What the request needs, in the model's word: `NOTHING`, `ACTION`, or another kind of thing. Raises `ModelError`.

    "" for a reply of more than a word, and where the examples do not fit the model's context. "" too, without a
    question, for commands, for names of files that are there and for web addresses, and for words of a skill, of
    somebody else's tool and its inputs: what those are for, only they say. Beside such tools, no question is asked
    about a request in another language either. Where no tool has effects, nothing can be done to a file: the model is
    asked about a request that names one, but only `ACTION` is taken from its reply."""
    is_own = _names_an_own_thing(request, tools)
    if is_own and (not _names_a_file(request) or any(spec.effect == "effect" for spec in tools)):
        return ""
    try:
        need = await model.ask_word((*_build_examples(NEED), say("user", _describe(request))))
    except ModelContextError:
        return ""
    return need if need == ACTION or not is_own else ""


def follows_own_thing(request: PlanningRequest, tools: Sequence[ToolSpec]) -> bool:
    """Whether the user's message before this one was about what tools know. "Sorry, I meant anchors" then is, too, and
    asked what it needs, a small model says nothing and makes a figure up."""
    before = [message.content for message in request.history if message.role == "user"]
    return bool(before) and _names_an_own_thing(replace(request, question=before[-1]), tools)


def may_need_tool(request: PlanningRequest, tools: Sequence[ToolSpec]) -> bool:
    """Whether the request holds figures or codes, or words that fit a tool."""
    scores = CatalogueIndex([*tools]).compute_scores(request.question)
    ends = keep_ends(request.question)
    return bool(find_numbers(ends) or find_codes(ends)) or any(scores.values())


def build_first_question() -> tuple[JsonObject, ...]:
    """The question about a greeting, for an endpoint to read before there is a request: half a minute on a laptop."""
    return (*_build_examples(NEED), say("user", "Hello!"))


async def asks_for_change(model: PlannerModel, request: PlanningRequest) -> bool:
    """Whether the request wants something to be changed, sent, ordered or saved. Raises `ModelError`. True for a reply
    that says neither: then the model is asked which change."""
    question = _describe(request, ASK_BEGIN_CHARS, ASK_END_CHARS)
    return await _choose(model, ASK, (INFORMATION, CHANGE), question) != INFORMATION


async def fits_request(model: PlannerModel, request: PlanningRequest, spec: ToolSpec) -> bool:
    """Whether the result of a tool is what the request asks for. Raises `ModelError`. True for a reply that says
    neither."""
    inputs = ", ".join([*spec.properties][:SHOWN_INPUTS])
    line = f"- {spec.name}({inputs}): {get_first_sentence(spec.description, DESCRIPTION_CHARS)}"
    question = render("fits_question", tool=line, request=_shorten(request.question))
    return await _choose(model, FIT, (YES, NO), question) != NO


async def refuses_plan(model: PlannerModel, reply: str) -> bool:
    """Whether a person's reply to a plan says that it must not be carried out. Raises `ModelError`. False for a reply
    of the model that says nothing: then the person is asked again."""
    return await _choose(model, MEANING, (YES, NO, OTHER), _shorten(reply, ASK_BEGIN_CHARS, ASK_END_CHARS)) == NO


async def _choose(model: PlannerModel, field: str, choices: Sequence[str], question: str) -> str:
    """The model's choice, or "" if it chose nothing."""
    reply = await model.ask((*_build_examples(field), say("user", question)), build_choice_schema(choices, field))
    return str(read_last_object(reply.text, field).get(field, ""))


@cache
def _build_examples(field: str) -> tuple[JsonObject, ...]:
    """The instruction of a question, and its examples as turns of a conversation."""
    messages = [say("system", render(field))]
    for asking, choice in read_examples(f"{field}_examples"):
        content = render("fits_question", **_read_fields(asking)) if field == FIT else asking
        messages += [
            say("user", content),
            say("assistant", choice if field == NEED else encode_decision({field: choice})),
        ]
    return tuple(messages)


def _read_fields(example: str) -> dict[str, str]:
    tool, _, request = example.partition("\n")
    return {"tool": tool, "request": request}


def _describe(request: PlanningRequest, begin_chars: int = BEGIN_CHARS, end_chars: int = END_CHARS) -> str:
    """The newest request, after the last turn, which may explain it."""
    before = " - ".join(text[:BEFORE_CHARS].replace("\n", " ") for text in request.last_turn)
    question = _shorten(request.question, begin_chars, end_chars)
    return f"(before: {before})\n{question}" if before else question


def _shorten(text: str, begin_chars: int = BEGIN_CHARS, end_chars: int = END_CHARS) -> str:
    """Where a text to work on is pasted, what is wanted stands before or after it."""
    return keep_ends(text, begin_chars, end_chars, " [...] ")


def _names_an_own_thing(request: PlanningRequest, tools: Sequence[ToolSpec]) -> bool:
    """Whether the request is a command of a tool of ours, names a file of the ground or a web address, or has words of
    a skill, or of somebody else's tool and its inputs; in another language, it is taken to have them."""
    if read_calls(request.question, {spec.name: spec for spec in tools}):
        return True
    if "://" in _keep_naming_ends(request) or _names_a_file(request):
        return True
    words = {*extract_terms(keep_ends(request.question))}
    names = ({*extract_terms(split_name(card.name))} for card in request.catalogue.skills)
    if any(name and words >= name for name in names):
        return True
    others = [spec for spec in tools if is_from_outside(spec)]
    if others and request.answer.language:  # its words cannot be compared
        return True
    fits_other = any(score > 0 for score in CatalogueIndex(others).compute_scores(request.question).values())
    terms = {*extract_query_terms(keep_ends(request.question))}
    return fits_other or any(terms & _list_input_terms(spec) for spec in others)


def _list_input_terms(spec: ToolSpec) -> set[str]:
    """The terms of a tool's inputs: names of fields at any depth, and the values that fields are closed to, such as the
    rooms and kinds of devices that a server has."""
    nodes = [node for node in iter_nodes(spec.input_schema) if isinstance(node, dict)]
    names = [name for node in nodes for name in get_properties(node)]
    listed = (node.get("enum") for node in nodes)
    values = [node.get("const") for node in nodes] + [one for some in listed if isinstance(some, list) for one in some]
    texts = (text for text in (*names, *values) if isinstance(text, str))
    return {*extract_terms(split_name(" ".join(texts)))}


def _names_a_file(request: PlanningRequest) -> bool:
    """Whether the request names a file that is there."""
    return bool(list_named_files(_keep_naming_ends(request), request.ground))


def _keep_naming_ends(request: PlanningRequest) -> str:
    return keep_ends(request.question, NAMING_BEGIN_CHARS, NAMING_END_CHARS)
