"""`SafeClient`: what it refuses, where it connects, and when it stops. The servers are real, on loopback ports."""

import asyncio
import gzip
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent.core.errors import ToolDeniedError, ToolError, ToolTimeoutError
from agent.net import CONNECT_TIMEOUT_S, MAX_REDIRECTS, Address, Page, SafeClient
from agent.net import client as net

METADATA = "http://169.254.169.254/latest/meta-data/"
PUBLIC = "93.184.216.34"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def _page(_: web.Request) -> web.Response:
    return web.Response(text="hello", content_type="text/plain", charset="utf-8")


async def _big(_: web.Request) -> web.Response:
    return web.Response(body=b"x" * 1000)


async def _to(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"location": request.query_string})


async def _hops(request: web.Request) -> web.Response:
    left = int(request.query["left"])
    headers = {"location": f"/hops?left={left - 1}"} if left else {}
    return web.Response(status=307 if left else 200, headers=headers, text="arrived")


async def _nowhere(_: web.Request) -> web.Response:
    return web.Response(status=302, text="moved, who knows where")


async def _coded(request: web.Request) -> web.Response:
    """Thirty megabytes of zeros, compressed as often as the header has codings."""
    coding, body = request.query["coding"], b"\0" * 30_000_000
    for _ in coding.split(","):
        body = gzip.compress(body)
    return web.Response(body=body, headers={"content-encoding": coding})


async def _broken(_: web.Request) -> web.Response:
    return web.Response(body=b"this is no gzip", headers={"content-encoding": "gzip"})


async def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.close()
    return web.Response()


async def _silent(_: web.Request) -> web.Response:
    await asyncio.sleep(30)
    return web.Response()


async def _drip(request: web.Request) -> web.StreamResponse:
    """A byte every few milliseconds: never silent, never done."""
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(3000):
        await response.write(b".")
        await asyncio.sleep(0.01)
    return response


PAGES: dict[str, Handler] = {
    page.__name__.strip("_"): page
    for page in (_page, _big, _to, _hops, _nowhere, _coded, _broken, _cut, _silent, _drip)
}


class Site:
    """A site of awkward pages, and the requested paths."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        app = web.Application(middlewares=[self._note])
        for name, page in PAGES.items():
            app.router.add_get(f"/{name}", page)
        self.server = TestServer(app, host="127.0.0.1")

    @property
    def port(self) -> int:
        return self.server.port or 0

    def at(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/{path}"

    @web.middleware
    async def _note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        return await handler(request)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    await site.server.start_server(shutdown_timeout=0.1)
    yield site
    await site.server.close()


@pytest.fixture
async def client(site: Site) -> AsyncIterator[SafeClient]:
    """May access the site and nothing else inside."""
    client = SafeClient([f"127.0.0.1:{site.port}"])
    yield client
    await client.aclose()


@pytest.fixture(scope="module")
def make_public_client() -> SafeClient:
    """A client that may access nothing inside."""
    return SafeClient()


async def fetch(client: SafeClient, url: str, max_bytes: int = 100_000, timeout_s: float = 5) -> Page:
    return await client.get(url, max_bytes=max_bytes, timeout_s=timeout_s)


def make_resolver(*answers: list[str]) -> tuple[net.Resolver, list[str]]:
    """A resolver that returns the answers in order, and the names it was asked for."""
    left = list(answers)
    asked: list[str] = []

    async def look_up(host: str, _: int) -> list[Address]:
        asked.append(host)
        return [ipaddress.ip_address(text) for text in left.pop(0)]

    return look_up, asked


async def test_an_allowed_page_is_read(site: Site, client: SafeClient) -> None:
    page = await fetch(client, f" {site.at('page')}\n")
    assert (page.url, page.status, page.body) == (site.at("page"), 200, b"hello")
    assert (page.content_type, page.charset, page.truncated) == ("text/plain", "utf-8", False)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1/", "not a public address"),
        ("http://[::1]/", "not a public address"),
        ("http://[::ffff:127.0.0.1]/", "not a public address"),
        ("http://[64:ff9b::7f00:1]/", "not a public address"),
        ("http://127\u30020\u30020\u30021/", "not a public address"),
        ("http://@127.0.0.1/", "not a public address"),
        ("http://127.0.0.1#@example.com/", "not a public address"),
        (METADATA, "not a public address"),
        ("http://2130706433/", "four decimal numbers"),
        ("http://0x7f000001/", "four decimal numbers"),
        ("http://127.1/", "four decimal numbers"),
        ("http://0/", "four decimal numbers"),
        ("http://127.0.0.1./", "four decimal numbers"),
        ("http://017700000001/", "four decimal numbers"),
        ("http://0177.0.0.1/", "not a valid URL"),
        ("http://\uff11\uff12\uff17.0.0.1/", "not a valid URL"),
        ("http://[::1/", "not a valid URL"),
        ("http://[fe80::1%25eth0]/", "a zone"),
        ("http://[2606:4700:4700::1111%25eth0]/", "a zone"),
        ("http://127.0.0.1%00.example.com/", "an escape"),
        ("http://localhost/", "not a public host name"),
        ("http://LOCALHOST./", "not a public host name"),
        ("http://a.localhost/", "not a public host name"),
        ("http://a..example/", "not a public host name"),
        ("http:///path", "not a public host name"),
        ("http:127.0.0.1/", "not a public host name"),
        ("http://user@example.com/", "user name or password"),
        ("http://user:secret@example.com/", "user name or password"),
        ("http://example.com\\@127.0.0.1/", "user name or password"),
        ("http://example.com:22/", "port 22"),
        ("http://example.com:6379/", "port 6379"),
        ("ftp://example.com/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("//example.com/", "only http and https"),
        ("", "only http and https"),
    ],
)
async def test_refused_addresses(make_public_client: SafeClient, url: str, why: str) -> None:
    for refused in (make_public_client.check_url(url), fetch(make_public_client, url)):
        with pytest.raises(ToolDeniedError, match=why):
            await refused


async def test_an_allowance_is_for_its_port_and_spelling_only(site: Site, client: SafeClient) -> None:
    for url in ("http://127.0.0.1:8080/", site.at("page", "2130706433"), site.at("page", "[::ffff:127.0.0.1]")):
        with pytest.raises(ToolDeniedError):
            await fetch(client, url)
    assert site.asked == []


@pytest.mark.parametrize("addresses", [["10.0.0.1"], [PUBLIC, "127.0.0.1"], ["::1", PUBLIC], ["fe80::1"]], ids=str)
async def test_every_address_of_a_name_must_be_public(addresses: list[str]) -> None:
    look_up, _ = make_resolver(addresses)
    with pytest.raises(ToolDeniedError, match="not a public address"):
        await fetch(SafeClient(resolver=look_up), "http://inside.example/")


async def test_a_name_that_moves_inside_after_it_was_checked_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(net, "PORTS", frozenset({site.port}))  # only the address speaks against it
    look_up, asked = make_resolver([PUBLIC], ["127.0.0.1"])
    client = SafeClient(resolver=look_up)
    await client.check_url(site.at("page", "rebind.example"))
    with pytest.raises(ToolDeniedError, match=r"rebind\.example is refused: 127\.0\.0\.1"):
        await fetch(client, site.at("page", "rebind.example"))
    assert (asked, site.asked) == (["rebind.example"] * 2, [])


async def test_the_connection_goes_to_the_address_that_was_checked(site: Site) -> None:
    # The second lookup would find nothing; and nobody listens on the first address.
    look_up, asked = make_resolver(["127.0.0.2", "127.0.0.1"])
    page = await fetch(SafeClient(["pinned.example"], look_up), site.at("page", "pinned.example"))
    assert (page.body, asked) == (b"hello", ["pinned.example"])


async def test_an_unknown_name_is_a_failure_not_a_refusal() -> None:
    with pytest.raises(ToolError, match="no host named") as caught:
        await fetch(SafeClient(), "http://nothing.invalid/")
    assert not isinstance(caught.value, ToolDeniedError)


@pytest.mark.parametrize(
    "location",
    [METADATA, "http://127.0.0.1:8080/", "//10.0.0.1/", "http://localhost/", "file:///etc/passwd", "http://0x7f.1/"],
)
async def test_a_redirect_to_the_inside_is_refused(site: Site, client: SafeClient, location: str) -> None:
    with pytest.raises(ToolDeniedError):
        await fetch(client, site.at(f"to?{location}"))
    assert len(site.asked) == 1


async def test_a_redirect_from_https_to_http_is_refused(client: SafeClient) -> None:
    plain = httpx.Response(302, headers={"location": "http://example.com/"})
    client._client = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: plain))  # needs no certificate
    with pytest.raises(ToolDeniedError, match="from https to http"):
        await fetch(client, "https://example.com/")


async def test_redirects_are_followed_to_their_limit(site: Site, client: SafeClient) -> None:
    page = await fetch(client, site.at(f"hops?left={MAX_REDIRECTS}"))
    assert (page.body, page.url) == (b"arrived", site.at("hops?left=0"))
    with pytest.raises(ToolError, match=f"redirects more than {MAX_REDIRECTS} times"):
        await fetch(client, site.at(f"hops?left={MAX_REDIRECTS + 1}"))


async def test_a_redirect_without_a_target_is_an_answer(site: Site, client: SafeClient) -> None:
    page = await fetch(client, site.at("nowhere"))
    assert (page.status, page.body, len(site.asked)) == (302, b"moved, who knows where", 1)


@pytest.mark.parametrize(("limit", "truncated"), [(999, True), (1000, False), (1001, False)])
async def test_byte_limit(site: Site, client: SafeClient, limit: int, truncated: bool) -> None:
    page = await fetch(client, site.at("big"), max_bytes=limit)
    assert (len(page.body), page.truncated) == (min(limit, 1000), truncated)


async def test_a_compressed_page_counts_as_what_it_becomes(site: Site, client: SafeClient) -> None:
    page = await fetch(client, site.at("coded?coding=gzip"), max_bytes=5000)
    assert (page.body, page.truncated) == (b"\0" * 5000, True)


@pytest.mark.parametrize("coding", ["gzip, gzip", "gzip,gzip,gzip", "br", "zstd"])
async def test_compression_without_a_bound_is_refused(site: Site, client: SafeClient, coding: str) -> None:
    with pytest.raises(ToolError, match="only gzip and deflate"):
        await fetch(client, site.at(f"coded?coding={coding}"))


@pytest.mark.parametrize("path", ["broken", "cut"])
async def test_a_broken_answer_is_a_failure(site: Site, client: SafeClient, path: str) -> None:
    with pytest.raises(ToolError, match="cannot be fetched"):
        await fetch(client, site.at(path))


@pytest.mark.parametrize("path", ["silent", "drip"])
async def test_the_time_limit_is_for_the_whole(site: Site, client: SafeClient, path: str) -> None:
    with pytest.raises(ToolTimeoutError, match=r"within 0\.3 s"):
        await fetch(client, site.at(path), timeout_s=0.3)


async def test_no_shorter_limit_than_the_one_asked_for_ends_a_slow_answer(client: SafeClient) -> None:
    limits = client._client.timeout
    assert (limits.read, limits.write, limits.pool, limits.connect) == (None, None, None, CONNECT_TIMEOUT_S)
