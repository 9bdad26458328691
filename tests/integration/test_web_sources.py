"""Web sources over the real door: limits of a walk, and credentials that stay out of logs, jobs and other hosts."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.integration.conftest import Serve

SECRET = "s3cret-k1-do-not-tell"
PAGE = "<html><title>Page {n}</title><main><p>Page {n} tells of kelp number {n} at length.</p>{links}</main></html>"


@asynccontextmanager
async def site() -> AsyncIterator[tuple[str, list[tuple[str, str]]]]:
    """A site of nine pages, each with a link to the next, behind a key; and what was asked for, with the key sent."""
    asked: list[tuple[str, str]] = []

    async def page(request: web.Request) -> web.Response:
        asked.append((request.path, request.headers.get("x-api-key", "")))
        if request.path in ("/robots.txt", "/sitemap.xml"):
            raise web.HTTPNotFound
        if request.headers.get("x-api-key") != SECRET:
            raise web.HTTPUnauthorized
        number = int(request.path.strip("/") or 0)
        links = f'<a href="/{number + 1}">next</a>' if number < 8 else ""
        return web.Response(text=PAGE.format(n=number, links=links), content_type="text/html")

    app = web.Application()
    app.router.add_get("/{path:.*}", page)
    async with TestServer(app, host="127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.port}/", asked


def write_credentials(tmp_path: Path, value: str, place: str) -> Path:
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps({"wiki": {"type": "header", "name": "X-Api-Key", "value": value, "url": place}}))
    path.chmod(0o600)
    return path


async def ingest(client: httpx.AsyncClient, start: str, **source: Any) -> Any:
    body = {"source_type": "web", "source_identifier": start, "recursive": True, **source}
    answer = await client.post("/v1/collections/wiki/ingest", json=body)
    assert answer.status_code == 202, answer.text
    found = await client.get(f"/v1/jobs/{answer.json()['id']}", params={"wait_s": 30})
    return found.json()


@pytest.mark.row("S003-12")
@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ({"max_depth": 1}, "more than 1 links from the start"),
        ({"max_pages": 2}, "the limit of 2 pages is reached (max_pages)"),
    ],
)
async def test_the_limits_of_a_walk_are_settings_of_the_source_and_reported(
    serve: Serve, tmp_path: Path, limit: dict[str, int], told: str
) -> None:
    async with site() as (start, _):
        host = start.removeprefix("http://").rstrip("/")
        options = {"credentials_path": write_credentials(tmp_path, SECRET, start), "fetch_allow_hosts": (host,)}
        async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
            job = await ingest(client, start, credentials_id="wiki", **limit)
    assert (job["status"], job["report"]["read"]) == ("done", 2), job
    assert told in json.dumps(job["report"])


@pytest.mark.row("S003-10", "S003-43")
async def test_a_credential_is_named_and_never_told(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with site() as (start, asked):
        host = start.removeprefix("http://").rstrip("/")
        options = {
            "credentials_path": write_credentials(tmp_path, "wrong-" + SECRET, start),
            "fetch_allow_hosts": (host,),
        }
        async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
            refused = await ingest(client, start, credentials_id="wiki", max_pages=1)
            write_credentials(tmp_path, SECRET, start)
            read = await ingest(client, start, credentials_id="wiki", max_pages=1)
            jobs = (await client.get("/v1/jobs")).text
    assert "ERR_CONNECTOR_AUTH" in json.dumps(refused)
    assert "wiki" in json.dumps(refused)
    assert (read["status"], read["report"]["read"]) == ("done", 1), "a changed file counts at once"
    assert {key for path, key in asked if path == "/"} == {SECRET, "wrong-" + SECRET}
    assert caplog.records
    for told in (json.dumps(refused), json.dumps(read), jobs, caplog.text):
        assert SECRET not in told
