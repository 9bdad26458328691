"""`web_fetch` as the gateway builds it, against real servers on loopback ports."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent.core.errors import ToolDeniedError, ToolError, ToolTimeoutError
from agent.core.settings import Settings
from agent.net import Address, client
from agent.tools import ToolContext, ToolResult
from mcp_tools.builtin import make_builtin_tools
from tests.integration.conftest import Serve
from tests.support.engine import engine_bench

CONTEXT = ToolContext(run_id="run_1", owner="somebody")
ARTICLE = """<!doctype html><html><head><title>Opening hours</title><style>p {{ color: red }}</style>{head}</head><body>
<nav><a href="/">Home</a> <a href="/about">About</a></nav>
<script>alert("never shown")</script>
<article><h1>Opening hours</h1>
<p>The caf\u00e9 in Malm\u00f6 opens at nine in the morning and closes at six in the evening, every day of the week.</p>
<p>Bookings are made <a href="https://example.com/book">on this page</a>, up to three weeks in advance.</p>
</article></body></html>"""
SENTENCE = "The caf\u00e9 in Malm\u00f6 opens at nine in the morning"


def article(head: str = "") -> str:
    return ARTICLE.format(head=head)


META = article('<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">')
PAGES: dict[str, tuple[int, str, bytes]] = {
    "article": (200, "text/html; charset=utf-8", article().encode()),
    "untyped": (200, "", article().encode()),
    "latin": (200, "text/html; charset=ISO-8859-1", article().encode("latin-1")),
    "meta": (200, "text/html", META.encode("latin-1")),
    "overruled": (200, "text/html; charset=utf-8", META.encode()),
    "unknown": (200, "text/html; charset=klingon", article().encode()),
    "undefined": (200, "text/html; charset=undefined", article().encode()),
    "not-text": (200, "text/html; charset=hex", article().encode()),
    "mistaken": (200, "text/html; charset=ascii", article().encode()),
    "short": (200, "text/html", b"<title>Total</title><table><tr><td>Total</td><td>42</td></tr></table>"),
    "empty": (200, "text/html", b""),
    "data": (200, "application/json", '{"price": 17.5, "city": "Malm\u00f6"}'.encode()),
    "problem": (200, "application/problem+json", b'{"title": "Out of stock"}'),
    "plain": (200, "text/plain; charset=utf-16", "Gr\u00fc\u00dfe".encode("utf-16")),
    "statement": (200, "text/csv", "Konto;Geb\u00fchr\n1;2,50 \u20ac\n".encode("cp1252")),
    "export": (200, "text/plain; charset=ISO-8859-1", "2,50 \u20ac".encode("cp1252")),
    "mislabelled": (200, "text/plain; charset=utf-8", "2,50 \u20ac Geb\u00fchr".encode("cp1252")),
    "readme": (200, "text/markdown", b"# Read me\n\nThis is how."),
    "long": (200, "text/plain", b"0123456789" * 100),
    "huge": (200, "text/plain", b"x" * 30_000),
    "image": (200, "image/png", b"\x89PNG"),
    "program": (200, "application/octet-stream", b"\x7fELF"),
    "missing": (404, "text/html", b"<h1>Not here</h1>"),
    "broken": (500, "text/plain", b"a stack trace"),
}


async def _page(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name == "moved":
        raise web.HTTPMovedPermanently("/article")
    if name == "inside":
        raise web.HTTPFound("http://169.254.169.254/latest/meta-data/")
    if name == "slow":
        await asyncio.sleep(30)
    status, kind, body = PAGES[name]
    return web.Response(status=status, body=body, headers={"content-type": kind})


@asynccontextmanager
async def serving(*routes: web.RouteDef) -> AsyncIterator[str]:
    """A server on a free port; its address without a path."""
    app = web.Application()
    app.add_routes(routes)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server(shutdown_timeout=0.1)
    yield f"http://127.0.0.1:{server.port}"
    await server.close()


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async with serving(web.get("/{name}", _page)) as url:
        yield url


class Fetcher:
    """A fetcher service: what it was asked, and what it answers."""

    def __init__(self, body: str, kind: str = "application/json", status: int = 200, delay_s: float = 0) -> None:
        self.asked: list[Any] = []
        self._body, self._kind, self._status, self._delay_s = body, kind, status, delay_s

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(await request.json())
        await asyncio.sleep(self._delay_s)
        return web.Response(text=self._body, content_type=self._kind, status=self._status)


async def fetch(tmp_path: Path, url: str, *, fetcher: str | None = None, allow: str = "", **args: Any) -> ToolResult:
    """The tool as the settings make it, called once."""
    settings = Settings(
        _env_file=None,
        data_dir=tmp_path,
        fetch_allow_hosts=(allow.removeprefix("http://"),) if allow else (),
        fetch_timeout_s=0.5 if url.endswith(("slow", "late")) else 10,
        fetch_max_bytes=20_000,
        fetcher_url=fetcher,
    )
    async with engine_bench(tmp_path / "engine", None) as bench:
        tools = make_builtin_tools(settings, bench.engine.memory)
        try:
            return await tools.web_fetch.call({"url": url, **args}, CONTEXT)
        finally:
            await tools.aclose()


async def value(tmp_path: Path, site: str, name: str, **args: Any) -> dict[str, Any]:
    result = await fetch(tmp_path, f"{site}/{name}", allow=site, **args)
    assert isinstance(result.value, dict)
    return result.value


async def test_a_page_becomes_its_main_text(tmp_path: Path, site: str) -> None:
    result = await fetch(tmp_path, f"{site}/article", allow=site)
    assert result.text.startswith(f"# Opening hours\n{site}/article\n\n")
    assert f"\n\n{SENTENCE}" in result.text
    assert "[on this page](https://example.com/book)" in result.text
    for noise in ("never shown", "color: red", "About", "<p>"):
        assert noise not in result.text
    (source,) = result.sources
    assert (source.name, source.url) == ("Opening hours", f"{site}/article")
    assert SENTENCE in source.quotes[0]


@pytest.mark.parametrize(
    "name", ["article", "untyped", "latin", "meta", "overruled", "unknown", "undefined", "not-text", "mistaken"]
)
async def test_charsets(tmp_path: Path, site: str, name: str) -> None:
    assert SENTENCE in (await value(tmp_path, site, name))["text"]


@pytest.mark.parametrize(
    ("name", "title", "text"),
    [
        ("data", "", '{"price": 17.5, "city": "Malm\u00f6"}'),
        ("problem", "", '{"title": "Out of stock"}'),
        ("plain", "", "Gr\u00fc\u00dfe"),
        ("statement", "", "Konto;Geb\u00fchr\n1;2,50 \u20ac\n"),
        ("export", "", "2,50 \u20ac"),
        ("mislabelled", "", "2,50 \u20ac Geb\u00fchr"),
        ("readme", "Read me", "# Read me\n\nThis is how."),
        ("empty", "", ""),
    ],
)
async def test_other_text_stays_as_it_is(tmp_path: Path, site: str, name: str, title: str, text: str) -> None:
    page = await value(tmp_path, site, name)
    assert (page["title"], page["text"], page["truncated"]) == (title, text, False)


async def test_a_page_that_is_no_article_gives_all_its_text(tmp_path: Path, site: str) -> None:
    text = (await value(tmp_path, site, "short"))["text"]
    assert "Total" in text
    assert "42" in text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("image", "image/png; only text, HTML and JSON"),
        ("program", "application/octet-stream; only text"),
        ("missing", "/missing answered with HTTP status 404"),
        ("broken", "/broken answered with HTTP status 500"),
    ],
)
async def test_what_is_no_page_says_why(tmp_path: Path, site: str, name: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await value(tmp_path, site, name)


async def test_a_redirect_is_followed_and_the_final_address_named(tmp_path: Path, site: str) -> None:
    page = await value(tmp_path, site, "moved")
    assert (page["url"], page["status"], page["title"]) == (f"{site}/article", 200, "Opening hours")


async def test_a_slow_page_ends_at_the_time_limit(tmp_path: Path, site: str) -> None:
    with pytest.raises(ToolTimeoutError, match=r"within 0\.5 s"):
        await value(tmp_path, site, "slow")


async def test_a_page_that_is_too_large_is_cut(tmp_path: Path, site: str) -> None:
    page = await value(tmp_path, site, "huge", max_chars=100_000)
    assert (page["text"], page["truncated"], page["next_start"]) == ("x" * 20_000, True, None)


async def test_a_long_page_is_read_on_where_it_was_left(tmp_path: Path, site: str) -> None:
    read, start = "", 0
    for expected in (400, 800, None):
        page = await value(tmp_path, site, "long", max_chars=400, start=start)
        read += page["text"]
        assert (page["next_start"], page["truncated"]) == (expected, expected is not None)
        start = page["next_start"]
    assert read == "0123456789" * 100


INSIDE = ["{site}/article", "http://localhost:8080/", "http://[::1]/", "http://169.254.169.254/latest/", "file:///etc"]


@pytest.mark.row("S001-49")
@pytest.mark.parametrize("url", INSIDE)
async def test_the_inside_is_refused_by_the_tool_itself(tmp_path: Path, site: str, url: str) -> None:
    with pytest.raises(ToolDeniedError):
        await fetch(tmp_path, url.format(site=site))


@pytest.mark.row("S001-49")
async def test_a_redirect_to_the_inside_is_refused(tmp_path: Path, site: str) -> None:
    with pytest.raises(ToolDeniedError, match=r"169\.254\.169\.254"):
        await fetch(tmp_path, f"{site}/inside", allow=site)


@pytest.mark.row("S001-49")
@pytest.mark.parametrize("url", INSIDE)
async def test_the_fetcher_is_not_sent_to_the_inside(tmp_path: Path, site: str, url: str) -> None:
    fetcher = Fetcher('{"text": "a secret"}')
    async with serving(web.post("/fetch", fetcher.answer)) as service:
        with pytest.raises(ToolDeniedError):
            await fetch(tmp_path, url.format(site=site), fetcher=f"{service}/fetch")
    assert fetcher.asked == []


@pytest.mark.row("S001-49")
@pytest.mark.parametrize(
    ("answer", "title", "url"),
    [
        ({"text": SENTENCE}, "", "http://8.8.8.8/page"),
        ({"content": SENTENCE, "title": "Hours", "url": "http://8.8.8.8/final"}, "Hours", "http://8.8.8.8/final"),
        ({"markdown": f"# Hours\n\n{SENTENCE}", "text": "worse"}, "Hours", "http://8.8.8.8/page"),
    ],
)
async def test_the_fetcher_is_asked_for_the_page(tmp_path: Path, answer: dict[str, str], title: str, url: str) -> None:
    fetcher = Fetcher(json.dumps(answer))
    async with serving(web.post("/fetch", fetcher.answer)) as service:
        result = await fetch(tmp_path, "http://8.8.8.8/page", fetcher=f"{service}/fetch")
    assert fetcher.asked == [{"url": "http://8.8.8.8/page"}]
    assert SENTENCE in result.text
    assert (result.sources[0].name, result.sources[0].url) == (title or url, url)


@pytest.mark.row("S001-49")
async def test_the_fetcher_gets_a_name_that_cannot_be_resolved_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_dns(host: str, _: int) -> list[Address]:
        raise ToolError(f"there is no host named {host!r}")

    monkeypatch.setattr(client, "resolve_host", no_dns)
    fetcher = Fetcher('{"text": "A page from outside."}')
    async with serving(web.post("/fetch", fetcher.answer)) as service:
        result = await fetch(tmp_path, "http://docs.example/page", fetcher=f"{service}/fetch")
    assert fetcher.asked == [{"url": "http://docs.example/page"}]
    assert "A page from outside." in result.text


async def test_the_fetcher_may_answer_with_the_page_itself(tmp_path: Path) -> None:
    async with serving(web.post("/fetch", Fetcher(article(), "text/html").answer)) as service:
        result = await fetch(tmp_path, "http://8.8.8.8/page", fetcher=f"{service}/fetch")
    assert result.text.startswith("# Opening hours\nhttp://8.8.8.8/page\n\n")
    assert "never shown" not in result.text


@pytest.mark.row("S001-49")
@pytest.mark.parametrize(
    ("fetcher", "why"),
    [
        (Fetcher("busy", "text/plain", 503), "fetcher .* answered with HTTP status 503"),
        (Fetcher("{"), "invalid JSON"),
        (Fetcher('["text"]'), "not a JSON object"),
        (Fetcher('{"html": "x"}'), "neither text, content nor markdown"),
        (Fetcher('{"text": "gone", "status": 410}'), "http://8.8.8.8/late answered with HTTP status 410"),
        (Fetcher("x", "image/png"), "only text, HTML and JSON"),
        (Fetcher("{}", delay_s=30), r"fetcher .* did not answer within 0\.5 s"),
    ],
)
async def test_a_failing_fetcher_says_what_failed(tmp_path: Path, fetcher: Fetcher, why: str) -> None:
    async with serving(web.post("/fetch", fetcher.answer)) as service:
        with pytest.raises(ToolError, match=why):
            await fetch(tmp_path, "http://8.8.8.8/late", fetcher=f"{service}/fetch")


@pytest.mark.row("S001-49")
async def test_a_fetcher_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with serving() as service:
        pass
    with pytest.raises(ToolError, match=f"the fetcher {service}/fetch cannot be reached"):
        await fetch(tmp_path, "http://8.8.8.8/page", fetcher=f"{service}/fetch")


TABLE_PAGE = """<html><head><title>Prices</title></head><body>
<nav><table><tr><td>Home</td><td>About</td></tr></table></nav>
<main><article><h1>Prices</h1><p>These are the prices of our plans for small and large teams, valid for a year.</p>
{table}
<p>Ask us when something about these prices is unclear to you; we answer within a day or two.</p></article></main>
<footer><table><tr><td>Imprint</td><td>Privacy</td></tr></table></footer></body></html>"""


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            "<table><thead><tr><th>Plan</th><th>Month</th><th>Year</th></tr></thead><tbody><tr><td>Free</td><td></td>"
            "<td>0</td></tr><tr><td>Team</td><td>&nbsp;</td><td></td></tr></tbody></table>",
            ["| Plan | Month | Year |", "| --- | --- | --- |", "| Free |  | 0 |", "| Team |  |  |"],
        ),
        (
            "<table><tr><th></th><th>2025</th></tr><tr><th>North</th><td>a|b</td></tr></table>",
            ["|  | 2025 |", "| --- | --- |", "| North | a\\|b |"],
        ),
        (
            "<table><tr><td rowspan=2>Big</td><td>20</td></tr><tr><td><a href='/x'>thirty</a></td></tr></table>",
            ["| Big | 20 |", "| --- | --- |", "| Big | [thirty]({site}/x) |"],
        ),
        (
            "<table><tr><td colspan=2>Sum</td><td>5</td></tr><tr><td>1</td></tr></table>",
            ["| Sum | Sum | 5 |", "| --- | --- | --- |", "| 1 |  |  |"],
        ),
    ],
)
async def test_tables_stay_tables_also_with_empty_cells(
    tmp_path: Path, site: str, table: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PAGES, "prices", (200, "text/html; charset=utf-8", TABLE_PAGE.format(table=table).encode()))
    text = (await value(tmp_path, site, "prices"))["text"]
    wanted = "\n".join(expected).format(site=site)
    assert f"valid for a year.\n\n{wanted}\n\nAsk us" in text
    assert "placeholder" not in text
    assert "Imprint" not in text


async def test_a_page_that_is_one_table_is_a_table(tmp_path: Path, site: str) -> None:
    assert (await value(tmp_path, site, "short"))["text"] == "| Total | 42 |\n| --- | --- |"


@pytest.mark.row("S004-15")
@pytest.mark.parametrize("retries", [0, 2])
async def test_a_connection_that_breaks_is_tried_again_as_often_as_the_setting_says(serve: Serve, retries: int) -> None:
    """The client wraps such an error twice before the gateway of tools sees it."""
    connections = 0

    async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.transport.abort()

    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    options: dict[str, Any] = {"tool_max_retries": retries, "tool_retry_backoff_s": 0.01, "fetch_allow_hosts": (host,)}
    body = {"metadata": {"tool_calls": [{"tool": "web_fetch", "args": {"url": f"http://{host}/"}}]}}
    async with server, serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        response = (await client.post("/v1/agent", json=body)).json()
    results = response["metadata"]["tool_results"]
    assert {(one["ok"], one["attempts"]) for one in results} == {(False, retries + 1)}, results
    assert connections == len(results) * (retries + 1)
