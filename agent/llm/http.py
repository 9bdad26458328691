"""`HttpModelClient`: calls any OpenAI-compatible endpoint over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from httptools import HttpParserError
from pydantic_core import PydanticSerializationError, to_json

from agent.core.errors import ModelDownError, ModelError, ModelOutputError, ModelRequestError, ModelTimeoutError
from agent.core.models import JsonObject
from agent.llm.cache_markers import mark_instructions
from agent.llm.connections import BrokenBodyError, ConnectingError, Connection, ConnectionPool
from agent.llm.faults import build_status_error, describe_connection_error
from agent.llm.parameters import ParameterSupport
from agent.llm.port import ModelChunk, ModelReply, ModelRequest
from agent.llm.replies import read_chunks, read_reply
from agent.llm.sse import iter_data_events

MAX_REPLY_BYTES = 20_000_000
"""No completion is larger; a reply that is would be somebody filling our memory."""
MAX_STREAM_BYTES = 10 * MAX_REPLY_BYTES
"""The same for a stream, whose every token comes in some 200 bytes of its own."""
CONNECT_SECONDS = 10.0
_FAULTS = (ConnectingError, BrokenBodyError, HttpParserError, OSError, ValueError)
"""What a call that came to nothing raises; ValueError for a host or a key that cannot be sent."""


class HttpModelClient:
    """Implements `ModelClient`. Repeats a call at once without the parameters its model refuses, and remembers them."""

    def __init__(self, base_url: str, api_key: str | None = None, *, cache_markers: bool = False) -> None:
        self._where = base_url.rstrip("/")
        self._cache_markers = cache_markers
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._opened: ConnectionPool | None = None
        self._support = ParameterSupport()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ModelClient.complete`."""
        requests = 0
        while True:
            body = self._support.build_body(request, stream=False)
            requests += 1
            try:
                reply = await self._complete(request, body)
            except ModelRequestError as error:
                error.requests = requests
                if not self._support.learn(request, body, error):
                    raise
            else:
                return reply if requests == 1 else replace(reply, requests=requests)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """See `ModelClient.stream`."""
        finished, requests = False, 0
        try:
            while True:
                requests += 1
                body = self._support.build_body(request, stream=True)
                async with self._post(request, body) as response:
                    if response.status < 300:
                        async for events in iter_data_events(_iter_within_timeout(response, request.timeout_s)):
                            for chunk in read_chunks(events, self._where):
                                finished = finished or chunk.finish_reason is not None
                                yield chunk if requests == 1 else chunk._replace(requests=requests)
                        break
                    answer = await _read_bounded(response, _get_deadline(request.timeout_s))
                    error = build_status_error(response.status, response.headers, answer, self._where)
                error.requests = requests
                if not self._support.learn(request, body, error):
                    raise error
        except _FAULTS as error:
            raise self._translate_error(error, request.timeout_s) from error
        if not finished:
            raise ModelOutputError(f"{self._where} ended its stream in the middle", agent_id="models")

    async def check(self) -> None:
        """See `ModelClient.check`. Requests the list of models; an endpoint without that list still counts as
        reachable.
        """
        status, headers, body = await self._list()
        if status >= 300 and status not in (404, 405):
            raise build_status_error(status, headers, body, self._where)

    async def list_models(self) -> list[str]:
        """Returns the ids of the endpoint's models, in its order. Raises `ModelError`."""
        status, headers, body = await self._list()
        if status >= 300:
            raise build_status_error(status, headers, body, self._where)
        try:
            data = json.loads(body).get("data")
        except (ValueError, AttributeError) as error:
            raise ModelOutputError(f"{self._where}/models is no list of models", agent_id="models") from error
        entries = data if isinstance(data, list) else []
        return [str(entry["id"]) for entry in entries if isinstance(entry, dict) and entry.get("id")]

    async def aclose(self) -> None:
        """See `ModelClient.aclose`."""
        if self._opened is not None:
            await self._opened.aclose()

    @property
    def _pool(self) -> ConnectionPool:
        """Opens the pool at the first call, so that a wrong URL is a failure of that call."""
        if self._opened is None:
            self._opened = ConnectionPool(self._where, self._headers)
        return self._opened

    async def _list(self) -> tuple[int, Mapping[str, str], bytes]:
        deadline = _get_deadline(CONNECT_SECONDS)
        try:
            async with self._pool.request(
                "GET", "/models", {}, b"", connect_s=CONNECT_SECONDS, deadline=deadline
            ) as response:
                return response.status, response.headers, await _read_bounded(response, deadline)
        except _FAULTS as error:
            raise describe_connection_error(self._where, error) from error

    async def _complete(self, request: ModelRequest, body: JsonObject) -> ModelReply:
        deadline = _get_deadline(request.timeout_s)
        try:
            async with self._post(request, body) as response:
                answer = await _read_bounded(response, deadline)
                if response.status >= 300:
                    raise build_status_error(response.status, response.headers, answer, self._where)
        except _FAULTS as error:
            raise self._translate_error(error, request.timeout_s) from error
        return read_reply(answer, self._where)

    def _post(self, request: ModelRequest, body: JsonObject) -> AbstractAsyncContextManager[Connection]:
        """Sends a model call. Yields the connection with the status of the response, and its body yet to be read."""
        return self._pool.request(
            "POST",
            "/chat/completions",
            {"x-stepgate-purpose": request.purpose},
            _encode(mark_instructions(body) if self._cache_markers else body),
            # Less than the whole, so that no connection and no answer are told apart.
            connect_s=min(CONNECT_SECONDS, request.timeout_s / 2),
            deadline=_get_deadline(request.timeout_s),
        )

    def _translate_error(self, error: Exception, timeout_s: float) -> ModelError:
        if isinstance(error, ConnectingError):
            return describe_connection_error(self._where, error)
        if isinstance(error, TimeoutError):
            return ModelTimeoutError(
                f"{self._where} gave no answer within {timeout_s:g} s (AGENT_LLM_TIMEOUT_S)", agent_id="models"
            )
        if isinstance(error, BrokenBodyError):
            return ModelOutputError(
                f"{self._where} broke off in the middle: {_describe_cause(error)}", agent_id="models"
            )
        return ModelDownError(f"{self._where} failed: {_describe_cause(error)}", agent_id="models")


def _get_deadline(timeout_s: float) -> float:
    return asyncio.get_running_loop().time() + timeout_s


async def _iter_within_timeout(response: Connection, timeout_s: float) -> AsyncIterator[bytes]:
    """Yields the bytes of a stream. Raises `TimeoutError` when no line ends within `timeout_s`."""
    deadline = _get_deadline(timeout_s)
    received = 0
    while piece := await response.read(deadline):
        received += len(piece)
        if received > MAX_STREAM_BYTES:
            raise ModelOutputError("the model's stream is larger than 200 MB", agent_id="models")
        yield piece
        if b"\n" in piece:
            deadline = _get_deadline(timeout_s)


async def _read_bounded(response: Connection, deadline: float) -> bytes:
    body = bytearray()
    while piece := await response.read(deadline):
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            raise ModelOutputError("the model's reply is larger than 20 MB", agent_id="models")
    return bytes(body)


def _encode(body: JsonObject) -> bytes:
    try:
        return to_json(body)  # a third of the time of `json`: a planner's schema is 30 KB
    except PydanticSerializationError:  # half a character, as some clients cut them
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _describe_cause(error: BaseException) -> str:
    return str(error) or type(error).__name__
