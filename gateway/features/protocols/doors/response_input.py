"""Input items of the Responses API as messages of a chat completion."""

import json
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from agent.core.models import JsonObject
from gateway.doors.openai_wire import WireMessage
from gateway.features.protocols.render.response_items import build_custom_arguments, parse_approval_item_id
from gateway.render.errors import RequestFormatError

_OWN_ITEMS: Final = ("mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response")
"""Items of earlier answers. They are in the trace of their runs and ask for nothing when they are sent back. No set,
like the next one: a client may send a list as the type, which no set can be searched for."""
_RECORDS: Final = (
    "code_interpreter_call", "compaction", "computer_call", "computer_call_output", "file_search_call",
    "image_generation_call", "item_reference", "local_shell_call", "local_shell_call_output", "shell_call",
    "shell_call_output", "tool_search_call", "tool_search_output", "web_search_call",
)  # fmt: skip
"""Items that record what a provider's own tools did in another answer. Clients send them with each later request, and
they ask for nothing: they are left out, and named as ignored."""
_CALLS: Final = ("function_call", "custom_tool_call")
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
_TEXT_PARTS: Final = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_ROLES: Final = ("user", "assistant", "system", "developer")


def convert_input(items: Sequence[JsonObject], field: str = "input") -> list[WireMessage]:
    """The items as messages, in their order. Raises `RequestFormatError` for items of other kinds; it names
    them by their place in `field`.

    Calls of the client's tools join the assistant's message before them, as chat completions want it. What a model
    thought goes with the message that follows it.
    """
    messages: list[WireMessage] = []
    thought = ""
    for index, item in enumerate(items):
        where = f"{field}[{index}]"
        kind = item.get("type", "message")
        if kind == "reasoning":
            thought += _join_texts(item.get("content") or [], f"{where}.content")
        elif kind == "message":
            message = _convert_message(item, where)
            if thought and message.role == "assistant":
                message, thought = message.model_copy(update={"reasoning_content": thought}), ""
            messages.append(message)
        elif kind in _CALLS:
            _add_call(messages, _convert_call(item, where), thought)
            thought = ""
        elif kind in _OUTPUTS:
            content = _convert_output(item.get("output", ""), f"{where}.output")
            call_id = _get_text_field(item, "call_id", where)
            messages.append(WireMessage.model_validate({"role": "tool", "content": content, "tool_call_id": call_id}))
        elif kind not in _OWN_ITEMS and kind not in _RECORDS:
            message_text = f"{where}: items of type {str(kind)[:40]!r} are not supported."
            raise RequestFormatError(message_text, f"{where}.type", "unsupported_parameter")
    return messages


def list_records(items: Sequence[JsonObject]) -> frozenset[str]:
    """The kinds of the items that are left out because a provider's own tools did what they record."""
    kinds = (item.get("type") for item in items)
    return frozenset(kind for kind in kinds if isinstance(kind, str) and kind in _RECORDS)


def read_approval_replies(items: Sequence[JsonObject]) -> tuple[str, dict[str, tuple[bool, str]]] | None:
    """The run and the decisions that the input ends with, or None if its last item is not a decision.

    Decisions before other items are history. Raises `RequestFormatError`.
    """
    replies: dict[str, tuple[bool, str]] = {}
    run_ids: set[str] = set()
    for index in reversed(range(len(items))):
        item = items[index]
        if item.get("type") != "mcp_approval_response":
            break
        where = f"input[{index}]"
        named = parse_approval_item_id(_get_text_field(item, "approval_request_id", where))
        approve, reason = item.get("approve"), item.get("reason")
        if named is None:
            param = f"{where}.approval_request_id"
            raise RequestFormatError(f"{param}: there is no such approval request.", param, "invalid_value")
        if not isinstance(approve, bool):
            raise RequestFormatError(f"{where}.approve: expected a boolean.", f"{where}.approve", "invalid_type")
        run_ids.add(named[0])
        replies.setdefault(named[1], (approve, reason if isinstance(reason, str) else ""))
    if not replies:
        return None
    if len(run_ids) > 1:
        raise RequestFormatError("input: the decisions belong to different responses.", "input", "invalid_value")
    return run_ids.pop(), replies


def list_input_items(items: Sequence[JsonValue], key: str) -> list[JsonObject]:
    """Stored input items as `GET /v1/responses/{id}/input_items` shows them: with ids and parts."""
    input_items: list[JsonObject] = []
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        kind = item.get("type", "message")
        full: JsonObject = {"id": f"in_{key}_{index}", "status": "completed", **item, "type": kind}
        if kind == "message" and isinstance(item.get("content"), str):
            own = item.get("role") == "assistant"
            part: JsonObject = {"type": "output_text" if own else "input_text", "text": item["content"]}
            full["content"] = [part | ({"annotations": []} if own else {})]
        if kind in _OWN_ITEMS:
            full.pop("status") if "status" not in item else None
        input_items.append(full)
    return input_items


def _convert_message(item: JsonObject, where: str) -> WireMessage:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        code = "missing_required_parameter" if role is None else "invalid_value"
        raise RequestFormatError(f"{where}.role: expected one of {', '.join(_ROLES)}.", f"{where}.role", code)
    if isinstance(content, str):
        return WireMessage.model_validate({"role": role, "content": content})
    if not isinstance(content, list):
        raise RequestFormatError(f"{where}.content: expected a string or an array.", f"{where}.content", "invalid_type")
    parts = [_convert_part(part, f"{where}.content[{number}]") for number, part in enumerate(content)]
    return WireMessage.model_validate({"role": role, "content": parts})


def _convert_part(part: JsonValue, where: str) -> JsonObject:
    if not isinstance(part, dict):
        raise RequestFormatError(f"{where}: expected an object.", where, "invalid_type")
    kind = part.get("type")
    if kind in _TEXT_PARTS:
        return {"type": "text", "text": _get_text_field(part, "text", where)}
    if kind == "refusal":
        return {"type": "refusal", "refusal": _get_text_field(part, "refusal", where)}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    if kind == "input_image":
        message = f"{where}.file_id: images are sent as 'image_url'."
        raise RequestFormatError(message, f"{where}.file_id", "unsupported_parameter")
    message = f"{where}: content of type {str(kind)[:40]!r} is not supported."
    raise RequestFormatError(message, f"{where}.type", "invalid_value")


def _convert_call(item: JsonObject, where: str) -> JsonObject:
    is_custom = item.get("type") == "custom_tool_call"
    name = _get_text_field(item, "name", where)
    text = _get_text_field(item, "input" if is_custom else "arguments", where)
    function: JsonObject = {"name": name, "arguments": build_custom_arguments(text) if is_custom else text}
    return {"id": _get_text_field(item, "call_id", where), "type": "function", "function": function}


def _add_call(messages: list[WireMessage], call: JsonObject, thought: str) -> None:
    last = messages[-1] if messages else None
    if last is not None and last.role == "assistant" and not thought:
        if last.tool_calls is None:
            messages[-1] = last.model_copy(update={"tool_calls": [call]})
        else:
            last.tool_calls.append(call)  # the list is this function's own; a client may send 50,000 calls
        return
    messages.append(WireMessage(role="assistant", tool_calls=[call], reasoning_content=thought or None))


def _convert_output(output: JsonValue, where: str) -> JsonValue:
    """The result of a client's tool: a text, or parts with pictures among them. An object is its JSON."""
    if isinstance(output, dict):
        return json.dumps(output, ensure_ascii=False)
    pictures = isinstance(output, list) and any(
        isinstance(part, dict) and part.get("type") == "input_image" for part in output
    )
    if not pictures or not isinstance(output, list):
        return _join_texts(output, where)
    return [_convert_part(part, f"{where}[{number}]") for number, part in enumerate(output)]


def _join_texts(content: JsonValue, where: str) -> str:
    """A text, or a list of text parts as one text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise RequestFormatError(f"{where}: expected a string or an array.", where, "invalid_type")
    texts = []
    for number, part in enumerate(content):
        if not isinstance(part, dict) or part.get("type") not in _TEXT_PARTS:
            raise RequestFormatError(
                f"{where}[{number}]: only text is supported.", f"{where}[{number}]", "invalid_value"
            )
        texts.append(_get_text_field(part, "text", f"{where}[{number}]"))
    return "\n".join(texts)


def _get_text_field(item: JsonObject, name: str, where: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        code = "missing_required_parameter" if value is None else "invalid_type"
        raise RequestFormatError(f"{where}.{name}: expected a string.", f"{where}.{name}", code)
    return value
