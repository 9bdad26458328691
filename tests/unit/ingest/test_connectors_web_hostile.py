"""`WebConnector` on sites that mean no good: each costs a page at most, never the walk, the memory or the inside."""

import asyncio
import gzip
from pathlib import Path

import pytest
from aiohttp import web

from agent.net import SafeClient
from gateway.features.documents.engine.ingest.connectors.crawl import WebLimits
from gateway.features.documents.engine.ingest.connectors.page_links import parse_page
from gateway.features.documents.engine.ingest.connectors.sitemaps import parse_sitemap
from gateway.features.documents.engine.ingest.connectors.source_client import RetryPolicy, SourceClient
from gateway.features.documents.engine.ingest.connectors.web import WebConnector
from gateway.features.documents.engine.ingest.errors import ConnectorError
from tests.support.crawling import Crawler
from tests.support.website import Page, Website


@pytest.fixture
def crawler(site: Website, client: SafeClient, tmp_path: Path) -> Crawler:
    return Crawler(site, client, tmp_path, WebLimits(page_bytes=1_000_000))


async def _bomb(_: web.Request) -> web.Response:
    return web.Response(
        body=gzip.compress(b"\0" * 200_000_000, 1), headers={"content-encoding": "gzip", "content-type": "text/html"}
    )


async def _twice(_: web.Request) -> web.Response:
    return web.Response(
        body=gzip.compress(gzip.compress(b"x")), headers={"content-encoding": "gzip, gzip", "content-type": "text/html"}
    )


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/html"})
    await response.prepare(request)
    while True:
        await response.write(b"x" * 65536)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (Page(b"x" * 50_000_000), "larger than 1000000 bytes"),
        (_endless, "larger than 1000000 bytes"),
        (_bomb, "larger than 1000000 bytes"),
        (_twice, "compressed as"),
        (Page(b"x" * 1000, cuts=[10] * 3), "cannot be fetched"),
        (Page(b"no gzip", headers={"content-encoding": "gzip"}), "damaged"),
        (Page(status=302, headers={"location": "/bad"}), "redirects more than"),
        (Page(status=302, headers={"location": "http://127.0.0.1:22/"}), "port 22 is refused"),
        (Page(status=302, headers={"location": "http://169.254.169.254/latest/meta-data/"}), "another site"),
        (Page(status=302, headers={"location": "gopher://h/"}), "refused"),
        (Page(status=302), "302"),
        (Page(status=304), "never read"),
    ],
    ids=[
        "50 MB", "no end", "gzip bomb", "gzip in gzip", "cut off", "no gzip", "redirect loop", "redirect to a port",
        "redirect inside", "redirect to gopher", "redirect to nowhere", "304 unasked",
    ],
)  # fmt: skip
async def test_a_bad_page_costs_itself_only(site: Website, crawler: Crawler, bad: Page, why: str) -> None:
    site.html("/", "/bad", "/good")
    site.put("/bad", bad)
    site.html("/good")
    found = await crawler.walk()
    assert found.names == ["", "good"]
    [missed] = found.missed
    assert why in missed.error.message
    assert not missed.gone
    assert crawler.left() == []


async def test_a_single_page_that_leads_inside_is_refused(site: Website, crawler: Crawler) -> None:
    site.put("/", Page(status=302, headers={"location": "http://169.254.169.254/latest/meta-data/"}))
    for start in ("/", "http://169.254.169.254/", "http://127.0.0.1:9/", "http://0x7f.1/", "http://localhost/"):
        with pytest.raises(ConnectorError, match="refused"):
            await crawler.walk(start, recursive=False)


async def test_a_slow_drip_is_left(site: Website, client: SafeClient, tmp_path: Path) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/html"})
        await response.prepare(request)
        while True:
            await response.write(b".")
            await asyncio.sleep(0.01)

    site.html("/", "/drip", "/good")
    site.put("/drip", drip)
    site.html("/good")
    crawler = Crawler(site, client, tmp_path)
    wire = SourceClient(client, RetryPolicy(attempts=2, sleep=crawler.clock.sleep), timeout_s=1.0)
    crawler.connector = WebConnector(wire, clock=crawler.clock)
    found = await crawler.walk()
    assert found.names == ["", "good"]
    assert "within 1 s" in found.missed[0].error.message


async def test_a_page_with_a_hundred_thousand_links(site: Website, client: SafeClient, tmp_path: Path) -> None:
    site.html("/", *(f"/{number}" for number in range(100_000)))
    for number in range(20):
        site.html(f"/{number}")
    limits = WebLimits(pages=10, links=500)
    found = await Crawler(site, client, tmp_path, limits).walk()
    assert found.names == ["", *map(str, range(9))]
    assert "491 more addresses" in found.missed[0].error.message
    # So many links are not kept with the page, so that it is asked for whole the next time.
    assert len(found.fetched[0].version) < 20_000


async def test_a_calendar_without_end_ends_at_the_page_limit(site: Website, client: SafeClient, tmp_path: Path) -> None:
    async def month(request: web.Request) -> web.Response:
        number = int(request.query.get("month", 0))
        links = "".join(f'<a href="/?month={number + step}">.</a>' for step in (1, 2, 3))
        return web.Response(text=f"<p>{number}</p>{links}", content_type="text/html")

    for number in range(100):
        site.put(f"/?month={number}" if number else "/", month)
    found = await Crawler(site, client, tmp_path, WebLimits(pages=12, depth=1000)).walk()
    assert len(found.fetched) == 12
    assert "the limit of 12 pages" in found.missed[0].error.message


async def test_a_maze_of_one_page_is_one_page(site: Website, client: SafeClient, tmp_path: Path) -> None:
    """Relative links that grow for ever below pages that are all the same."""

    async def same(_: web.Request) -> web.Response:
        return web.Response(text='<a href="more/">more</a>', content_type="text/html")

    for depth in range(50):
        site.put("/" + "more/" * depth, same)
    found = await Crawler(site, client, tmp_path, WebLimits(depth=1000)).walk()
    assert found.names == [""]
    assert site.paths() == ["/", "/more/"]


async def test_the_bytes_of_the_whole_walk_are_bounded(site: Website, client: SafeClient, tmp_path: Path) -> None:
    site.html("/", *(f"/{number}" for number in range(10)))
    for number in range(10):
        site.put(f"/{number}", Page(str(number).encode() * 40_000))
    found = await Crawler(site, client, tmp_path, WebLimits(total_bytes=100_000)).walk()
    assert found.names == ["", "0", "1"]
    assert all("larger than" in one.error.message or "not requested" in one.error.message for one in found.missed)


async def test_the_time_of_the_whole_walk_is_bounded(site: Website, client: SafeClient, tmp_path: Path) -> None:
    site.html("/", *(f"/{number}" for number in range(10)))
    for number in range(10):
        site.html(f"/{number}")
    found = await Crawler(site, client, tmp_path, WebLimits(seconds=30, pause_s=10)).walk()
    assert 1 < len(found.fetched) < 6
    assert "the limit of 30 s" in found.missed[-1].error.message


@pytest.mark.parametrize(
    "body",
    [
        b"<!doctype html><html><body><p>Disallow: /</p></body></html>",
        b"\x00\xff\xfe" * 1000,
        b"User-agent: *\nDisallow: /private\n" * 100_000,
        b"Disallow: /\n",
    ],
    ids=["HTML", "noise", "3 MB", "rules of nobody"],
)
async def test_an_odd_robots_txt(site: Website, crawler: Crawler, body: bytes) -> None:
    site.put("/robots.txt", Page(body))
    site.html("/")
    assert (await crawler.walk()).names == [""]


async def test_a_rule_made_to_be_slow_is_not(site: Website, crawler: Crawler) -> None:
    rule = "Disallow: /" + "*a" * 500 + "b$\n"
    site.put("/robots.txt", Page(("User-agent: *\n" + rule * 50).encode()))
    site.html("/")
    async with asyncio.timeout(10):
        await crawler.walk("/", recursive=False)
        with pytest.raises(ConnectorError, match="404"):
            await crawler.walk("/" + "a" * 1500, recursive=False)


LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "/private"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY f SYSTEM "file:///etc/passwd">]>
<urlset><url><loc>&b;</loc></url><url><loc>&f;</loc></url><url><loc>/a</loc></url></urlset>"""


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        (LAUGHS, []),
        (LAUGHS.decode().replace('<?xml version="1.0"?>', "").encode("utf-16"), []),
        (gzip.compress(b"<urlset>" + b" " * 50_000_000), []),
        (b"\x1f\x8bnonsense", []),
        (b"", []),
        (b"<urlset><url><loc>/a</loc></url><url><lo", ["/a"]),
        (b"<html><body><p>not here</p></body></html>", []),
        (b"<x>" * 5000 + b"<url><loc>/a</loc></url>", []),
        (b"<urlset><url><loc/></url><url><loc><b>x</b></loc></url><loc>/b</loc></urlset>", []),
    ],
    ids=["entities", "entities in UTF-16", "bomb", "no gzip", "empty", "cut off", "HTML", "deep", "odd"],
)
def test_odd_sitemaps(data: bytes, pages: list[str]) -> None:
    assert parse_sitemap(data).pages == pages


async def test_a_sitemap_of_sitemaps_without_end(site: Website, crawler: Crawler) -> None:
    for number in range(60):
        index = "".join(f"<sitemap><loc>/{number + step}.xml</loc></sitemap>" for step in range(30))
        site.put(f"/{number}.xml", Page(f"<sitemapindex>{index}</sitemapindex>".encode()))
    site.put("/robots.txt", Page(f"Sitemap: {site.at('/0.xml')}".encode()))
    site.html("/")
    assert (await crawler.walk()).names == [""]
    assert sum(one.path.endswith(".xml") for one in site.asked) == 20


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 100, b"<" * 10_000, b"<div>" * 100_000, b"<a href=", b"\xff\xfe<\0a\0", b"<!-- <a href='/x'>", b"{}"],
)
def test_pages_without_sense_have_no_links(data: bytes) -> None:
    assert parse_page(data, "http://h/", "no-such-charset", most_links=10).links == ()
