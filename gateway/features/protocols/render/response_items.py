"""The items of a response that need more than their fields: plans, calls, approval requests, annotations."""

import json
import re
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from agent.core import events as ev
from agent.core.models import JsonObject, Source
from agent.policy.guardrails.plain_text import escape_markdown

CUSTOM_INPUT: Final = "input"
"""The argument of a client's custom tool, which takes a text, where a model calls it as a function."""
SERVER_LABEL: Final = "stepgate"
"""The label under which the gateway's own tools appear, as those of an MCP server."""
_APPROVAL_ID: Final = re.compile(r"mcpr_([0-9a-f]{32})(?:_[0-9]+)?_(apr_[0-9a-f]+)")
_MARK: Final = re.compile(r"\[(\d{1,4})\]")


def format_plan_summary(proposed: ev.PlanProposed) -> str:
    """A plan as the text of a reasoning summary."""
    plan = proposed.plan
    head = f"New plan, because {proposed.replan_reason}:" if proposed.replan_reason else "Plan:"
    lines = [
        f"{number}. {step.title}" + (f" - {escape_markdown(step.intent)}" if step.intent else "")
        for number, step in enumerate(plan.steps, start=1)
    ]
    return "\n".join([head, *lines])


def build_approval_request_item(key: str, asked: ev.ApprovalRequested) -> JsonObject:
    """An open approval request. A request about several steps is shown as one call named `plan`."""
    if len(asked.items) == 1:
        name, arguments = asked.items[0].tool, asked.items[0].args
    else:
        steps: list[JsonValue] = [
            {"tool": item.tool, "arguments": item.args, "intent": item.intent} for item in asked.items
        ]
        name, arguments = "plan", {"reason": asked.reason, "steps": steps}
    return {
        "id": f"mcpr_{key}_{asked.approval_id}",
        "type": "mcp_approval_request",
        "server_label": SERVER_LABEL,
        "name": name,
        "arguments": json.dumps(arguments, ensure_ascii=False),
    }


def parse_approval_item_id(text: str) -> tuple[str, str] | None:
    """The run's id and the approval's id, or None for an id that is not one of ours."""
    match = _APPROVAL_ID.fullmatch(text)
    return (f"run_{match[1]}", match[2]) if match else None


def build_function_call_item(item_id: str, call: JsonObject) -> JsonObject:
    """A call of a client's tool, from OpenAI's form in chat completions."""
    function = call.get("function")
    named = function if isinstance(function, dict) else {}
    return {
        "id": item_id,
        "type": "function_call",
        "call_id": str(call.get("id") or item_id),
        "name": str(named.get("name") or ""),
        "arguments": str(named.get("arguments") or "{}"),
        "status": "completed",
    }


def build_custom_call_item(item_id: str, call: JsonObject) -> JsonObject:
    """A call of a client's custom tool, whose one argument is a text."""
    item = build_function_call_item(item_id, call)
    return {
        "id": item_id,
        "type": "custom_tool_call",
        "call_id": item["call_id"],
        "name": item["name"],
        "input": _read_custom_input(str(item["arguments"])),
    }


def build_custom_arguments(text: str) -> str:
    """The arguments under which a model has the text of a custom tool."""
    return json.dumps({CUSTOM_INPUT: text}, ensure_ascii=False)


def _read_custom_input(arguments: str) -> str:
    """The text; what a model wrote in another form is passed on as it is."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    text = given.get(CUSTOM_INPUT) if isinstance(given, dict) else None
    return text if isinstance(text, str) else arguments


def annotate(text: str, sources: Sequence[Source]) -> list[JsonObject]:
    """An annotation for each `[n]` that cites a source: its address, or the name of the document."""
    by_number = {source.id: source for source in sources}
    notes: list[JsonObject] = []
    for mark in _MARK.finditer(text):
        source = by_number.get(int(mark[1]))
        if source is None:
            continue
        if source.url:
            notes.append({
                "type": "url_citation", "url": source.url, "title": source.name, "start_index": mark.start(),
                "end_index": mark.end(),
            })  # fmt: skip
        else:
            notes.append({
                "type": "file_citation", "file_id": f"source_{source.id}", "filename": source.name,
                "index": mark.start(),
            })  # fmt: skip
    return notes
