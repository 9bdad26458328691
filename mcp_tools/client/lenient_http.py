"""The HTTP client of external MCP servers: the bodies of its responses are messages that the SDK can read."""

import codecs
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import mcp_types as types

from mcp_tools.client.bounded_bodies import EVENTS_TYPE, TOO_LARGE, get_media_type, read_or_nothing
from mcp_tools.client.http_refusals import make_failure
from mcp_tools.client.lenient_messages import (
    JSON_TYPE,
    find_answer,
    make_error_answer,
    parse_message,
    repair_json,
)
from mcp_tools.client.stdio import MAX_MESSAGE_BYTES

_EVENT_STARTS = (b"data:", b"event")
_TYPES = (b"message", b"endpoint")
"""The types of events that the SDK reads."""
_ACCEPTED = 202
_BODY_HEADERS = ("content-encoding", "content-length", "transfer-encoding")


class LenientHttpClient(httpx2.AsyncClient):
    """An HTTP client whose responses hold messages that the SDK can read, as JSON or as server-sent events."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Sends the request. Raises what the base class raises."""
        response = await super().send(request, **options)
        kind = get_media_type(response)
        if request.method == "POST" and response.is_error:
            body = b"" if kind == EVENTS_TYPE else await read_or_nothing(response)
            await response.aclose()
            return _rebuild(response, JSON_TYPE, content=make_failure(response, kind, body))
        if kind == EVENTS_TYPE:
            return _rebuild(response, stream=_RepairedEvents(response, _find_id(request)))
        if request.method != "POST" or response.status_code == _ACCEPTED or response.is_redirect:
            return response
        request_id = _find_id(request)
        try:
            body = await response.aread()
        except httpx2.StreamError as error:
            return _rebuild(response, JSON_TYPE, content=make_error_answer(request_id, str(error).encode()))
        if body.lstrip()[:5] in _EVENT_STARTS:
            return _rebuild(response, EVENTS_TYPE, content=body)
        repaired = repair_json(body, asked=request_id)
        if repaired is None and parse_message(body) is None and kind != "text/html":
            repaired = find_answer(body, request_id)  # one message a line
        if repaired is None and (kind == JSON_TYPE or parse_message(body) is None):
            return response
        return _rebuild(response, JSON_TYPE, content=repaired or body)


def _find_id(request: httpx2.Request) -> object:
    """The id of the request in an HTTP request; None for a notification, and for a stream of the server's own."""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.StreamError):
        return None
    return message.get("id") if isinstance(message, dict) else None


def _rebuild(response: httpx2.Response, kind: str = "", **body: Any) -> httpx2.Response:
    """The response with another body, and another media type where one is given."""
    dropped = (*_BODY_HEADERS, "content-type") if kind else _BODY_HEADERS
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in dropped]
    headers += [("content-type", kind)] if kind else []
    rebuilt = httpx2.Response(
        response.status_code, headers=headers, request=response.request, extensions=response.extensions, **body
    )
    rebuilt.next_request = response.next_request
    rebuilt.history = response.history
    return rebuilt


class _RepairedEvents(httpx2.AsyncByteStream):
    """The events of a response. Of an event whose data is one line, as JSON is written, the message is repaired.

    The SDK reads events of the type `message` only, so one of another type that holds a whole message becomes that. An
    `error` in other words is the answer to the request `asked` if the response ends without one. What replaces an event
    that is too large, and all behind it, is an answer, too.
    """

    def __init__(self, response: httpx2.Response, asked: object = None) -> None:
        self._stream = response.stream
        self._asked = asked
        self._type_line = b""
        """The line with the type of the current event, until its data shows whether it holds a message."""
        self._failure = b""
        """What an event of the type `error` said in other words, until an answer comes."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending, is_first = bytearray(), True
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        async for chunk in self._stream:
            *lines, rest = chunk.removeprefix(codecs.BOM_UTF8 if is_first else b"").split(b"\n")
            is_first = False
            for line in lines:
                yield self._repair_line(bytes(pending + line) + b"\n")
                pending.clear()
            pending += rest
            if len(pending) > MAX_MESSAGE_BYTES:
                if self._asked is None:
                    raise httpx2.SSEError(TOO_LARGE)
                yield b"\n\ndata: " + make_error_answer(self._asked, TOO_LARGE.encode()) + b"\n\n"
                return
        if pending:
            yield self._repair_line(bytes(pending))
        if self._failure:
            yield b"\n\ndata: " + make_error_answer(self._asked, self._failure) + b"\n\n"

    async def aclose(self) -> None:
        """Closes the response's stream."""
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        await self._stream.aclose()

    def _repair_line(self, line: bytes) -> bytes:
        if b"\r" in line.rstrip(b"\r\n"):  # several lines that end with CR alone
            return line
        if line.startswith(b"event:") and _read_field(line) not in _TYPES:
            self._type_line = line
            return b""
        type_line = self._type_line
        if not line.startswith(b"data:"):
            self._type_line = type_line if line.strip() else b""  # the end of an event without data
            return line
        self._type_line = b""
        data = _read_field(line)
        if type_line and not _is_whole_message(data):
            if self._asked is not None and _read_field(type_line) == b"error":
                self._failure = data
            return type_line + line
        message = repair_json(data)
        if self._failure and isinstance(parse_message(message or data), types.JSONRPCResponse | types.JSONRPCError):
            self._failure = b""
        if message is None:
            return line
        return b"data: " + message + line[len(line.rstrip(b"\r\n")) :]


def _is_whole_message(data: bytes) -> bool:
    """Whether the data of an event names the protocol. What servers report of a call's progress has an id or an error,
    too."""
    return b'"jsonrpc"' in data and parse_message(data) is not None


def _read_field(line: bytes) -> bytes:
    return line.partition(b":")[2].strip()
