"""Bodies of external MCP servers: as they are compressed, or say that they are."""

import gzip
import zlib
from collections.abc import AsyncIterator

import httpx2
import pytest

from mcp_tools.client.bounded_bodies import bound_body

BODY = b'{"jsonrpc": "2.0"}' * 20


class Stream(httpx2.AsyncByteStream):
    """Sends a body in two pieces."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body[:7]
        yield self._body[7:]


async def read(coding: str, body: bytes) -> bytes:
    response = httpx2.Response(
        200, headers={"content-encoding": coding, "content-type": "application/json"}, stream=Stream(body)
    )
    await bound_body(response)
    return await response.aread()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(BODY)),
        ("X-GZIP", gzip.compress(BODY)),
        ("identity, gzip", gzip.compress(BODY)),
        ("deflate", zlib.compress(BODY)),
        *((coding, BODY) for coding in ("identity", "utf-8", "none", "br", "")),
    ],
)
async def test_a_body_is_read_as_it_is_compressed(coding: str, body: bytes) -> None:
    assert await read(coding, body) == BODY


async def test_two_layers_are_refused() -> None:
    with pytest.raises(httpx2.StreamError, match="gzip, gzip"):
        await read("gzip, gzip", gzip.compress(gzip.compress(BODY)))
