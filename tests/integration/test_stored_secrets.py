"""Stored credentials go where the operator said: the address in the credential, or a pairing that a person allowed."""

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

from tests.integration.conftest import Serve
from tests.integration.test_rooms import client_of
from tests.integration.test_rooms_everywhere import run_tool
from tests.support.keys import bearer, created_key

TOKEN = "ghp_" + "a1B2" * 9


@asynccontextmanager
async def listener() -> AsyncIterator[tuple[str, list[str]]]:
    """A host that answers everything, and the `authorization` headers that it was sent."""
    received: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        received.append(request.headers.get("authorization", ""))
        return web.Response(text="Kelp grows fast.")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app, host="127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.port}", received


def write_credentials(folder: Path, **fields: str) -> Path:
    path = folder / "credentials.json"
    path.write_text(json.dumps({"github": {"type": "bearer", "token": TOKEN, **fields}}))
    path.chmod(0o600)
    return path


def make_room(place: str, name: str = "Ours") -> dict[str, Any]:
    return {"name": name, "mcp_servers": {"x": {"url": f"{place}/mcp", "credential": "github"}}}


def make_source(place: str) -> dict[str, Any]:
    return {"source_type": "web", "source_identifier": f"{place}/x.txt", "credentials_id": "github"}


async def is_sent(received: list[str]) -> bool:
    """Whether the token arrives within the time in which a running gateway connects."""
    for _ in range(30):
        if f"Bearer {TOKEN}" in received:
            return True
        await asyncio.sleep(0.1)
    return False


async def approve(client: httpx.AsyncClient, asked: dict[str, Any]) -> None:
    ids = [one["id"] for one in asked["approvals"]]
    decided = await client.post(f"/v1/runs/{asked['run_id']}/approve", json={"approvals": ids})
    assert decided.status_code == 202, decided.text


async def test_a_key_without_admin_sends_no_credential_anywhere(serve: Serve, tmp_path: Path) -> None:
    async with listener() as (place, received):
        options = {"credentials_path": write_credentials(tmp_path), "fetch_allow_hosts": (place[7:],)}
        async with serve(require_key="always", **options) as url:
            key = await created_key(tmp_path / "data", "weak", scopes="rooms,ingest,agent,approve,mcp")
            async with client_of(url, headers=bearer(key)) as client:
                empty = await client.post("/v1/rooms", json={"name": "Empty"})
                version = empty.json()["version"]
                servers = make_room(place)["mcp_servers"]
                for path, body in (
                    ("/v1/rooms", make_room(place)),
                    ("/v1/sources", make_source(place)),
                    ("/v1/collections/c/ingest", make_source(place)),
                    ("/v1/pipelines/dry-run", make_source(place)),
                ):
                    refused = await client.post(path, json=body)
                    assert refused.status_code == 403, (path, refused.text)
                    assert "admin" in refused.text, path
                refused = await client.patch("/v1/rooms/empty", json={"version": version, "mcp_servers": servers})
                assert refused.status_code == 403, refused.text
                for tool, args in (
                    ("mcp_server_add", {"room_id": "empty", "name": "x", **servers["x"]}),
                    ("ingest", {"source": f"{place}/x.txt", "credentials": "github"}),
                    ("source_credential_allow", make_source(place)),
                ):
                    told = await run_tool(url, tool, key=key, **args)
                    assert told["metadata"]["status"] != "awaiting_approval", (tool, told)
                assert not await is_sent(received)


@pytest.mark.parametrize("path", ["/v1/rooms", "/v1/sources", "/v1/collections/c/ingest", "/v1/pipelines/dry-run"])
async def test_one_question_shows_the_credential_and_the_address(serve: Serve, tmp_path: Path, path: str) -> None:
    async with listener() as (place, received):
        options = {"credentials_path": write_credentials(tmp_path), "fetch_allow_hosts": (place[7:],)}
        body = make_room(place) if path == "/v1/rooms" else make_source(place)
        async with serve(require_key="always", **options) as url:
            key = await created_key(tmp_path / "data", "admin", scopes="admin")
            weak = await created_key(tmp_path / "data", "weak", scopes="rooms,ingest")
            async with client_of(url, headers=bearer(key)) as client:
                asked = await client.post(path, json=body)
                assert (asked.status_code, asked.json().get("status")) == (202, "awaiting_approval"), asked.text
                (approval,) = asked.json()["approvals"]
                for shown in ("github", body.get("source_identifier", f"{place}/mcp")):
                    assert shown in approval["question"]
                assert not await is_sent(received), "before anybody decides"
                await approve(client, asked.json())
                if path != "/v1/rooms":
                    async with asyncio.timeout(20):
                        while not (await client.get("/v1/sources")).json()["data"]:  # noqa: ASYNC110 - a door
                            await asyncio.sleep(0.1)
                    read = await client.post("/v1/collections/c/ingest", json=body, headers=bearer(weak))
                    assert read.status_code == 202, "a stored pairing is used by any key of its owner"
                assert await is_sent(received)
                other = {**make_source(f"{place}"), "source_identifier": f"{place}/other"}
                refused = await client.post("/v1/collections/c/ingest", json=other, headers=bearer(weak))
                assert refused.status_code == 403, "another address is another pairing"


async def test_nobody_is_asked_about_a_credential_that_is_not_there(serve: Serve, tmp_path: Path) -> None:
    body = {"source_type": "gdrive", "source_identifier": "abc", "credentials_id": "none"}
    async with serve(credentials_path=write_credentials(tmp_path)) as url, client_of(url) as client:
        refused = await client.post("/v1/collections/c/ingest", json=body)
    assert (refused.status_code, refused.json()["error"]["error_code"]) == (403, "ERR_CONNECTOR_AUTH"), refused.text


async def test_an_address_in_the_credential_is_where_it_goes_and_no_other_is(serve: Serve, tmp_path: Path) -> None:
    async with listener() as (place, received), listener() as (elsewhere, stolen):
        options = {
            "credentials_path": write_credentials(tmp_path, url=f"{place}/"),
            "fetch_allow_hosts": (place[7:], elsewhere[7:]),
        }
        async with serve(require_key="always", **options) as url:
            weak = await created_key(tmp_path / "data", "weak", scopes="rooms,ingest")
            admin = await created_key(tmp_path / "data", "admin", scopes="admin")
            async with client_of(url, headers=bearer(weak)) as client:
                assert (await client.post("/v1/rooms", json=make_room(place))).status_code == 201
                assert await is_sent(received)
                read = await client.post("/v1/collections/c/ingest", json=make_source(place))
                assert read.status_code == 202, read.text
                for headers in (bearer(weak), bearer(admin)):
                    for path, body in (
                        ("/v1/rooms", make_room(elsewhere, "Theirs")),
                        ("/v1/collections/c/ingest", make_source(elsewhere)),
                    ):
                        refused = await client.post(path, json=body, headers=headers)
                        assert refused.status_code == 403, refused.text
                        assert "is sent only to the address" in refused.text
                assert not await is_sent(stolen)


async def test_stored_pairings_go_on_and_are_copied_without_a_question(serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    async with listener() as (place, received):
        (rooms / "ours.yaml").write_text(json.dumps(make_room(place)))
        options = {"credentials_path": write_credentials(tmp_path), "fetch_allow_hosts": (place[7:],)}
        async with serve(require_key="always", rooms_dir=rooms, **options) as url:
            key = await created_key(tmp_path / "data", "rooms", scopes="rooms")
            listed = await created_key(tmp_path / "data", "copy", scopes="rooms", tools="room_copy,room_edit,room_show")
            assert await is_sent(received)
            async with client_of(url, headers=bearer(key)) as client:
                copied = await client.post("/v1/rooms/ours/copy", json={"name": "Copy"})
                assert copied.status_code == 201, copied.text
                assert "x" in copied.json()["room"]["mcp_servers"]
                moved = {"x": {"url": f"{place}/elsewhere"}}
                change = {"version": copied.json()["version"], "mcp_servers": moved}
                assert (await client.patch("/v1/rooms/copy", json=change)).status_code == 403, "a new address"
            async with client_of(url, headers=bearer(listed)) as client:
                bare = await client.post("/v1/rooms/ours/copy", json={"name": "Bare"})
                assert bare.json()["room"]["mcp_servers"] == {}, "connecting is the work of mcp_server_add"
                change = {"version": bare.json()["version"], "mcp_servers": {"x": {"url": f"{place}/mcp"}}}
                assert (await client.patch("/v1/rooms/bare", json=change)).status_code == 403
