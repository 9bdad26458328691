"""The HTTP client of external MCP servers: the bodies of its responses are messages that the SDK can read."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import mcp_types as types

from mcp_tools.client.bounded_bodies import EVENTS_TYPE, TOO_LARGE, get_media_type, read_or_nothing
from mcp_tools.client.http_refusals import make_failure
from mcp_tools.client.lenient_messages import JSON_TYPE, parse_message, repair_json
from mcp_tools.client.stdio import MAX_MESSAGE_BYTES

_EVENT_STARTS = (b"data:", b"event")
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
            return _rebuild(response, stream=_RepairedEvents(response, request))
        if request.method != "POST" or response.status_code == _ACCEPTED or response.is_redirect:
            return response
        try:
            body = await response.aread()
        except httpx2.StreamError as error:
            return _rebuild(response, JSON_TYPE, content=_make_error(request, str(error)))
        if body.lstrip()[:5] in _EVENT_STARTS:
            return _rebuild(response, EVENTS_TYPE, content=body)
        repaired = repair_json(body, asked=_find_id(request))
        if repaired is None and (kind == JSON_TYPE or parse_message(body) is None):
            return response
        return _rebuild(response, JSON_TYPE, content=repaired or body)


def _find_id(request: httpx2.Request) -> object:
    """The id of the request in an HTTP request; None for a notification."""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.StreamError):
        return None
    return message.get("id") if isinstance(message, dict) else None


def _make_error(request: httpx2.Request, words: str) -> bytes:
    """An answer of the protocol in place of one that cannot be read."""
    error = {"code": types.INTERNAL_ERROR, "message": words}
    return json.dumps({"jsonrpc": "2.0", "id": _find_id(request), "error": error}).encode()


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
    """The events of a response. Of an event whose data is one line, as JSON is written, the message is repaired. In
    place of one that is too large, and of all behind it, the request that the response answers gets an error.
    """

    def __init__(self, response: httpx2.Response, request: httpx2.Request) -> None:
        self._stream = response.stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending = bytearray()
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        async for chunk in self._stream:
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                yield _repair_line(bytes(pending + line)) + b"\n"
                pending.clear()
            pending += rest
            if len(pending) > MAX_MESSAGE_BYTES:
                yield b"\n\ndata: " + _make_error(self._request, TOO_LARGE) + b"\n\n"
                return
        if pending:
            yield _repair_line(bytes(pending))

    async def aclose(self) -> None:
        """Closes the response's stream."""
        assert isinstance(self._stream, httpx2.AsyncByteStream)
        await self._stream.aclose()


def _repair_line(line: bytes) -> bytes:
    if not line.startswith(b"data:") or (repaired := repair_json(line[5:].strip())) is None:
        return line
    return b"data: " + repaired + (b"\r" if line.endswith(b"\r") else b"")
