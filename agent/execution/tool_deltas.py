"""Tool calls from what a model said: from the pieces of a stream, and from a text. Pure."""

import json

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


def written_call(text: str) -> tuple[str, str] | None:
    """Name and arguments of `{"name": ..., "arguments"|"parameters": {...}}` as the whole text, fenced or not."""
    body = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if not body.startswith("{"):
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    args = value.get("arguments", value.get("parameters"))
    if not isinstance(value.get("name"), str) or not isinstance(args, dict):
        return None
    return value["name"], json.dumps(args)
