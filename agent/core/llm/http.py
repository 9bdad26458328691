"""`HttpModelClient`: any OpenAI-compatible endpoint, through the httpx API with an injected transport.

In production the transport is aiohttp's: a model call costs a fifth of the CPU of httpx's own pool, and 500
clients get 15 times the requests a second.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from agent.core.errors import ModelDownError, ModelError, ModelOutputError, ModelTimeoutError
from agent.core.llm.faults import fault_of, refuses_schema, unreachable
from agent.core.llm.port import ModelChunk, ModelReply, ModelRequest, ModelToolCall
from agent.core.llm.sse import data_events
from agent.core.models import JsonObject, Usage

MAX_REPLY_BYTES = 20_000_000
"""No completion is larger; a reply that is would be somebody filling our memory."""
CONNECT_SECONDS = 10.0


def production_transport() -> httpx.AsyncBaseTransport:
    """aiohttp's transport: pooled, without a limit of its own (runs and rooms bound how many calls there are)."""
    from httpx_aiohttp import AiohttpTransport  # noqa: PLC0415 - 0.2 s of start-up that rules mode need not pay

    return AiohttpTransport(limits=httpx.Limits(max_connections=1000, max_keepalive_connections=200))


class HttpModelClient:
    """Implements `ModelClient`. Remembers which models refused a response schema and asks those without one."""

    def __init__(
        self, base_url: str, api_key: str | None = None, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._where = base_url.rstrip("/")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.AsyncClient(transport=transport, headers=headers, trust_env=False)
        self._without_schema: set[str] = set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ModelClient.complete`."""
        try:
            return await self._complete(request)
        except ModelError as error:
            if request.response_schema is None or request.model in self._without_schema or not refuses_schema(error):
                raise
            self._without_schema.add(request.model)
            return await self._complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """See `ModelClient.stream`."""
        finished = False
        try:
            async with self._client.stream("POST", **self._call(request, stream=True)) as response:
                if response.status_code >= 400:
                    body = await _bounded(response)
                    raise fault_of(response.status_code, response.headers, body, self._where)
                async for event in data_events(response.aiter_bytes()):
                    if event is None:
                        break
                    if "error" in event:
                        raise ModelDownError(
                            f"{self._where} broke off: {json.dumps(event['error'])[:300]}", agent_id="models"
                        )
                    chunk = read_chunk(event)
                    finished = finished or chunk.finish_reason is not None
                    yield chunk
        except httpx.HTTPError as error:
            raise self._translated(error, request) from error
        if not finished:
            raise ModelOutputError(f"{self._where} ended its stream in the middle", agent_id="models")

    async def check(self) -> None:
        """See `ModelClient.check`: asks for the list of models; an endpoint without one is reachable all the same."""
        try:
            response = await self._client.get(f"{self._where}/models", timeout=CONNECT_SECONDS)
        except httpx.HTTPError as error:
            raise unreachable(self._where, error) from error
        if response.status_code >= 400 and response.status_code not in (404, 405):
            raise fault_of(response.status_code, response.headers, response.content, self._where)

    async def models(self) -> list[str]:
        """The ids of the endpoint's models, in its order. Raises `ModelError`."""
        try:
            response = await self._client.get(f"{self._where}/models", timeout=CONNECT_SECONDS)
            data = response.json().get("data") if response.status_code < 400 else None
        except httpx.HTTPError as error:
            raise unreachable(self._where, error) from error
        except (ValueError, AttributeError) as error:
            raise ModelOutputError(f"{self._where}/models is no list of models", agent_id="models") from error
        if response.status_code >= 400:
            raise fault_of(response.status_code, response.headers, response.content, self._where)
        entries = data if isinstance(data, list) else []
        return [str(entry["id"]) for entry in entries if isinstance(entry, dict) and entry.get("id")]

    async def aclose(self) -> None:
        """See `ModelClient.aclose`."""
        await self._client.aclose()

    async def _complete(self, request: ModelRequest) -> ModelReply:
        try:
            async with self._client.stream("POST", **self._call(request, stream=False)) as response:
                body = await _bounded(response)
        except httpx.HTTPError as error:
            raise self._translated(error, request) from error
        if response.status_code >= 400:
            raise fault_of(response.status_code, response.headers, body, self._where)
        return read_reply(body, self._where)

    def _call(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        """The arguments of the HTTP call."""
        body: JsonObject = {"model": request.model, "messages": list(request.messages)}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        if request.tools:
            body["tools"] = list(request.tools)
        if request.response_schema is not None and request.model not in self._without_schema:
            schema = request.response_schema
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": schema.name, "strict": True, "schema": schema.schema},
            }
        body |= request.options
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return {
            "url": f"{self._where}/chat/completions",
            "content": json.dumps(body, ensure_ascii=False).encode(),
            "headers": {"content-type": "application/json", "x-stepgate-purpose": request.purpose},
            "timeout": httpx.Timeout(request.timeout_s, connect=min(CONNECT_SECONDS, request.timeout_s)),
        }

    def _translated(self, error: httpx.HTTPError, request: ModelRequest) -> ModelError:
        if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError):
            return unreachable(self._where, error)
        if isinstance(error, httpx.TimeoutException):
            return ModelTimeoutError(
                f"{self._where} gave no answer within {request.timeout_s:g} s (AGENT_LLM_TIMEOUT_S)", agent_id="models"
            )
        if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
            return ModelOutputError(f"{self._where} broke off in the middle: {_cause(error)}", agent_id="models")
        return ModelDownError(f"{self._where} failed: {_cause(error)}", agent_id="models")


def read_reply(body: bytes, where: str) -> ModelReply:
    """A completion from its JSON. Raises `ModelOutputError` for anything that is none."""
    try:
        data = json.loads(body)
    except ValueError as error:
        raise ModelOutputError(f"{where} answered 200 without JSON: {body[:100]!r}", agent_id="models") from error
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ModelOutputError(f"{where} answered 200 without a choice", agent_id="models")
    message = choices[0].get("message") or {}
    calls = message.get("tool_calls") or []
    text = message.get("content") or ""
    return ModelReply(
        text=text if isinstance(text, str) else json.dumps(text),
        model=str(data.get("model") or ""),
        finish_reason=str(choices[0].get("finish_reason") or ("tool_calls" if calls else "stop")),
        usage=read_usage(data.get("usage")),
        tool_calls=tuple(_tool_call(call, index) for index, call in enumerate(calls) if isinstance(call, dict)),
        reasoning=str(message.get("reasoning_content") or message.get("reasoning") or ""),
    )


def read_chunk(event: Mapping[str, Any]) -> ModelChunk:
    """One chunk of a streamed completion."""
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    delta = choice.get("delta") or {}
    usage = event.get("usage")
    return ModelChunk(
        text=delta.get("content") or "",
        reasoning=delta.get("reasoning_content") or delta.get("reasoning") or "",
        finish_reason=choice.get("finish_reason"),
        usage=read_usage(usage) if usage else None,
        tool_calls=tuple(delta.get("tool_calls") or ()),
    )


def read_usage(usage: object) -> Usage:
    """Tokens of one call; the cost where the endpoint tells it (OpenRouter does)."""
    if not isinstance(usage, dict):
        return Usage(model_calls=1)
    cost = usage.get("cost")
    return Usage(
        model_calls=1,
        prompt_tokens=int(usage.get("prompt_tokens") or 0),
        completion_tokens=int(usage.get("completion_tokens") or 0),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )


def _tool_call(call: Mapping[str, Any], index: int) -> ModelToolCall:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    return ModelToolCall(
        id=str(call.get("id") or f"call_{index}"),
        name=str(function.get("name") or ""),
        # Some endpoints send the object itself instead of its JSON text.
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    )


async def _bounded(response: httpx.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            raise ModelOutputError("the model's reply is larger than 20 MB", agent_id="models")
    return bytes(body)


def _cause(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__
