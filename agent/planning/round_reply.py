"""Reads a reply to a round's question: a decision, or the choice of one tool. Pure functions."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.models import JsonObject
from agent.llm.call_forms import read_calls
from agent.llm.port import ModelReply
from agent.planning.decision_schema import LATER
from agent.planning.input_schemas import read_inputs
from agent.planning.parse import parse_reply, read_last_object
from agent.planning.reply import Answer, Ask, FindTools, PlanReply, Reply, read_reply

_NOTHING = frozenset({"", "none", "nothing"})
"""What a model writes as a step when all is done, also if it adds a call that nobody asked for."""


def read_decision(reply: ModelReply, tools: Mapping[str, JsonObject] = MappingProxyType({})) -> Reply:
    """Reads the decision of a reply. Raises `PlanInvalidError` if it is cut off or unusable.

    Endpoints that ignore the schema get leniency: calls of `tools` in any form that models write, or a plan, a question
    or an answer in the forms of `read_reply`.
    """
    if reply.refused:
        return Answer(reply.text)
    if reply.tool_calls or '"next"' not in reply.text:
        read = read_calls(reply.text, reply.tool_calls, tools)
        if read.calls:
            steps: list[JsonValue] = [{"tool": call.name, "inputs": call.arguments} for call in read.calls]
            return PlanReply({"steps": steps})
    decided = read_last_object(reply.text, "next").get("next")
    if decided is None and '"next"' in reply.text:
        decided = parse_reply(reply.text, reply.finish_reason).get("next")
    return _read_next(decided, tools) if isinstance(decided, dict) else read_reply(reply.text, reply.finish_reason)


def _read_next(decided: JsonObject, tools: Mapping[str, JsonObject]) -> Reply:
    match decided:
        case {"kind": "ask", "question": str(question)} if question.strip():
            return Ask(question.strip())
        case {"kind": "find_tools", "query": str(query)} if query.strip():
            return FindTools(query.strip())
        case {"kind": "answer"}:
            return Answer("")
        case {"calls": [*calls]}:
            named = [call for call in calls if isinstance(call, dict)]
            listed = decided.get("todo")
            todo = [str(part).strip() for part in (listed if isinstance(listed, list) else [])]
            parts = todo or [*dict.fromkeys(str(call.get("tool")) for call in named)]
            if not parts or parts[0].lower() in _NOTHING:
                return Answer("")
            steps: list[JsonValue] = [_read_call(call, todo, tools) for call in named if call.get("tool") != LATER]
            return PlanReply({"reasoning": "; ".join(parts), "todo": [*parts], "steps": steps})
    raise PlanInvalidError(['"next" holds neither calls, nor a question, nor an answer'])


def _read_call(call: JsonObject, todo: Sequence[str], tools: Mapping[str, JsonObject]) -> JsonObject:
    """The call as a step of a plan, whose intent is the part that it is for; its tool where the model does not say."""
    number, name = call.get("for"), str(call.get("tool"))
    is_listed = isinstance(number, int) and 0 < number <= len(todo)
    intent = todo[number - 1] if is_listed and isinstance(number, int) else name
    inputs = call.get("inputs")
    read: JsonObject = {"inputs": read_inputs(inputs, tools.get(name, {}))} if isinstance(inputs, dict) else {}
    others = {field: value for field, value in call.items() if field != "for"}
    return {**others, **read, "intent": intent}


def read_choice(reply: ModelReply) -> str:
    """The tool that a reply chooses, or ""."""
    return str(read_last_object(reply.text, "tool").get("tool", ""))
