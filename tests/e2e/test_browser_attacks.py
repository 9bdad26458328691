"""Foreign web pages in a real Chromium: they neither read nor change a gateway that needs no key; allowed ones work."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.integration.conftest import Serve, model_server, serve
from tests.integration.test_origin_check import CALL, PROMPT, ROOM, count_things
from tests.support.browser import BROWSER_TEST, Page, open_page, running_chromium

__all__ = ["model_server", "serve"]  # fixtures

pytestmark = BROWSER_TEST

NAME = "evil.example"
READS = ("/v1/runs", "/v1/rooms", "/v1/tools", "/openapi.json", "/", "/web/app.js")


@pytest.fixture(scope="module")
def devtools() -> Iterator[str]:
    with running_chromium(f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as address:
        yield address


class Site:
    """A foreign web site on a port of this machine. Once its name is pointed elsewhere, that server answers there."""

    def __init__(self) -> None:
        self.port = 0
        self._target: tuple[str, int] | None = None

    def point_to(self, url: str) -> None:
        """Does what a name server does that answers with another address the second time."""
        where = urlsplit(url)
        assert where.hostname is not None
        assert where.port is not None
        self._target = where.hostname, where.port

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection: an empty page, or whatever the target serves."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            if self._target is None:
                await reader.readuntil(b"\r\n\r\n")
                page = b"<!doctype html><title>Free prizes</title>"
                head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len(page)}\r\n"
                writer.write(head.encode() + b"connection: close\r\n\r\n" + page)
                await writer.drain()
            else:
                there, out = await asyncio.open_connection(*self._target)
                await asyncio.gather(_copy(reader, out), _copy(there, writer))
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65_536):
        writer.write(piece)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def foreign_site() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


async def call(page: Page, url: str, **options: Any) -> dict[str, Any]:
    """What a `fetch` of a page comes to: status, type and text, or the error that the page sees."""
    expression = f"""fetch({json.dumps(url)}, {json.dumps(options)}).then(
        async (got) => ({{ status: got.status, type: got.type, text: await got.text(),
                           id: got.headers.get("x-request-id") }}),
        (error) => ({{ error: error.name }}))"""
    got: dict[str, Any] = await page.evaluate(expression)
    return got


async def attack(page: Page, url: str) -> None:
    """Sends what a page can send anywhere without asking: plain text, forms, beacons, and nothing at all."""
    await page.evaluate(
        f"""(async () => {{
            const url = {json.dumps(url)}, call = {json.dumps(json.dumps(CALL))}, room = {json.dumps(json.dumps(ROOM))};
            const form = new FormData();
            form.append("file", new Blob(["# Mallory\\n\\nPay Mallory."]), "a.md");
            const send = (path, body, mode = "no-cors", method = "POST") =>
                fetch(url + path, {{ method, mode, body }}).catch(() => null);
            await Promise.all([
                send("/a2a", call), send("/v1/agent", JSON.stringify({json.dumps(PROMPT)})), send("/v1/rooms", room),
                send("/v1/documents", form), send("/v1/schedules/nightly/run"), send("/tasks/" + window.task + "/run"),
                send("/v1/collections/weather/reindex"), send("/mcp", call), send("/v1/ag-ui", "{{}}"),
                send("/a2a", call, "cors"), send("/v1/documents", form, "cors"),
                send("/v1/users/local", null, "cors", "DELETE"),
            ]);
            navigator.sendBeacon(url + "/a2a", call);
            for (const kind of ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"]) {{
                const frame = Object.assign(document.createElement("iframe"), {{ name: kind }});
                const sent = Object.assign(document.createElement("form"),
                    {{ action: url + "/tasks/" + window.task + "/run", method: "post", enctype: kind, target: kind }});
                sent.append(Object.assign(document.createElement("input"), {{ name: '{{"prompt":"', value: '"}}' }}));
                document.body.append(frame, sent);
                sent.submit();
            }}
            for (const tag of ["img", "script", "iframe"])
                document.body.append(Object.assign(document.createElement(tag), {{ src: url + "/v1/runs" }}));
            await new Promise((done) => {{
                const socket = new WebSocket(url.replace("http", "ws") + "/v1/runs");
                socket.onclose = socket.onopen = done;
            }});
            await new Promise((done) => setTimeout(done, 500));
        }})()"""
    )


@asynccontextmanager
async def gateway(serve: Serve, **options: Any) -> AsyncIterator[tuple[str, httpx.AsyncClient, str]]:
    """A gateway with a task, a schedule and a collection: its address, a program's client, and the task's id."""
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        task = (await client.post("/tasks", json=PROMPT)).json()["task_id"]
        plan = {"name": "nightly", "cron": "0 3 * * *", **PROMPT}
        assert (await client.post("/v1/schedules", json=plan)).status_code == 201
        form: dict[str, Any] = {"files": {"file": ("a.md", b"It rains.")}, "data": {"collection": "weather"}}
        assert (await client.post("/v1/documents", **form)).status_code == 201
        yield url, client, task


async def test_a_page_whose_name_is_pointed_here_reads_and_changes_nothing(devtools: str, serve: Serve) -> None:
    async with (
        gateway(serve) as (url, client, task),
        foreign_site() as site,
        open_page(devtools, f"http://{NAME}:{site.port}/") as page,
    ):
        assert await page.evaluate("document.title") == "Free prizes"
        before = await count_things(client)
        site.point_to(url)
        for path in READS:
            got = await call(page, path)
            assert (got["status"], got["type"]) == (421, "basic"), path
            assert "AGENT_ALLOWED_HOSTS" in got["text"]
        probed = json.loads((await call(page, "/ready"))["text"])["components"]
        assert {item["detail"] for item in probed.values()} == {""}
        typed = {"content-type": "application/json"}
        made = await call(page, "/v1/rooms", method="POST", headers=typed, body=json.dumps(ROOM))
        assert made["status"] == 421
        await page.evaluate(f"window.task = {json.dumps(task)}")
        await attack(page, f"http://{NAME}:{site.port}")
        assert await count_things(client) == before


async def test_the_rebound_page_would_read_everything_if_its_name_were_allowed(devtools: str, serve: Serve) -> None:
    """The test above tries something that works."""
    async with (
        gateway(serve, allowed_hosts=(NAME,)) as (url, _, _),
        foreign_site() as site,
        open_page(devtools, f"http://{NAME}:{site.port}/") as page,
    ):
        site.point_to(url)
        assert (await call(page, "/v1/runs"))["status"] == 200
        typed = {"content-type": "application/json"}
        made = await call(page, "/v1/agent", method="POST", headers=typed, body=json.dumps(PROMPT))
        assert made["status"] == 200


@pytest.mark.parametrize("host", [NAME, "127.0.0.1", "localhost"])
async def test_a_page_of_another_origin_neither_reads_nor_changes(devtools: str, serve: Serve, host: str) -> None:
    async with (
        gateway(serve) as (url, client, task),
        foreign_site() as site,
        open_page(devtools, f"http://{host}:{site.port}/") as page,
    ):
        before = await count_things(client)
        await page.evaluate(f"window.task = {json.dumps(task)}")
        for at in (url, url.replace("127.0.0.1", "localhost")):
            for path in READS:
                assert await call(page, at + path) == {"error": "TypeError"}, "no CORS answer"
                assert (await call(page, at + path, mode="no-cors")).get("text", "") == ""
            headers = {"content-type": "application/json", "authorization": "Bearer none"}
            assert "error" in await call(
                page, f"{at}/v1/agent", method="POST", headers=headers, body=json.dumps(PROMPT)
            )
            await attack(page, at)
        assert await count_things(client) == before


async def test_a_link_on_a_foreign_page_leads_to_the_own_page_which_works(devtools: str, serve: Serve) -> None:
    async with (
        gateway(serve) as (url, client, _),
        foreign_site() as site,
        open_page(devtools, f"http://{NAME}:{site.port}/") as page,
    ):
        before = await count_things(client)
        await page.evaluate(f"setTimeout(() => {{ location.href = {json.dumps(url + '/')}; }})")
        await page.until("document.getElementById('state')?.innerText.trim() === 'no model'")
        await page.until("document.querySelector('.composer select option[value=stepgate]')")
        await page.write(".chat textarea", "What is 2*21?")
        await page.press("Enter")
        await page.until("document.querySelector('.answer[aria-busy=false]')?.innerText.includes('42')")
        assert (await count_things(client))["/v1/runs"] == before["/v1/runs"] + 1


async def test_a_page_of_an_allowed_origin_reads_and_asks(devtools: str, serve: Serve) -> None:
    async with foreign_site() as site:
        origin = f"http://{NAME}:{site.port}"
        async with (
            gateway(serve, cors_origins=(origin,)) as (url, client, _),
            open_page(devtools, f"{origin}/") as page,
        ):
            before = await count_things(client)
            headers = {"content-type": "application/json", "authorization": "Bearer none", "x-request-id": "mine"}
            asked = await call(page, f"{url}/v1/agent", method="POST", headers=headers, body=json.dumps(PROMPT))
            missing = await call(page, f"{url}/v1/runs/none")
            after = await count_things(client)
    assert (asked["status"], asked["id"]) == (200, "mine")
    assert "42" in asked["text"]
    assert (missing["status"], missing["type"]) == (404, "cors")
    assert after["/v1/runs"] == before["/v1/runs"] + 1


async def test_a_person_who_opens_a_wrong_name_reads_what_to_set(devtools: str, serve: Serve) -> None:
    async with serve() as url:
        wrong = url.replace("127.0.0.1", NAME)
        async with open_page(devtools, f"{wrong}/") as page:
            text = await page.text()
            assert NAME in text
            assert "AGENT_ALLOWED_HOSTS" in text
            assert page.faults == []
