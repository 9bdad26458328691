"""Reads a reply to a round's question: a decision, or the choice of one tool. Pure functions."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.models import JsonObject
from agent.llm.call_forms import read_calls
from agent.llm.call_objects import MalformedCallError, get_wrapped, list_other_fields, read_call_fields, to_arguments
from agent.llm.port import ModelReply
from agent.planning.parse import parse_reply, read_last_object
from agent.planning.reply import (
    Answer,
    Ask,
    FindTools,
    PlanReply,
    Reply,
    get_written,
    has_marker,
    read_reply,
    refuse_words_beside_call,
)
from agent.planning.rounds.decision_schema import LATER
from agent.planning.rounds.input_schemas import read_inputs
from agent.tools.declared_arguments import collect_arguments

_UNREADABLE = '"next" holds neither calls, nor a question, nor an answer'
_UNNAMED = 'a call has no "tool" with the name of one'
_NOTHING = frozenset({"", "none", "nothing"})
"""What a model writes as a step when all is done, also if it adds a call that nobody asked for."""


def read_decision(reply: ModelReply, tools: Mapping[str, JsonObject] = MappingProxyType({})) -> Reply:
    """Reads the decision of a reply. Raises `PlanInvalidError` if it is cut off or unusable.

    Endpoints that ignore the schema get leniency: calls of `tools` in any form that models write, or a plan, a question
    or an answer in the forms of `read_reply`.
    """
    if reply.refused:
        return Answer(reply.text)
    text = get_written(reply)
    if reply.tool_calls or '"next"' not in text:
        read = read_calls(text, reply.tool_calls, tools)
        if read.calls:
            steps: list[JsonValue] = [
                {"tool": call.name, "inputs": read_inputs(call.arguments, tools[call.name])} for call in read.calls
            ]
            return PlanReply({"steps": steps})
    decided = _find_decided(text, reply.finish_reason, tools)
    if decided is not None:
        return _read_next(decided, tools)
    meant = read_reply(text, reply.finish_reason)
    if isinstance(meant, Answer) and not has_marker(text):
        refuse_words_beside_call(text, tools)
    return meant


def _find_decided(text: str, finish_reason: str, tools: Mapping[str, JsonObject]) -> JsonValue:
    """The decision in a text: what `next` holds, or the same without that name; None for a reply in another form."""
    named = read_last_object(text, "next")
    if named or '"next"' in text:
        return (named or parse_reply(text, finish_reason)).get("next")
    bare = read_last_object(text, "kind") or read_last_object(text, "calls")
    if "steps" in bare or (bare.get("kind") == "answer" and bare.get("answer")):
        return None
    is_decision = bare.get("kind") in ("calls", "call", "answer", *tools) or get_wrapped(bare) is not None
    return bare if is_decision else None


def _read_next(decided: JsonValue, tools: Mapping[str, JsonObject]) -> Reply:
    if isinstance(decided, str):
        if decided.strip().lower() in (*_NOTHING, "answer"):
            return Answer("")
        decided = {"tool": decided.strip()} if decided.strip() in tools else None
    if isinstance(decided, list):
        decided = {"calls": decided}
    if not isinstance(decided, dict):
        raise PlanInvalidError([_UNREADABLE])
    match decided:
        case {"kind": "ask", "question": str(question)} if question.strip():
            return Ask(question.strip())
        case {"kind": "find_tools", "query": str(query)} if query.strip():
            return FindTools(query.strip())
        case {"kind": "answer"}:
            return Answer("")
    return _read_calls(decided, tools)


def _read_calls(decided: JsonObject, tools: Mapping[str, JsonObject]) -> Reply:
    wrapped = get_wrapped(decided)
    calls = wrapped if isinstance(wrapped, list) else [wrapped or _make_single(decided, tools)]
    listed = decided.get("todo")
    todo = [str(part).strip() for part in (listed if isinstance(listed, list) else [])]
    named = [_name_call(call, tools) for call in calls if isinstance(call, dict)]
    parts = todo or [*dict.fromkeys(str(call["tool"]) for call in named)]
    if (wrapped == [] and not todo) or (todo and todo[0].lower() in _NOTHING):
        return Answer("")
    if not parts or not all(call["tool"] for call in named):
        raise PlanInvalidError([_UNREADABLE if wrapped is None else _UNNAMED])
    if parts[0].lower() in _NOTHING:
        return Answer("")
    steps: list[JsonValue] = [_read_call(call, todo, tools) for call in named if call["tool"] != LATER]
    return PlanReply({"reasoning": "; ".join(parts), "todo": [*parts], "steps": steps})


def _make_single(decided: JsonObject, tools: Mapping[str, JsonObject]) -> JsonObject:
    """A decision that is a call itself, whose kind may be the tool."""
    kind = decided.get("kind")
    named: JsonObject = {"tool": kind} if isinstance(kind, str) and kind in tools else {}
    return named | {name: value for name, value in decided.items() if name not in ("kind", "todo")}


def _name_call(call: JsonObject, tools: Mapping[str, JsonObject]) -> JsonObject:
    """The call with `tool` and `inputs`, whatever a model names them. Inputs may stand beside the name, or the name may
    be the key of the inputs. `tool` is "" where no name is."""
    name, arguments = read_call_fields(call)
    others = list_other_fields(call)
    beside = {key: value for key, value in others.items() if key != "for"}
    if not name and len(beside) == 1:
        ((key, value),) = beside.items()
        if key in tools and isinstance(value, dict):
            return {"tool": key, "for": call.get("for"), "inputs": value}
    if name in tools and arguments is None and beside:
        declared, _ = collect_arguments(tools[name])
        inputs: JsonObject = {key: value for key, value in beside.items() if key in declared}
        return {"tool": name, "for": call.get("for"), "inputs": inputs}
    read: JsonObject = {} if arguments is None else {"inputs": _read_arguments(name, arguments)}
    return {**others, "tool": name, **read}


def _read_arguments(name: str, arguments: JsonValue) -> JsonObject:
    try:
        return to_arguments(name, arguments)
    except MalformedCallError as error:
        raise PlanInvalidError([str(error)]) from error


def _read_call(call: JsonObject, todo: Sequence[str], tools: Mapping[str, JsonObject]) -> JsonObject:
    """The call as a step of a plan, whose intent is the part that it is for; its tool where the model does not say."""
    number, name = call.get("for"), str(call["tool"])
    is_listed = isinstance(number, int) and 0 < number <= len(todo)
    intent = todo[number - 1] if is_listed and isinstance(number, int) else name
    inputs = call.get("inputs")
    read: JsonObject = {"inputs": read_inputs(inputs, tools.get(name, {}))} if isinstance(inputs, dict) else {}
    others = {field: value for field, value in call.items() if field != "for"}
    return {**others, **read, "intent": intent}


def read_choice(reply: ModelReply) -> str:
    """The tool that a reply chooses, or ""."""
    return str(read_last_object(reply.text, "tool").get("tool", ""))
