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


@pytest.mark.parametrize("coding", ["gzip", "X-GZIP", "identity, gzip"])
async def test_a_packed_body_is_read(coding: str) -> None:
    assert await read(coding, gzip.compress(BODY)) == BODY
    assert await read("deflate", zlib.compress(BODY)) == BODY


@pytest.mark.parametrize("coding", ["identity", "utf-8", "none", "br", ""])
async def test_what_names_no_packing_that_is_used_says_nothing(coding: str) -> None:
    assert await read(coding, BODY) == BODY


async def test_two_layers_are_refused() -> None:
    with pytest.raises(httpx2.StreamError, match="gzip, gzip"):
        await read("gzip, gzip", gzip.compress(gzip.compress(BODY)))
