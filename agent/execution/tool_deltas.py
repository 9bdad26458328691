"""Whole tool calls from the pieces of a stream. Pure."""

from agent.core.llm.port import ModelToolCall
from agent.core.models import JsonObject


def tool_calls_of(deltas: list[JsonObject]) -> tuple[ModelToolCall, ...]:
    """The calls as a whole reply has them; one without an id gets its number."""
    found = []
    for number, call in enumerate(join_tool_calls(deltas), start=1):
        function = call["function"]
        assert isinstance(function, dict), "it was made here"
        name, arguments = str(function["name"]), str(function["arguments"])
        found.append(ModelToolCall(str(call["id"] or f"call_{number}"), name, arguments))
    return tuple(found)


def join_tool_calls(deltas: list[JsonObject]) -> list[JsonObject]:
    """Whole tool calls from OpenAI's deltas, which are joined by `index`."""
    calls: dict[int, dict[str, str]] = {}
    for delta in deltas:
        index = delta.get("index", 0)
        call = calls.setdefault(index if isinstance(index, int) else 0, {"id": "", "name": "", "arguments": ""})
        call["id"] = str(delta.get("id") or call["id"])
        function = delta.get("function")
        if isinstance(function, dict):
            call["name"] = str(function.get("name") or call["name"])
            call["arguments"] += str(function.get("arguments") or "")
    return [
        {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
        for _, c in sorted(calls.items())
    ]
