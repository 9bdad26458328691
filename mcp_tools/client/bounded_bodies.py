"""Limits the bodies that external MCP servers send over HTTP, decompressed piece by piece: a bomb counts as what it
becomes.

The SDK and httpx read a body to its end, however long it is.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import httpx2

from agent.core.errors import ToolError
from agent.net.coding import iter_decoded
from mcp_tools.client.stdio import MAX_MESSAGE_BYTES

EVENTS_TYPE: Final = "text/event-stream"
_DECODED: Final = ("gzip", "deflate")
CODINGS: Final = {"accept-encoding": ", ".join(_DECODED)}
"""The header for requests: what is decompressed here."""
TOO_LARGE: Final = f"it sends a message of more than {MAX_MESSAGE_BYTES:,} bytes"
_ENCODING = "content-encoding"


class UnreadableBodyError(httpx2.StreamError):
    """Raised by reading a body that is too large, or that is compressed badly."""


async def bound_body(response: httpx2.Response) -> None:
    """A hook of an HTTP client: from now on the body of the response is decompressed and limited as it is read.

    A stream of events may go on for ever; each of its events is limited by its reader.
    """
    is_stream = get_media_type(response) == EVENTS_TYPE
    response.stream = _BoundedBody(response, None if is_stream else MAX_MESSAGE_BYTES)
    if _ENCODING in response.headers:
        del response.headers[_ENCODING]


def get_media_type(response: httpx2.Response) -> str:
    """The media type of a response, in lower case; empty if it states none."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


async def read_or_nothing(response: httpx2.Response) -> bytes:
    """The body of a refusal, of which only the words are wanted; nothing if it cannot be read."""
    try:
        return await response.aread()
    except httpx2.StreamError:
        return b""


def _find_coding(header: str) -> str:
    """The codings of a header that are decoded here; what servers write there besides, such as `utf-8`, says nothing of
    the body."""
    named = (one.strip().lower().removeprefix("x-") for one in header.split(","))
    return ", ".join(one for one in named if one in _DECODED) or "identity"


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, limit: int | None) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._stream = response.stream
        self._limit = limit
        self._coding = _find_coding(response.headers.get(_ENCODING, ""))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        try:
            async with aclosing(iter_decoded(aiter(self._stream), self._coding, "the answer")) as pieces:
                async for piece in pieces:
                    received += len(piece)
                    if self._limit is not None and received > self._limit:
                        raise UnreadableBodyError(TOO_LARGE)
                    yield piece
        except ToolError as error:
            raise UnreadableBodyError(error.message) from error

    async def aclose(self) -> None:
        """Closes the response's stream."""
        await self._stream.aclose()
