"""`SafeClient.open`: one response as it arrives. And decoding a body piece by piece."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError, ToolTimeoutError
from agent.net import HostNotFoundError, SafeClient
from agent.net.client import resolve_host
from agent.net.coding import PIECE, iter_decoded, parse_content_encoding
from tests.support.website import Page, Website


async def body(client: SafeClient, url: str, *, silence_s: float = 5) -> bytes:
    async with client.open(url, silence_s=silence_s) as answer:
        return b"".join([piece async for piece in answer.body])


async def test_an_answer_has_its_head_before_its_body(site: Website, client: SafeClient) -> None:
    site.put("/a", Page(b"x" * 1_000_000, status=404, headers={"x-name": "value"}))
    async with client.open(site.at("/a"), headers={"X-Asked": "yes"}) as answer:
        assert (answer.url, answer.status, answer.location) == (site.at("/a"), 404, None)
        assert answer.headers["X-Name"] == "value"
    assert site.asked[0].headers["x-asked"] == "yes"
    assert await body(client, site.at("/a")) == b"x" * 1_000_000


async def test_a_redirect_is_told_and_not_followed(site: Website, client: SafeClient) -> None:
    site.put("/a", Page(status=302, headers={"location": "b?c#d"}))
    async with client.open(site.at("/a")) as answer:
        assert answer.location == "b?c#d"
        assert client.resolve_redirect(answer) == site.at("/b?c#d")
    assert site.paths() == ["/a"]


async def test_what_is_sent_arrives(site: Website, client: SafeClient) -> None:
    site.put("/a", Page(b"done"))
    async with client.open(site.at("/a"), method="POST", content=b"what") as answer:
        assert answer.status == 200
    assert site.asked[0].method == "POST"


@pytest.mark.parametrize("inside", ["http://10.0.0.1/", "http://127.0.0.1:1/", "file:///etc/passwd", "http://h:22/"])
async def test_the_inside_is_refused_as_an_address_and_as_a_redirect(
    site: Website, client: SafeClient, inside: str
) -> None:
    with pytest.raises(ToolDeniedError):
        await body(client, inside)
    if not inside.startswith("http://10."):  # its address is looked at when it is connected to
        site.put("/a", Page(status=302, headers={"location": inside}))
        async with client.open(site.at("/a")) as answer:
            with pytest.raises(ToolDeniedError):
                client.resolve_redirect(answer)


async def test_a_body_that_breaks_off_is_a_failure(site: Website, client: SafeClient) -> None:
    site.put("/a", Page(b"x" * 1000, cuts=[10]))
    with pytest.raises(ToolError, match="cannot be fetched"):
        await body(client, site.at("/a"))


async def test_silence_has_a_limit(site: Website, client: SafeClient) -> None:
    never = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await never.wait()
        return response

    site.put("/a", silent)
    with pytest.raises(ToolTimeoutError, match=r"silent for longer than 0\.2 s"):
        await body(client, site.at("/a"), silence_s=0.2)


async def test_a_name_without_an_address() -> None:
    """Also without a resolver, which may be different the next time."""
    client = SafeClient()
    with pytest.raises(ToolError, match="there is no host"):
        await body(client, "http://nothing.invalid/")
    with pytest.raises(HostNotFoundError):
        await resolve_host(f"{'a' * 64}.example", 80)
    await client.aclose()


# Codings


async def _pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def decode(data: bytes, coding: str, size: int = 1000) -> bytes:
    out = bytearray()
    async for piece in iter_decoded(_pieces(data, size), coding, "http://h/"):
        assert 0 < len(piece) <= max(PIECE, size)
        out += piece
    return bytes(out)


def _raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@given(data=st.binary(max_size=5000), times=st.integers(0, 300), size=st.integers(1, 700))
async def test_every_coding_gives_back_what_went_in(data: bytes, times: int, size: int) -> None:
    whole = data * times
    assert await decode(gzip.compress(whole), "gzip", size) == whole
    assert await decode(zlib.compress(whole), "deflate", size) == whole
    assert await decode(_raw(whole), "deflate", size) == whole
    assert await decode(whole, "identity", size) == whole


async def test_gzip_may_come_in_members_and_with_padding() -> None:
    assert await decode(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 50, "gzip", 7) == b"one two"
    assert await decode(b"", "gzip") == b""


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_packed_body_that_ends_too_early_or_is_none(coding: str) -> None:
    packed = (gzip.compress if coding == "gzip" else zlib.compress)(bytes(range(256)) * 100)
    for data, why in ((packed[:-1], "too early"), (packed[:20], "too early"), (b"\xff" * 50, "damaged")):
        with pytest.raises(ToolError, match=why):
            await decode(data, coding)


async def test_a_bomb_comes_in_pieces() -> None:
    size = 0
    async for piece in iter_decoded(_pieces(gzip.compress(b"\0" * 50_000_000), 65536), "gzip", "http://h/"):
        assert len(piece) <= PIECE
        size += len(piece)
    assert size == 50_000_000


def test_other_codings_and_layers_are_refused() -> None:
    assert parse_content_encoding(None, "u") == "identity"
    assert parse_content_encoding(" GZIP ", "u") == "gzip"
    for header in ("br", "gzip, gzip", "zstd"):
        with pytest.raises(ToolInputError, match="only gzip and deflate"):
            parse_content_encoding(header, "u")
