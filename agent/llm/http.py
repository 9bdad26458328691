"""`HttpModelClient`: calls any OpenAI-compatible endpoint over aiohttp.

Model calls are most of the CPU cost of a turn. aiohttp used directly takes a third of the CPU that it takes behind
httpx's API, and a fifteenth of httpx's own pool. Loaded only where an endpoint is set, because it adds 0.2 s to
start-up.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler
from pydantic_core import PydanticSerializationError, to_json

from agent.core.errors import ModelAuthError, ModelDownError, ModelError, ModelOutputError, ModelTimeoutError
from agent.core.models import JsonObject
from agent.llm.cache_markers import mark_instructions
from agent.llm.chunks import has_thoughts
from agent.llm.endpoint_origin import TYPED_IN, EndpointOrigin, hide_key
from agent.llm.faults import build_status_error, describe_connection_error
from agent.llm.listed_models import read_listing
from agent.llm.model_address import build_authorization, find_key_fault, split_login
from agent.llm.ollama import add_ollama_details
from agent.llm.parameters import LEARNABLE, ParameterSupport
from agent.llm.port import ModelChunk, ModelReply, ModelRequest
from agent.llm.schema_dialect import find_dialect
from agent.llm.stream_reader import MAX_REPLY_BYTES, StreamReader
from agent.llm.streamed_body import read_body
from agent.llm.token_timer import TokenTimer

MAX_STREAM_BYTES = 10 * MAX_REPLY_BYTES
"""The same for a stream, whose every token comes in some 200 bytes of its own."""
LARGE_BODY_BYTES = 2**20
"""The body of a request that is sent piece by piece."""
CONNECT_SECONDS = 10.0
STALE_SECONDS = 1.0
"""How soon a call fails on a connection that was closed before it, in seconds."""
USAGE_SECONDS = 5.0
"""How long the end of a stream and its usage may come after the reply, in seconds. The reply counts without them."""
_FAULTS = (aiohttp.ClientError, TimeoutError, ValueError)
"""The exceptions of aiohttp for a failed call; ValueError for a host or a key that cannot be sent."""
MAX_CONNECTIONS = 1000
"""Runs and rooms bound how many calls there are; this only bounds a mistake."""


@dataclass(slots=True)
class _Sending:
    """One call on its way."""

    on_kept_connection: bool = False


@dataclass(slots=True)
class _Opened:
    """What a streamed call took to be opened: the bodies that were sent, one a request."""

    bodies: list[JsonObject] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return len(self.bodies)


def _trace_kept_connections() -> aiohttp.TraceConfig:
    """A trace that marks the calls which are sent on a connection of an earlier one."""

    async def mark(_: aiohttp.ClientSession, context: Any, __: aiohttp.TraceConnectionReuseconnParams) -> None:
        if isinstance(context.trace_request_ctx, _Sending):
            context.trace_request_ctx.on_kept_connection = True

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(mark)
    return trace


class HttpModelClient:
    """Implements `ModelClient`. Repeats a call at once without the parameters its model refuses, and remembers them."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        cache_markers: bool = False,
        socket: str | None = None,
        origin: EndpointOrigin = TYPED_IN,
        extra_body: JsonObject | None = None,
    ) -> None:
        """`extra_body` holds further fields of every request; they win over the gateway's own.
        `socket` is the path of a Unix socket behind which the endpoint is."""
        address = split_login(base_url.rstrip("/"))
        self._api_key = api_key or address.login
        self._origin = origin
        self._socket = socket
        self._extra_body = extra_body or {}
        self._where = address.base_url
        self._cache_markers = cache_markers
        self._headers = {"content-type": "application/json"}
        if self._api_key:
            self._headers["Authorization"] = build_authorization(self._api_key)
        self._opened: aiohttp.ClientSession | None = None
        self._streaming: set[aiohttp.ClientResponse] = set()
        self._support = ParameterSupport(find_dialect(urlsplit(self._where).hostname or ""))

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ModelClient.complete`."""
        bodies: list[JsonObject] = []
        while True:
            bodies.append(self._support.build_body(request, stream=False))
            try:
                with self._explain_errors():
                    reply = await self._complete(request, bodies[-1])
            except LEARNABLE as error:
                error.requests = len(bodies)
                if not self._support.learn(request, bodies, error):
                    raise
            else:
                self._support.confirm(request, bodies[-1], thinks=has_thoughts(reply.reasoning, reply.text))
                reply = self._support.restore_reply(request, reply)
                return reply if len(bodies) == 1 else replace(reply, requests=len(bodies))

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """See `ModelClient.stream`."""
        if request.response_schema is not None:
            return self._support.restore_chunks(request, self._stream_learning(request))
        # Without a schema, a model that has replied once costs no frame more for each chunk.
        has_replied = self._support.has_replied(request.model)
        return self._stream(request, _Opened()) if has_replied else self._stream_learning(request)

    async def _stream_learning(self, request: ModelRequest) -> AsyncGenerator[ModelChunk, None]:
        """Streams; once more in another form if the first thing that comes is a refusal of this one."""
        opened, has_begun = _Opened(), False
        while not has_begun:
            try:
                async with aclosing(self._stream(request, opened)) as chunks:
                    async for chunk in chunks:
                        has_begun = True
                        yield chunk
            except LEARNABLE as error:
                is_in_stream = "reported" in error.details  # those before it were learnt from when it was opened
                if has_begun or not is_in_stream or not self._support.learn(request, opened.bodies, error):
                    raise
            else:
                return

    async def _stream(self, request: ModelRequest, opened: _Opened) -> AsyncGenerator[ModelChunk, None]:
        reader, response = StreamReader(self._where, self._support.get_reply_limit(request)), None
        timer = TokenTimer(request.timeout_s)
        with self._explain_errors():
            try:
                response = await self._open_stream(request, opened)
                self._streaming.add(response)
                async with response:
                    with timer.watch(response.close):
                        async for piece in _iter_bounded(response):
                            for chunk in reader.feed(piece):
                                timer.stop(is_token=chunk.is_token)
                                yield chunk if opened.requests == 1 else chunk._replace(requests=opened.requests)
                                timer.restart()
                            if reader.is_done:
                                break
                            if reader.has_finished:
                                timer.shorten(USAGE_SECONDS)
            except _FAULTS as error:
                if not reader.has_finished:  # after that only the usage is missing
                    if timer.has_expired or (timer.has_token and isinstance(error, TimeoutError)):
                        raise self._build_timeout_error(request.timeout_s, has_token=timer.has_token) from error
                    raise self._translate_error(error, request.timeout_s) from error
            finally:
                if response is not None:
                    self._streaming.discard(response)
            for chunk in reader.end():
                yield chunk
            self._support.confirm(request, opened.bodies[-1], thinks=reader.has_thoughts)

    async def check(self) -> None:
        """See `ModelClient.check`. Requests the list of models; an endpoint without that list still counts as
        reachable.
        """
        with self._explain_errors():
            status, headers, body = await self._list()
            if status >= 300 and status not in (404, 405):
                raise build_status_error(status, headers, body, self._where)

    async def list_models(self) -> list[str]:
        """The ids of the endpoint's models, in its order. Raises `ModelError`."""
        data = (await self.read_listing()).get("data")
        entries = data if isinstance(data, list) else []
        return [str(entry["id"]) for entry in entries if isinstance(entry, dict) and entry.get("id")]

    async def read_listing(self) -> dict[str, Any]:
        """The endpoint's list of models as it is. Raises `ModelError`."""
        with self._explain_errors():
            status, headers, body = await self._list()
            if status >= 300:
                raise build_status_error(status, headers, body, self._where)
        try:
            listing = read_listing(json.loads(body))
        except ValueError:
            listing = None
        if listing is None:
            raise ModelOutputError(f"{self._where}/models is not a list of models", agent_id="models")
        await add_ollama_details(listing, self._read_root)
        return listing

    async def _read_root(self, path: str) -> dict[str, Any]:
        """The JSON object at a path beside the API; an empty one if there is none."""
        try:
            status, _, body = await self._get(self._where.removesuffix("/v1") + path)
            content = json.loads(body) if status == 200 else None
        except (ModelError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    async def aclose(self) -> None:
        """See `ModelClient.aclose`."""
        for response in tuple(self._streaming):  # who reads one would wait for ever: the session only drops them
            response.close()
        if self._opened is not None:
            await self._opened.close()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except ModelError as error:
            hide_key(error, self._api_key)
            self._origin.explain(error)
            raise

    @property
    def _session(self) -> aiohttp.ClientSession:
        """Opens the session at the first call, because it belongs to the event loop that runs then. Raises
        `ModelAuthError` for a key that no header can hold.
        """
        if self._opened is None:
            if self._api_key and (fault := find_key_fault(self._api_key)):
                refused = ModelAuthError(f"the key of {self._where} {fault}", agent_id="models")
                refused.remedy = "key"
                raise refused
            connector = aiohttp.UnixConnector(self._socket) if self._socket else ModelConnector(limit=MAX_CONNECTIONS)
            self._opened = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                trace_configs=[_trace_kept_connections()],
            )
        return self._opened

    async def _list(self) -> tuple[int, Mapping[str, str], bytes]:
        return await self._get(f"{self._where}/models")

    async def _get(self, url: str) -> tuple[int, Mapping[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=CONNECT_SECONDS)
        try:
            async with self._session.get(url, timeout=timeout, allow_redirects=False) as response:
                return response.status, response.headers, await _read_bounded(response)
        except _FAULTS as error:
            raise describe_connection_error(self._where, error) from error

    async def _complete(self, request: ModelRequest, body: JsonObject) -> ModelReply:
        try:
            async with await self._post(self._build_call_arguments(request, body, stream=False)) as response:
                answer = await _read_bounded(response)
        except _FAULTS as error:
            raise self._translate_error(error, request.timeout_s) from error
        if response.status >= 300:
            raise build_status_error(response.status, response.headers, answer, self._where)
        return read_body(answer, self._where, request.model)

    async def _open_stream(self, request: ModelRequest, opened: _Opened) -> aiohttp.ClientResponse:
        """The response of a streamed call after its status was checked. Notes the body and the requests it took."""
        while True:
            opened.bodies.append(self._support.build_body(request, stream=True))
            async with asyncio.timeout(request.timeout_s):  # the head too can come one byte at a time
                response = await self._post(self._build_call_arguments(request, opened.bodies[-1], stream=True))
                if response.status < 300:
                    return response
                async with response:
                    error = build_status_error(
                        response.status, response.headers, await _read_bounded(response), self._where
                    )
            error.requests = opened.requests
            if not self._support.learn(request, opened.bodies, error):
                raise error

    async def _post(self, arguments: dict[str, Any]) -> aiohttp.ClientResponse:
        """Sends a call; once more if it was given a kept connection that was closed before it could be sent.

        llama.cpp's server closes a connection after each stream and does not announce it: the next call may get that
        connection before its end is noticed.
        """
        started = monotonic()
        sending = _Sending()
        try:
            return await self._session.post(**_open_body(arguments), trace_request_ctx=sending)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            if not sending.on_kept_connection or monotonic() - started > STALE_SECONDS:  # the server was at work on it
                raise
        return await self._session.post(**_open_body(arguments))

    def _build_call_arguments(self, request: ModelRequest, body: JsonObject, *, stream: bool) -> dict[str, Any]:
        """The arguments of the HTTP call."""
        body = {**body, **self._extra_body}
        return {
            "url": f"{self._where}/chat/completions",
            "data": _encode(mark_instructions(body) if self._cache_markers else body),
            "headers": {"x-stepgate-purpose": request.purpose},
            "timeout": aiohttp.ClientTimeout(
                total=None if stream else request.timeout_s,
                # Shorter than the total timeout, to tell a failed connection from a slow reply.
                sock_connect=min(CONNECT_SECONDS, request.timeout_s / 2),
                sock_read=request.timeout_s,
            ),
            "allow_redirects": False,
        }

    def _translate_error(self, error: Exception, timeout_s: float) -> ModelError:
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL):
            return describe_connection_error(self._where, error)
        if isinstance(error, TimeoutError):
            return self._build_timeout_error(timeout_s, has_token=False)
        if isinstance(error, aiohttp.ClientPayloadError):
            return ModelOutputError(
                f"{self._where} broke off in mid-reply: {_describe_cause(error)}", agent_id="models"
            )
        return ModelDownError(f"{self._where} failed: {_describe_cause(error)}", agent_id="models")

    def _build_timeout_error(self, timeout_s: float, *, has_token: bool) -> ModelTimeoutError:
        what = "sent no further token for" if has_token else "gave no answer within"
        return ModelTimeoutError(f"{self._where} {what} {timeout_s:g} s (AGENT_LLM_TIMEOUT_S)", agent_id="models")


async def _iter_bounded(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yields the bytes of a stream. Raises `ModelOutputError` for one that is too large."""
    received = 0
    async for piece in response.content.iter_any():
        received += len(piece)
        if received > MAX_STREAM_BYTES:
            raise ModelOutputError("the model's stream is larger than 200 MB", agent_id="models")
        yield piece


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            raise ModelOutputError("the model's reply is larger than 20 MB", agent_id="models")
    return bytes(body)


def _encode(body: JsonObject) -> bytes:
    try:
        return to_json(body)  # a third of the time of `json`: a planner's schema is 30 KB
    except PydanticSerializationError:  # half a character, as some clients cut them
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _open_body(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with a large body, such as one with pictures, as a stream: aiohttp writes bytes in one piece,
    during which nothing else runs, and warns of it.
    """
    body = arguments["data"]
    return arguments | {"data": BytesIO(body)} if len(body) > LARGE_BODY_BYTES else arguments


def _describe_cause(error: BaseException) -> str:
    return str(error) or type(error).__name__


class ModelConnector(TCPConnector):
    """Connections to model endpoints."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        connection: type[ResponseHandler] = _ModelConnection
        self._factory = partial(connection, loop=self._loop)


class _ModelConnection(ResponseHandler):
    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resumes reading if it was paused.

        aiohttp calls this for every chunk of a body that is read, and each time runs its parser on nothing and resumes
        a socket that was never paused: six functions a chunk.
        """
        if self._reading_paused:
            super().resume_reading(resume_parser)
