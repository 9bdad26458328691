"""What a provider says, read into our terms: whole replies, chunks of streams, tokens."""

import json
from collections.abc import Mapping
from math import inf
from typing import Any

from agent.core.errors import ModelOutputError
from agent.core.llm.port import ModelChunk, ModelReply, ModelToolCall
from agent.core.models import Usage


def read_reply(body: bytes, where: str) -> ModelReply:
    """A completion from its JSON. Raises `ModelOutputError` for anything that is none."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ModelOutputError(f"{where} answered 200 without JSON: {body[:100]!r}", agent_id="models") from error
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ModelOutputError(f"{where} answered 200 without a choice", agent_id="models")
    message = _object(choices[0].get("message"))
    calls = _objects(message.get("tool_calls"))
    return ModelReply(
        text=_text(message.get("content")),
        model=str(data.get("model") or ""),
        finish_reason=str(choices[0].get("finish_reason") or ("tool_calls" if calls else "stop")),
        usage=read_usage(data.get("usage")),
        tool_calls=tuple(_tool_call(call, index) for index, call in enumerate(calls)),
        reasoning=str(message.get("reasoning_content") or message.get("reasoning") or ""),
    )


def read_chunk(event: Mapping[str, Any]) -> ModelChunk:
    """One chunk of a streamed completion."""
    choices = event.get("choices")
    choice = _object(choices[0] if isinstance(choices, list) and choices else None)
    delta = _object(choice.get("delta"))
    usage = event.get("usage")
    return ModelChunk(
        text=_text(delta.get("content")),
        reasoning=_text(delta.get("reasoning_content") or delta.get("reasoning")),
        finish_reason=choice.get("finish_reason"),
        usage=read_usage(usage) if usage else None,
        tool_calls=tuple(_objects(delta.get("tool_calls"))),
    )


def read_usage(usage: object) -> Usage:
    """Tokens of one call; the cost where the endpoint tells it (OpenRouter does)."""
    if not isinstance(usage, dict):
        return Usage(model_calls=1)
    return Usage(
        model_calls=1,
        prompt_tokens=int(_amount(usage.get("prompt_tokens")) or 0),
        completion_tokens=int(_amount(usage.get("completion_tokens")) or 0),
        cost_usd=_amount(usage.get("cost")),
    )


def _amount(value: object) -> float | None:
    """A number that budgets can count. None for others: one below zero, or NaN, would keep them from being spent."""
    try:
        amount = float(value) if isinstance(value, int | float | str) else -1.0
    except (ValueError, OverflowError):
        return None
    return amount if 0 <= amount < inf else None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value) if value else ""


def _tool_call(call: Mapping[str, Any], index: int) -> ModelToolCall:
    function = _object(call.get("function"))
    arguments = function.get("arguments")
    return ModelToolCall(
        id=str(call.get("id") or f"call_{index}"),
        name=str(function.get("name") or ""),
        # Some endpoints send the object itself instead of its JSON text.
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    )
