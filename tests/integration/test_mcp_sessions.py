"""Sessions of MCP clients: one key cannot take them all, and each answers only to the key that opened it."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcp_tools.server import sessions, subscriptions
from tests.integration.conftest import Serve
from tests.support.conformance_wire import ACCEPT as BOTH
from tests.support.conformance_wire import META
from tests.support.keys import bearer, created_key

ACCEPT = {"accept": "application/json, text/event-stream"}
OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
MODERN = BOTH | {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


async def open_session(client: httpx.AsyncClient, key: str) -> str:
    opened = await client.post("/mcp", json=OPENING, headers=ACCEPT | bearer(key))
    assert opened.status_code == 200, opened.text
    return opened.headers["mcp-session-id"]


async def ping(client: httpx.AsyncClient, key: str, session: str) -> int:
    headers = ACCEPT | bearer(key) | {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}
    return (await client.post("/mcp", json=PING, headers=headers)).status_code


async def test_a_key_that_opens_more_than_its_share_loses_its_own_sessions_only(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_CALLER_SESSIONS", 5)
    greedy, other = [await created_key(tmp_path / "data", name) for name in ("anna", "bo")]
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        held = await open_session(client, other)
        opened = [await open_session(client, greedy) for _ in range(8)]
        assert await ping(client, other, held) == 200
        assert [await ping(client, greedy, session) for session in opened] == [404] * 3 + [200] * 5
        assert await ping(client, other, await open_session(client, other)) == 200


async def test_where_all_sessions_are_taken_the_caller_with_most_of_them_gives_one_up(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.doors.mcp.MAX_SESSIONS", 4)
    keys = [await created_key(tmp_path / "data", name) for name in ("anna", "bo", "cy")]
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        many = [await open_session(client, keys[0]) for _ in range(3)]
        first = await open_session(client, keys[1])
        last = await open_session(client, keys[2])
        assert [await ping(client, keys[0], session) for session in many] == [404, 200, 200]
        assert [await ping(client, keys[1], first), await ping(client, keys[2], last)] == [200, 200]


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_session_of_another_key_does_not_exist(serve: Serve, tmp_path: Path, method: str) -> None:
    anna, bo = [await created_key(tmp_path / "data", name) for name in ("anna", "bo")]
    second = await created_key(tmp_path / "data", "anna")
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        session = await open_session(client, anna)
        for key in (bo, second):
            headers = ACCEPT | bearer(key) | {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}
            body: dict[str, Any] = {"json": PING} if method == "POST" else {}
            refused = await client.request(method, "/mcp", headers=headers, **body)
            assert (refused.status_code, refused.json()["error"]["message"]) == (404, "Session not found")
        assert await ping(client, anna, session) == 200


async def test_an_idle_session_ends(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.doors.mcp.IDLE_SECONDS", 0.5)
    key = await created_key(tmp_path / "data", "anna")
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        session = await open_session(client, key)
        assert await ping(client, key, session) == 200
        await asyncio.sleep(1.5)
        assert await ping(client, key, session) == 404


async def test_a_key_that_listens_too_often_takes_no_streams_of_others(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAX_CALLER_STREAMS", 2)
    greedy, other = [await created_key(tmp_path / "data", name) for name in ("anna", "bo")]
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscriptions/listen",
        "params": {"_meta": META, "notifications": {"toolsListChanged": True}},
    }

    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=60) as client, AsyncExitStack() as streams:

        async def listen(key: str) -> str:
            headers = MODERN | bearer(key)
            stream = await streams.enter_async_context(client.stream("POST", "/mcp", json=body, headers=headers))
            lines = stream.aiter_lines()
            streams.push_async_callback(lines.aclose)  # type: ignore[attr-defined]  # it is a generator
            while "jsonrpc" not in (line := await anext(lines)):
                pass
            return line

        told = [await listen(greedy) for _ in range(3)]
        assert ["acknowledged" in line for line in told] == [True, True, False]
        assert "streams of subscriptions/listen are open with this key" in told[2]
        assert "acknowledged" in await listen(other)
        await streams.aclose()
        async with asyncio.timeout(20):
            while "acknowledged" not in await listen(greedy):  # noqa: ASYNC110 - only the next answer tells
                await asyncio.sleep(0.05)  # until the gateway has noticed that a client left
