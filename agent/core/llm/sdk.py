"""`LiteLLMClient`: every provider LiteLLM knows, by LiteLLM's model name, through its SDK.

The SDK is imported when it is first needed and in a thread: it costs about 4 s and 180 MB, which a gateway that
speaks to an endpoint by URL, or to none, must not pay.
"""

import asyncio
import importlib
import os
from collections.abc import AsyncIterator, Mapping
from types import ModuleType
from typing import Any

from agent.core.errors import (
    ModelAuthError,
    ModelContextError,
    ModelDownError,
    ModelError,
    ModelOutputError,
    ModelRateLimitError,
    ModelRequestError,
    ModelTimeoutError,
)
from agent.core.llm.faults import refuses_schema, retry_after
from agent.core.llm.port import ModelChunk, ModelReply, ModelRequest, ModelToolCall
from agent.core.llm.replies import read_chunk, read_usage

_ERRORS: tuple[tuple[str, type[ModelError]], ...] = (
    # The first that fits counts: LiteLLM's own classes derive from one another.
    ("ContextWindowExceededError", ModelContextError),
    ("AuthenticationError", ModelAuthError),
    ("PermissionDeniedError", ModelAuthError),
    ("RateLimitError", ModelRateLimitError),
    ("Timeout", ModelTimeoutError),
    ("APIConnectionError", ModelDownError),
    ("ServiceUnavailableError", ModelDownError),
    ("InternalServerError", ModelDownError),
    ("BadGatewayError", ModelDownError),
    ("APIResponseValidationError", ModelOutputError),
    ("JSONSchemaValidationError", ModelOutputError),
    ("BadRequestError", ModelRequestError),
    ("NotFoundError", ModelRequestError),
    ("UnprocessableEntityError", ModelRequestError),
    ("APIError", ModelDownError),
)


class LiteLLMClient:
    """Implements `ModelClient`. Keys come from the providers' own environment variables unless one is given."""

    def __init__(self, api_key: str | None = None, api_base: str | None = None) -> None:
        self._options: dict[str, str] = {}
        if api_key:
            self._options["api_key"] = api_key
        if api_base:
            self._options["api_base"] = api_base
        self._without_schema: set[str] = set()
        self._module: ModuleType | None = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ModelClient.complete`."""
        litellm = await self._litellm()
        try:
            response = await self._ask(litellm, request, stream=False)
        except ModelError as error:
            if request.response_schema is None or request.model in self._without_schema or not refuses_schema(error):
                raise
            self._without_schema.add(request.model)
            response = await self._ask(litellm, request, stream=False)
        return _reply(response, request, _cost(litellm, response))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """See `ModelClient.stream`."""
        litellm = await self._litellm()
        response = await self._ask(litellm, request, stream=True)
        finished = False
        try:
            async for event in response:
                chunk = read_chunk(event.model_dump())
                finished = finished or chunk.finish_reason is not None
                yield chunk
        except Exception as error:
            raise translate(litellm, error) from error
        # The SDK ends every stream with a "stop" of its own; only this tells whether the provider said so.
        if not finished or getattr(response, "received_finish_reason", "stop") is None:
            raise ModelOutputError(f"{request.model} ended its stream in the middle", agent_id="models")

    async def check(self) -> None:
        """See `ModelClient.check`: providers offer no free question, so only the SDK itself is tried."""
        await self._litellm()

    async def aclose(self) -> None:
        """See `ModelClient.aclose`."""
        if self._module is not None:
            await self._module.close_litellm_async_clients()

    async def _litellm(self) -> ModuleType:
        if self._module is None:
            self._module = await litellm_module()
        return self._module

    async def _ask(self, litellm: ModuleType, request: ModelRequest, *, stream: bool) -> Any:
        options: dict[str, Any] = {
            **self._options,
            "timeout": request.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            "extra_headers": {"X-Stepgate-Purpose": request.purpose},
            **request.wire(stream=stream, with_schema=request.model not in self._without_schema),
        }
        try:
            return await litellm.acompletion(**options)
        except Exception as error:
            raise translate(litellm, error) from error


async def litellm_module() -> ModuleType:
    """LiteLLM, imported in a thread where it was not yet, and silent."""
    # Without this the import fetches a price list from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    module = await asyncio.to_thread(importlib.import_module, "litellm")
    for switch, value in (("telemetry", False), ("suppress_debug_info", True), ("drop_params", True)):
        setattr(module, switch, value)
    return module


def translate(litellm: ModuleType, error: Exception) -> ModelError:
    """LiteLLM's error as ours. The SDK lets errors of many libraries through: what it does not name is `Down`."""
    if isinstance(error, ModelError):
        return error
    inner = getattr(error, "original_exception", None)
    if type(error).__name__ == "MidStreamFallbackError" and isinstance(inner, Exception):
        # Some chunks have come: whatever broke it, it is half a stream.
        return ModelOutputError(f"the stream broke off: {' '.join(str(inner).split())[:300]}", agent_id="models")
    message = " ".join(str(error).split())[:300]
    status = getattr(error, "status_code", None)
    for name, kind in _ERRORS:
        known = getattr(litellm, name, None) or getattr(litellm.exceptions, name, None)
        if known is not None and isinstance(error, known):
            ours = kind(message, agent_id="models", status=status)
            headers: Mapping[str, str] = getattr(error, "litellm_response_headers", None) or {}
            ours.retry_after_s = retry_after(headers)
            return ours
    return ModelDownError(f"LiteLLM failed with {type(error).__name__}: {message}", agent_id="models")


def _reply(response: Any, request: ModelRequest, cost: float | None) -> ModelReply:
    data = response.model_dump()
    choices = data.get("choices")
    if not choices:
        raise ModelOutputError(f"{request.model} answered without a choice", agent_id="models")
    message = choices[0].get("message") or {}
    calls = message.get("tool_calls") or []
    usage = read_usage(data.get("usage"))
    return ModelReply(
        text=message.get("content") or "",
        model=str(data.get("model") or request.model),
        finish_reason=str(choices[0].get("finish_reason") or "stop"),
        usage=usage if cost is None else usage.model_copy(update={"cost_usd": cost}),
        tool_calls=tuple(
            ModelToolCall(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls
        ),
        reasoning=message.get("reasoning_content") or "",
    )


def _cost(litellm: ModuleType, response: Any) -> float | None:
    """What the call cost by LiteLLM's price list; None where it knows no price."""
    try:
        cost = float(litellm.completion_cost(completion_response=response))
    except Exception:  # noqa: BLE001 - the SDK raises bare Exception for an unknown price
        return None
    return cost or None
