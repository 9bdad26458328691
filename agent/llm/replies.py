"""Parses provider responses: whole replies, their parts, token counts, errors in their place. Chunks of streams:
`agent/llm/chunks.py`."""

import copy
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from pydantic import JsonValue

from agent.core.content_blocks import describe_block
from agent.core.models import PROVIDER_FIELDS, JsonObject, Usage
from agent.llm.call_objects import match_tool_name
from agent.llm.faults import build_body_error, build_foreign_error, build_form_error
from agent.llm.port import ONE_CALL, ModelReply, ModelToolCall, read_choice_end

_FAILED = frozenset({"error", "fail", "failed", "failure"})
_SUCCESS = re.compile(r"0|2\d\d")
"""Codes of no error: HTTP's, and that of a program."""


def read_reply(body: bytes, where: str) -> ModelReply:
    """Parses a completion from its JSON text. Raises `ModelOutputError` for anything else, and the matching error where
    the provider sent one with status 200, as OpenRouter does.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise build_form_error(f"{where} answered 200", body) from error
    reported = find_body_error(data) if isinstance(data, dict) else None
    if reported is not None:
        raise build_body_error(reported, where)
    return read_completion(data, where)


def read_completion(data: object, where: str) -> ModelReply:
    """Parses a completion from OpenAI's object. Raises `ModelOutputError` where it has no choice."""
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise build_foreign_error(where, data)
    message = get_object(choices[0].get("message"))
    finish_reason = read_choice_end(choices[0])
    calls = list_calls(message)
    if not calls and finish_reason == "tool_calls":  # in a choice of their own, as Copilot sends Claude's
        calls = [call for choice in list_objects(choices) for call in list_calls(get_object(choice.get("message")))]
    content = read_message(message or {"content": choices[0].get("text")})
    return ModelReply(
        text=content.text or content.refusal,
        model=str(data.get("model") or ""),
        finish_reason=finish_reason or ("tool_calls" if calls else "stop"),
        usage=read_usage(data.get("usage"), data.get("timings")),
        tool_calls=make_ids_distinct(_make_tool_call(call) for call in calls),
        reasoning=content.reasoning,
        provider_fields=get_provider_fields(message),
        refused=bool(content.refusal) and not content.text,
    )


def find_body_error(body: Mapping[str, object], *, is_error: bool = False) -> object:
    """The error in a reply or an event that came with status 200; None where there is none.

    Knows OpenAI's `error` (also within a choice or its delta, as OpenRouter sends it), vLLM's `object: error`,
    FastAPI's `detail`, a list `errors`, and a `message` beside a code or a status of failure. `null` and objects
    without a value do not count: some servers send the field with every chunk. `is_error` says that the event's type is
    `error`, so that an object without these fields is the error itself.
    """
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    delta = first.get("delta") if isinstance(first, dict) else None
    for body_error in (body.get("error"), get_object(first).get("error"), get_object(delta).get("error")):
        if any(body_error.values()) if isinstance(body_error, dict) else body_error:
            return body_error
    if choices:
        return None
    if is_error or body.get("object") == "error":
        return {key: value for key, value in body.items() if key != "object"} or "an error without a message"
    errors = body.get("errors")
    return body.get("detail") or (errors[0] if isinstance(errors, list) and errors else errors) or _find_message(body)


def _find_message(body: Mapping[str, object]) -> object:
    """A body that is an error itself: it has a message, and a code or a status that says so."""
    if not isinstance(body.get("message"), str) or not body["message"]:
        return None
    status = str(body.get("status", body.get("type", ""))).lower()
    codes = [str(body.get("code") or ""), status if status.isdecimal() else ""]
    has_code = any(code and not _SUCCESS.fullmatch(code) for code in codes)
    return dict(body) if has_code or body.get("success") is False or status in _FAILED else None


def join_fields(joined: JsonObject, piece: Mapping[str, JsonValue]) -> None:
    """Merges a chunk's provider fields into the earlier ones: appends texts, joins lists by their entries' `index`,
    merges objects.
    """
    for key, value in piece.items():
        before = joined.get(key)
        if isinstance(before, str) and isinstance(value, str):
            joined[key] = before + value
        elif isinstance(before, list) and isinstance(value, list):
            for item in value:
                _join_item(before, item)
        elif isinstance(before, dict) and isinstance(value, dict):
            before.update(value)
        else:
            joined[key] = copy.deepcopy(value)


_JOINED = ("text", "summary", "data", "thinking")
"""The texts of a reasoning block, which come in pieces."""


def _join_item(items: list[JsonValue], item: JsonValue) -> None:
    index = item.get("index") if isinstance(item, dict) else None
    earlier = next(
        (
            one
            for one in reversed(items)
            if isinstance(one, dict) and isinstance(item, dict) and index is not None and one.get("index") == index
            and one.get("type") == item.get("type")
        ),
        None,
    )  # fmt: skip
    if not isinstance(earlier, dict) or not isinstance(item, dict):
        items.append(copy.deepcopy(item))
        return
    for key, value in item.items():
        before = earlier.get(key)
        if key in _JOINED and isinstance(before, str) and isinstance(value, str):
            earlier[key] = before + value
        elif value is not None:
            earlier[key] = value


def read_usage(usage: object, timings: object = None) -> Usage:
    """Parses the tokens of one call, and its cost where the endpoint reports it, as OpenRouter does.

    `timings` are llama.cpp's, whose older servers report only there how much of the prompt was in the cache.
    """
    if not isinstance(usage, dict):
        return ONE_CALL
    return Usage(
        model_calls=1,
        prompt_tokens=int(_read_amount(usage.get("prompt_tokens")) or 0),
        completion_tokens=int(_read_amount(usage.get("completion_tokens")) or 0),
        cached_tokens=_read_detail(usage, "prompt_tokens_details", "cached_tokens")
        or int(_read_amount(get_object(timings).get("cache_n")) or 0),
        reasoning_tokens=_read_detail(usage, "completion_tokens_details", "reasoning_tokens"),
        cost_usd=_read_amount(usage.get("cost")),
    )


def _read_detail(usage: dict[str, Any], group: str, name: str) -> int:
    """A part of a total, or 0 if the endpoint does not report it. DeepSeek names its cache elsewhere."""
    reported = get_object(usage.get(group)).get(name)
    if reported is None and name == "cached_tokens":
        reported = usage.get("prompt_cache_hit_tokens")
    return int(_read_amount(reported) or 0)


def _read_amount(value: object) -> float | None:
    """A number that budgets can count. None for negative numbers and NaN, which would let a budget grow."""
    if value is None:
        return None
    try:
        amount = float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return None
    return amount if 0 <= amount < inf else None


def get_object(value: object) -> dict[str, Any]:
    """An object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def list_objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []


def list_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a message or of a delta, also one without a list (TGI), and in the form that had a single one,
    `function_call`."""
    listed = message.get("tool_calls")
    calls = [listed] if isinstance(listed, dict) and "function" in listed else list_objects(listed)
    older = message.get("function_call")
    if not calls and isinstance(older, dict) and older:
        return [{"index": 0, "function": older}]
    return [call if "function" in call else _nest_function(call) for call in calls]


def _nest_function(call: dict[str, Any]) -> dict[str, Any]:
    """A call whose name and arguments stand beside its id, with them in a function as OpenAI has them."""
    function = {key: call[key] for key in ("name", "arguments") if key in call}
    return {**{key: value for key, value in call.items() if key not in function}, "function": function}


def get_text(value: object) -> str:
    """A text; any other value as JSON, or "" if it is empty."""
    return value if isinstance(value, str) else json.dumps(value) if value else ""


_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""Their names: of DeepSeek, of OpenRouter and vLLM, of Copilot, of what passes Ollama's own form on."""


class _Content(NamedTuple):
    """The content of a message, sorted by the kinds of its parts."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""


_NO_CONTENT = _Content()


def read_message(message: Mapping[str, Any]) -> _Content:
    """What a message or a delta says, in its content, as `text` or aloud, and in fields of their own: thoughts, a
    refusal, the pictures that a model draws (OpenRouter)."""
    spoken = get_object(message.get("audio")).get("transcript")
    text, reasoning, refusal = read_content(message.get("content") or message.get("text") or spoken)
    if pictures := message.get("images"):
        text += "".join(map(_describe_picture, list_objects(pictures)))
    thoughts = (_read_thought(message[name]) for name in _REASONING_FIELDS if message.get(name))
    return _Content(text, next(filter(None, thoughts), reasoning), refusal or get_text(message.get("refusal")))


def _read_thought(value: object) -> str:
    """The text of a thought: a text, a block with one, or a list of these. Any other value is a switch: "" for it."""
    blocks = value if isinstance(value, list) else [value]
    texts = (one.get("thinking") or one.get("text") if isinstance(one, dict) else one for one in blocks)
    return "".join(text for text in texts if isinstance(text, str))


def read_content(value: object) -> _Content:
    """Parses a message's content: a text, or parts as OpenAI (`text`, `refusal`), Mistral and Anthropic (`thinking`)
    send them; a part without a kind is a text. Parts of unknown kinds are kept as JSON.
    """
    if isinstance(value, dict) and _is_text_part(value):
        value = [value]
    if not isinstance(value, list) or not value or not all(isinstance(p, str) or _is_part(p) for p in value):
        return _Content(get_text(value)) if value else _NO_CONTENT
    parts: dict[str, str] = {"text": "", "reasoning": "", "refusal": ""}
    for part in value:
        if isinstance(part, str):
            parts["text"] += part
            continue
        match part.get("type") or "text":
            case "text" | "output_text":
                parts["text"] += get_text(part.get("text"))
            case "refusal":
                parts["refusal"] += get_text(part.get("refusal"))
            case "thinking" | "reasoning":
                thought = part.get("thinking") or part.get("text")
                parts["reasoning"] += _read_thought(thought)
            case "image_url":
                parts["text"] += _describe_picture(part)
            case _:
                parts["text"] += json.dumps(part, ensure_ascii=False)
    return _Content(**parts)


def _describe_picture(part: Mapping[str, Any]) -> str:
    """A picture as a note, like those in results of tools; one elsewhere as a link."""
    picture = part.get("image_url")
    address = get_text(get_object(picture).get("url") or picture)
    head, _, data = address.partition(",")
    if not head.startswith("data:"):
        return "\n\n" + describe_block({"type": "resource_link", "name": "image", "uri": address})
    kind = head.removeprefix("data:").partition(";")[0]
    return "\n\n" + describe_block({"type": "image", "mimeType": kind, "data": data})


_TEXT_PART = frozenset({"type", "text", "index", "annotations", "cache_control"})


def _is_part(value: object) -> bool:
    return isinstance(value, dict) and (bool(value.get("type")) or _is_text_part(value))


def _is_text_part(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("text"), str) and value.keys() <= _TEXT_PART


def get_provider_fields(message: Mapping[str, Any]) -> JsonObject:
    """The fields of a message, or of a delta, that its provider wants back."""
    return {key: message[key] for key in PROVIDER_FIELDS if message.get(key)}


def _make_tool_call(call: Mapping[str, Any]) -> ModelToolCall:
    function = get_object(call.get("function"))
    return ModelToolCall(
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=read_arguments(function.get("arguments")),
        extra=read_extra_fields(call),
    )


def drop_foreign_calls(reply: ModelReply, tools: Sequence[JsonObject]) -> ModelReply:
    """The reply without calls of tools that it was not offered, in OpenAI's wire form: models call those of their own
    template. One that held nothing else is an empty reply."""
    named = [str(get_object(tool.get("function") or tool.get("custom") or tool).get("name")) for tool in tools]
    matched = ((call, match_tool_name(call.name, named)) for call in reply.tool_calls)
    calls = tuple(replace(call, name=name) for call, name in matched if name is not None)
    if calls == reply.tool_calls:
        return reply
    reason = "stop" if not calls and reply.finish_reason == "tool_calls" else reply.finish_reason
    return replace(reply, tool_calls=calls, finish_reason=reason)


def read_arguments(arguments: object) -> str:
    """A call's arguments as JSON text. Some endpoints send an object instead, nothing, `null`, or the text as JSON once
    more; others an empty object before the real one (Bedrock)."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    text = text.removeprefix("{}").strip()
    if text.startswith('"{'):
        with suppress(ValueError, RecursionError):
            text = str(json.loads(text))
    return "{}" if text in ("", "null") else text


def make_ids_distinct(calls: Iterable[ModelToolCall]) -> tuple[ModelToolCall, ...]:
    """The calls, each with an id of its own, by which its result is matched: one that has none, or that of
    a call before it, gets a new one."""
    distinct: dict[str, ModelToolCall] = {}
    for call in calls:
        call_id = call.id if call.id and call.id not in distinct else make_call_id()
        distinct[call_id] = replace(call, id=call_id)
    return tuple(distinct.values())


def read_extra_fields(call: Mapping[str, Any]) -> JsonObject:
    """A provider's own fields of a tool call, with those of its function under `function`."""
    extra = {key: value for key, value in call.items() if key not in _CALL_FIELDS and value is not None}
    function = get_object(call.get("function"))
    of_function = {key: value for key, value in function.items() if key not in ("name", "arguments") and value}
    return extra | {"function": of_function} if of_function else extra


def make_call_id() -> str:
    """An id for a call without one. It is unique across turns and has the nine letters and digits Mistral
    requires.
    """
    return secrets.token_hex(5)[:9]


_CALL_FIELDS = frozenset({"id", "type", "index", "function"})
