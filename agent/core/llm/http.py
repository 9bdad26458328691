"""`HttpModelClient`: any OpenAI-compatible endpoint, over aiohttp.

A model call is most of what a turn costs us: spoken to directly, aiohttp takes a third of the CPU that it takes behind
httpx's API, and a fifteenth of what httpx's own pool takes. Loaded only where an endpoint is set: 0.2 s of start-up.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from time import monotonic
from typing import Any

import aiohttp
from pydantic_core import PydanticSerializationError, to_json

from agent.core.errors import ModelDownError, ModelError, ModelOutputError, ModelTimeoutError
from agent.core.llm.faults import fault_of, refuses_schema, unreachable
from agent.core.llm.port import ModelChunk, ModelReply, ModelRequest
from agent.core.llm.replies import read_chunk, read_reply
from agent.core.llm.sse import data_events
from agent.core.models import JsonObject

MAX_REPLY_BYTES = 20_000_000
"""No completion is larger; a reply that is would be somebody filling our memory."""
CONNECT_SECONDS = 10.0
_FAULTS = (aiohttp.ClientError, TimeoutError, ValueError)
"""What aiohttp raises for a call that came to nothing; ValueError for a host or a key that cannot be sent."""
MAX_CONNECTIONS = 1000
"""Runs and rooms bound how many calls there are; this only bounds a mistake."""


class HttpModelClient:
    """Implements `ModelClient`. Remembers which models refused a response schema and asks those without one."""

    def __init__(self, base_url: str, api_key: str | None = None) -> None:
        self._where = base_url.rstrip("/")
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._opened: aiohttp.ClientSession | None = None
        self._streaming: set[aiohttp.ClientResponse] = set()
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
        finished, response = False, None
        try:
            async with asyncio.timeout(request.timeout_s):  # the head too can come one byte at a time
                response = await self._session.post(**self._call(request, stream=True))
                if response.status >= 300:
                    async with response:
                        raise fault_of(response.status, response.headers, await _bounded(response), self._where)
            self._streaming.add(response)
            async with response:
                async for event in data_events(_in_time(response, request.timeout_s)):
                    if event is None:
                        break
                    if "error" in event:
                        raise ModelDownError(
                            f"{self._where} broke off: {json.dumps(event['error'])[:300]}", agent_id="models"
                        )
                    chunk = read_chunk(event)
                    finished = finished or chunk.finish_reason is not None
                    yield chunk
        except _FAULTS as error:
            raise self._translated(error, request.timeout_s) from error
        finally:
            if response is not None:
                self._streaming.discard(response)
        if not finished:
            raise ModelOutputError(f"{self._where} ended its stream in the middle", agent_id="models")

    async def check(self) -> None:
        """See `ModelClient.check`: asks for the list of models; an endpoint without one is reachable all the same."""
        status, headers, body = await self._list()
        if status >= 300 and status not in (404, 405):
            raise fault_of(status, headers, body, self._where)

    async def models(self) -> list[str]:
        """The ids of the endpoint's models, in its order. Raises `ModelError`."""
        status, headers, body = await self._list()
        if status >= 300:
            raise fault_of(status, headers, body, self._where)
        try:
            data = json.loads(body).get("data")
        except (ValueError, AttributeError) as error:
            raise ModelOutputError(f"{self._where}/models is no list of models", agent_id="models") from error
        entries = data if isinstance(data, list) else []
        return [str(entry["id"]) for entry in entries if isinstance(entry, dict) and entry.get("id")]

    async def aclose(self) -> None:
        """See `ModelClient.aclose`."""
        for response in tuple(self._streaming):  # who reads one would wait for ever: the session only drops them
            response.close()
        if self._opened is not None:
            await self._opened.close()

    @property
    def _session(self) -> aiohttp.ClientSession:
        """Opened with the first call, since it belongs to the loop that is running then."""
        if self._opened is None:
            self._opened = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
            )
        return self._opened

    async def _list(self) -> tuple[int, Mapping[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=CONNECT_SECONDS)
        try:
            async with self._session.get(f"{self._where}/models", timeout=timeout, allow_redirects=False) as response:
                return response.status, response.headers, await _bounded(response)
        except _FAULTS as error:
            raise unreachable(self._where, error) from error

    async def _complete(self, request: ModelRequest) -> ModelReply:
        try:
            async with self._session.post(**self._call(request, stream=False)) as response:
                body = await _bounded(response)
        except _FAULTS as error:
            raise self._translated(error, request.timeout_s) from error
        if response.status >= 300:
            raise fault_of(response.status, response.headers, body, self._where)
        return read_reply(body, self._where)

    def _call(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        """The arguments of the HTTP call."""
        body = request.wire(stream=stream, with_schema=request.model not in self._without_schema)
        return {
            "url": f"{self._where}/chat/completions",
            "data": _encoded(body),
            "headers": {"x-stepgate-purpose": request.purpose},
            "timeout": aiohttp.ClientTimeout(
                total=None if stream else request.timeout_s,
                # Less than the whole, so that no connection and no answer are told apart.
                sock_connect=min(CONNECT_SECONDS, request.timeout_s / 2),
                sock_read=request.timeout_s,
            ),
            "allow_redirects": False,
        }

    def _translated(self, error: Exception, timeout_s: float) -> ModelError:
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL):
            return unreachable(self._where, error)
        if isinstance(error, TimeoutError):
            return ModelTimeoutError(
                f"{self._where} gave no answer within {timeout_s:g} s (AGENT_LLM_TIMEOUT_S)", agent_id="models"
            )
        if isinstance(error, aiohttp.ClientPayloadError):
            return ModelOutputError(f"{self._where} broke off in the middle: {_cause(error)}", agent_id="models")
        return ModelDownError(f"{self._where} failed: {_cause(error)}", agent_id="models")


async def _in_time(response: aiohttp.ClientResponse, timeout_s: float) -> AsyncIterator[bytes]:
    """The bytes of a stream. `TimeoutError` when no line has ended for `timeout_s`: the socket notices silence, but no
    answer that drips byte by byte."""
    line_ended = monotonic()
    async for piece in response.content.iter_any():
        if b"\n" not in piece and monotonic() - line_ended > timeout_s:
            raise TimeoutError
        yield piece
        if b"\n" in piece:
            line_ended = monotonic()


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            raise ModelOutputError("the model's reply is larger than 20 MB", agent_id="models")
    return bytes(body)


def _encoded(body: JsonObject) -> bytes:
    try:
        return to_json(body)  # a third of the time of `json`: a planner's schema is 30 KB
    except PydanticSerializationError:  # half a character, as some clients cut them
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _cause(error: BaseException) -> str:
    return str(error) or type(error).__name__
