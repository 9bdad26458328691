"""What a key has left open ends when the key is revoked, at every endpoint that streams; other keys' streams go on."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_mcp_sessions import ACCEPT, MODERN, open_session
from tests.support.conformance_wire import META
from tests.support.keys import bearer, created_key, revoke_key
from tests.support.script import plans, says, script

SLOW = 60.0
"""Seconds that the model's answer takes: longer than the test, which ends when the key is revoked."""


def slow_model() -> Any:
    return script(plans({"tool": "completion"}), says("Slow.", to="completion", delay_s=SLOW))


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.access.key_watch.CHECK_SECONDS", 0.1)


MESSAGE = {"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "Go"}]}
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "stepgate", "stream": True, "messages": [{"role": "user", "content": "Go"}]},
    "/v1/agent": {"prompt": "Go", "stream": True},
    "/v1/responses": {"model": "stepgate", "input": "Go", "stream": True},
    "/a2a": {"jsonrpc": "2.0", "id": 2, "method": "message/stream", "params": {"message": MESSAGE}},
}


async def read_until_end(lines: AsyncIterator[str]) -> tuple[list[str], bool]:
    """What still comes, and whether the connection was closed in an orderly way."""
    rest: list[str] = []
    try:
        async for line in lines:
            rest.append(line)  # noqa: PERF401 - what came before an error counts
    except httpx.HTTPError:
        return rest, False
    return rest, True


@pytest.mark.parametrize("path", REQUESTS)
async def test_a_stream_of_a_revoked_key_ends_with_the_reason(serve: Serve, tmp_path: Path, path: str) -> None:
    revoked, other = [await created_key(tmp_path / "data", name) for name in ("anna", "bo")]
    async with serve(slow_model()) as url, httpx.AsyncClient(base_url=url, timeout=SLOW) as client:

        async def follow(key: str, started: asyncio.Event) -> tuple[list[str], bool]:
            async with client.stream("POST", path, json=REQUESTS[path], headers=bearer(key)) as response:
                assert response.status_code == 200
                started.set()
                async with aclosing(response.aiter_lines()) as lines:  # type: ignore[type-var]  # it is a generator
                    return await read_until_end(lines)

        started = [asyncio.Event(), asyncio.Event()]
        ending = asyncio.create_task(follow(revoked, started[0]))
        staying = asyncio.create_task(follow(other, started[1]))
        async with asyncio.timeout(30):
            await asyncio.gather(*(one.wait() for one in started))
        await revoke_key(tmp_path / "data", revoked)
        rest, is_orderly = await asyncio.wait_for(ending, 20)
        assert is_orderly
        assert "was revoked" in "\n".join(rest)
        await asyncio.sleep(0.5)  # five looks at the other key
        assert not staying.done(), "the stream of another key goes on"
        staying.cancel()


async def listen(client: httpx.AsyncClient, key: str, started: asyncio.Event) -> None:
    params = {"_meta": META, "notifications": {"toolsListChanged": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    async with client.stream("POST", "/mcp", json=body, headers=MODERN | bearer(key)) as response:
        started.set()
        async with aclosing(response.aiter_lines()) as lines:  # type: ignore[type-var]  # it is a generator
            await read_until_end(lines)


async def follow_session(client: httpx.AsyncClient, key: str, started: asyncio.Event) -> None:
    session = await open_session(client, key)
    headers = ACCEPT | bearer(key) | {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}
    async with client.stream("GET", "/mcp", headers=headers) as response:
        assert response.status_code == 200
        started.set()
        async with aclosing(response.aiter_lines()) as lines:  # type: ignore[type-var]  # it is a generator
            await read_until_end(lines)


@pytest.mark.parametrize("follow", [listen, follow_session])
async def test_a_listener_with_a_revoked_key_is_disconnected(
    serve: Serve, tmp_path: Path, follow: Callable[[httpx.AsyncClient, str, asyncio.Event], Awaitable[None]]
) -> None:
    revoked, other = [await created_key(tmp_path / "data", name) for name in ("anna", "bo")]
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=SLOW) as client:
        started = [asyncio.Event(), asyncio.Event()]
        ending = asyncio.ensure_future(follow(client, revoked, started[0]))
        staying = asyncio.ensure_future(follow(client, other, started[1]))
        async with asyncio.timeout(30):
            await asyncio.gather(*(one.wait() for one in started))
        await revoke_key(tmp_path / "data", revoked)
        await asyncio.wait_for(ending, 20)
        await asyncio.sleep(0.5)  # five looks at the other key
        assert not staying.done(), "the stream of another key goes on"
        staying.cancel()


async def test_the_run_of_a_revoked_key_is_its_owners_and_goes_on(serve: Serve, tmp_path: Path) -> None:
    revoked, second = [await created_key(tmp_path / "data", name, owner="anna") for name in ("phone", "laptop")]
    model = script(plans({"tool": "completion"}), says("Done after all.", to="completion", delay_s=3))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=SLOW) as client:
        body = {"prompt": "Go", "stream": True}
        async with client.stream("POST", "/v1/agent", json=body, headers=bearer(revoked)) as response:
            run_id = ""
            async for line in response.aiter_lines():
                if not run_id and line.startswith("data: "):
                    run_id = json.loads(line.removeprefix("data: "))["run_id"]
                    await revoke_key(tmp_path / "data", revoked)
        events = await client.get(f"/v1/runs/{run_id}/events", headers=bearer(second))
        run = (await client.get(f"/v1/runs/{run_id}", headers=bearer(second))).json()
    assert events.status_code == 200
    assert run["status"] == "succeeded"
