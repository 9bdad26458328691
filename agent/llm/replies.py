"""Parses provider responses: whole replies, stream chunks, token counts."""

import copy
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from pydantic import JsonValue

from agent.core.errors import ModelOutputError
from agent.core.models import PROVIDER_FIELDS, JsonObject, Usage
from agent.llm.faults import build_body_error
from agent.llm.port import ONE_CALL, ModelChunk, ModelReply, ModelToolCall


def read_reply(body: bytes, where: str) -> ModelReply:
    """Parses a completion from its JSON text. Raises `ModelOutputError` for anything else, and the matching error where
    the provider sent one with status 200, as OpenRouter does.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ModelOutputError(f"{where} answered 200 without JSON: {body[:100]!r}", agent_id="models") from error
    if isinstance(data, dict) and data.get("error") and not data.get("choices"):
        raise build_body_error(data["error"], where)
    return read_completion(data, where)


def read_completion(data: object, where: str) -> ModelReply:
    """Parses a completion from OpenAI's object. Raises `ModelOutputError` where it has no choice."""
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ModelOutputError(f"{where} answered 200 without a choice", agent_id="models")
    message = _get_object(choices[0].get("message"))
    calls = _list_objects(message.get("tool_calls"))
    content = _read_content(message.get("content"))
    refusal = content.refusal or _get_text(message.get("refusal"))
    return ModelReply(
        text=content.text or refusal,
        model=str(data.get("model") or ""),
        finish_reason=str(choices[0].get("finish_reason") or ("tool_calls" if calls else "stop")),
        usage=read_usage(data.get("usage")),
        tool_calls=tuple(_make_tool_call(call) for call in calls),
        reasoning=_get_text(message.get("reasoning_content") or message.get("reasoning")) or content.reasoning,
        provider_fields=_get_provider_fields(message),
        refused=bool(refusal) and not content.text,
    )


def read_chunks(events: Iterable[Mapping[str, Any]], where: str) -> Iterator[ModelChunk]:
    """Parses chunks of a streamed completion that arrived together. Neighbours with nothing but text, a finish reason
    and usage become one chunk: each chunk passes ten functions on its way to the log.

    Raises the matching error for an error of the provider in place of a chunk.
    """
    texts: list[str] = []
    finish_reason: str | None = None
    usage: Usage | None = None
    for event in events:
        text = _read_plain_text(event)
        if text is not None:
            texts.append(text)
            continue
        chunk = None if "error" in event else read_chunk(event)
        if chunk is not None and not chunk.has_parts_besides_text:
            texts.append(chunk.text)
            finish_reason = finish_reason if chunk.finish_reason is None else chunk.finish_reason
            usage = chunk.usage or usage
            continue
        if texts:
            yield ModelChunk("".join(texts), finish_reason=finish_reason, usage=usage)
            texts, finish_reason, usage = [], None, None
        if chunk is None:
            raise build_body_error(event["error"], where)
        yield chunk
    if texts:
        yield ModelChunk("".join(texts), finish_reason=finish_reason, usage=usage)


def _read_plain_text(event: Mapping[str, Any]) -> str | None:
    """Returns the text of a chunk that holds nothing else, as most do; None for other chunks."""
    try:
        choice = event["choices"][0]
        delta = choice["delta"]
        text = delta["content"]
    except (LookupError, TypeError):
        return None
    if not isinstance(text, str) or "error" in event or event.get("usage") or choice.get("finish_reason") is not None:
        return None
    has_more = len(delta) > 1 and any(value for key, value in delta.items() if key not in _PLAIN_FIELDS)
    return None if has_more else text


_PLAIN_FIELDS = frozenset({"content", "role"})


def read_chunk(event: Mapping[str, Any]) -> ModelChunk:
    """Parses one chunk of a streamed completion."""
    choices = event.get("choices")
    choice = _get_object(choices[0] if isinstance(choices, list) and choices else None)
    delta = _get_object(choice.get("delta"))
    reported = event.get("usage")
    usage = read_usage(reported) if reported else None
    if not delta:  # the end of the text, or the usage behind it
        return ModelChunk(finish_reason=choice.get("finish_reason"), usage=usage)
    content = _read_content(delta.get("content"))
    return ModelChunk(
        text=content.text,
        reasoning=_get_text(delta.get("reasoning_content") or delta.get("reasoning")) or content.reasoning,
        finish_reason=choice.get("finish_reason"),
        usage=usage,
        tool_calls=tuple(_list_objects(delta.get("tool_calls"))),
        provider_fields=_get_provider_fields(delta),
        refusal=content.refusal or _get_text(delta.get("refusal")),
    )


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
    known = next(
        (
            one
            for one in reversed(items)
            if isinstance(one, dict) and isinstance(item, dict) and index is not None and one.get("index") == index
            and one.get("type") == item.get("type")
        ),
        None,
    )  # fmt: skip
    if not isinstance(known, dict) or not isinstance(item, dict):
        items.append(copy.deepcopy(item))
        return
    for key, value in item.items():
        before = known.get(key)
        if key in _JOINED and isinstance(before, str) and isinstance(value, str):
            known[key] = before + value
        elif value is not None:
            known[key] = value


def read_usage(usage: object) -> Usage:
    """Parses the tokens of one call, and its cost where the endpoint reports it, as OpenRouter does."""
    if not isinstance(usage, dict):
        return ONE_CALL
    return Usage.build_unchecked(
        model_calls=1,
        prompt_tokens=int(_read_amount(usage.get("prompt_tokens")) or 0),
        completion_tokens=int(_read_amount(usage.get("completion_tokens")) or 0),
        cached_tokens=_read_detail(usage, "prompt_tokens_details", "cached_tokens"),
        reasoning_tokens=_read_detail(usage, "completion_tokens_details", "reasoning_tokens"),
        cost_usd=_read_amount(usage.get("cost")),
        estimated=False,
    )


def _read_detail(usage: dict[str, Any], group: str, name: str) -> int:
    """Returns a part of a total, or 0 if the endpoint does not report it. DeepSeek names its cache elsewhere."""
    reported = _get_object(usage.get(group)).get(name)
    if reported is None and name == "cached_tokens":
        reported = usage.get("prompt_cache_hit_tokens")
    return int(_read_amount(reported) or 0)


def _read_amount(value: object) -> float | None:
    """Returns a number that budgets can count. None for negative numbers and NaN, which would let a budget grow."""
    if value is None:
        return None
    try:
        amount = float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return None
    return amount if 0 <= amount < inf else None


def _get_object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list_objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []


def _get_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value) if value else ""


class _Content(NamedTuple):
    """The content of a message, sorted by the kinds of its parts."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""


_NO_CONTENT = _Content()


def _read_content(value: object) -> _Content:
    """Parses a message's content: a text, or parts as OpenAI (`text`, `refusal`), Mistral and Anthropic (`thinking`)
    send
    them. Parts of unknown kinds are kept as JSON.
    """
    if not isinstance(value, list) or not value or not all(isinstance(p, dict) and "type" in p for p in value):
        return _Content(_get_text(value)) if value else _NO_CONTENT
    found: dict[str, str] = {"text": "", "reasoning": "", "refusal": ""}
    for part in value:
        match part["type"]:
            case "text" | "output_text":
                found["text"] += _get_text(part.get("text"))
            case "refusal":
                found["refusal"] += _get_text(part.get("refusal"))
            case "thinking" | "reasoning":
                thought = part.get("thinking") or part.get("text")
                found["reasoning"] += _read_content(thought).text
            case _:
                found["text"] += json.dumps(part, ensure_ascii=False)
    return _Content(**found)


def _get_provider_fields(message: Mapping[str, Any]) -> JsonObject:
    return {key: message[key] for key in PROVIDER_FIELDS if message.get(key)}


def _make_tool_call(call: Mapping[str, Any]) -> ModelToolCall:
    function = _get_object(call.get("function"))
    return ModelToolCall(
        id=str(call.get("id") or make_call_id()),
        name=str(function.get("name") or ""),
        arguments=read_arguments(function.get("arguments")),
        extra=read_extra_fields(call),
    )


def read_arguments(arguments: object) -> str:
    """Returns a call's arguments as JSON text. Some endpoints send an object instead, or nothing."""
    return (arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)) or "{}"


def read_extra_fields(call: Mapping[str, Any]) -> JsonObject:
    """Returns a provider's own fields of a tool call, with those of its function under `function`."""
    extra = {key: value for key, value in call.items() if key not in _CALL_FIELDS and value is not None}
    function = _get_object(call.get("function"))
    of_function = {key: value for key, value in function.items() if key not in ("name", "arguments") and value}
    return extra | {"function": of_function} if of_function else extra


def make_call_id() -> str:
    """Returns an id for a call without one. It is unique across turns and has the nine letters and digits Mistral
    requires.
    """
    return secrets.token_hex(5)[:9]


_CALL_FIELDS = frozenset({"id", "type", "index", "function"})
