"""Streams and callers: how many, how silent, read by whom, and what goes on when they leave. Over real sockets."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from agent.core.models import JsonObject
from agent.core.settings import Settings
from gateway.access.http_protocol import make_protocol_with_limits
from gateway.render.deferred_response import DeferredResponseMiddleware
from gateway.render.native import build_failure_frame
from gateway.render.sse import EventStream, format_frame
from tests.integration.conftest import Serve
from tests.integration.test_http_streaming import gateway
from tests.integration.test_limits import Raw, is_broken
from tests.support.script import says, script
from tests.support.tools import FunctionTool

ENDED = "event: run.succeeded"


async def test_a_reader_that_does_not_read_is_dropped(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def frames() -> AsyncGenerator[str, None]:
        try:
            while True:  # more than the sockets between the two hold, although nobody reads
                yield format_frame("x" * 500_000)
        finally:
            ended.set()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await DeferredResponseMiddleware(EventStream(nullcontext).build_response(frames(), build_failure_frame))(
            scope, receive, send
        )

    settings = Settings(_env_file=None, data_dir=tmp_path, stall_seconds=0.3)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, http=make_protocol_with_limits(settings), log_config=None, lifespan="off"
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server._serve())
    async with asyncio.timeout(20):
        while not server.started:  # noqa: ASYNC110 - uvicorn offers only the flag
            await asyncio.sleep(0.01)
        raw = await Raw.to(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        raw.writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await ended.wait()
        assert await is_broken(raw)
        server.should_exit = True
        await running


async def _first_run(client: httpx.AsyncClient, url: str) -> str:
    async with asyncio.timeout(15):
        while True:
            runs = (await client.get(f"{url}/v1/runs")).json()["data"]
            if runs:
                return str(runs[0]["id"])
            await asyncio.sleep(0.02)


async def _events(client: httpx.AsyncClient, url: str) -> AsyncIterator[str]:
    async with client.stream("GET", url) as response:
        async for line in response.aiter_lines():
            yield line


@pytest.mark.parametrize("door", ["openai", "native", "events"])
async def test_open_streams_are_counted_and_freed(tmp_path: Path, door: str) -> None:
    held = asyncio.Event()

    async def wait(_: JsonObject) -> str:
        async with asyncio.timeout(20):
            await held.wait()
        return "done"

    asked = {"tool_calls": [{"tool": "wait"}]}
    body: dict[str, Any] = {"prompt": "wait", "stream": True, "metadata": asked}
    async with (
        gateway(tmp_path, FunctionTool("wait", wait), max_open_streams=1) as url,
        httpx.AsyncClient(base_url=url, timeout=20) as client,
    ):
        async with client.stream("POST", "/v1/agent", json=body) as first:
            assert first.status_code == 200
            run_id = first.headers["x-stepgate-run-id"]
            if door == "openai":
                message = {"role": "user", "content": "x"}
                refused = await client.post(
                    "/v1/chat/completions", json={"model": "stepgate", "messages": [message], "stream": True}
                )
            elif door == "native":
                refused = await client.post("/v1/agent", json=body)
            else:
                refused = await client.get(f"/v1/runs/{run_id}/events")
            whole = await client.get(f"/v1/runs/{run_id}/events", headers={"accept": "application/json"})
            runs = (await client.get("/v1/runs")).json()["data"]
        # The first client has hung up: its place is free again, its run goes on.
        again = await _streamed(client, f"/v1/runs/{run_id}/events")
        held.set()
        lines = [line async for line in _events(client, f"/v1/runs/{run_id}/events")]
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    error = refused.json()["error"]
    assert "AGENT_MAX_OPEN_STREAMS" in error["message"]
    assert (error.get("code") or error.get("error_code")) in ("rate_limit_exceeded", "ERR_RATE_LIMIT")
    assert whole.status_code == 200, "a list is no stream"
    assert len(runs) == 1, "what is refused has begun nothing"
    assert again == 200
    assert ENDED in lines


async def test_a_stream_whose_run_cannot_begin_leaves_its_place(tmp_path: Path) -> None:
    body: dict[str, Any] = {"prompt": "2+2", "stream": True}
    async with (
        gateway(tmp_path, max_open_streams=1) as url,
        httpx.AsyncClient(base_url=url, timeout=20) as client,
    ):
        refused = [(await client.post("/v1/agent", json=body | {"room": "none"})).status_code for _ in range(2)]
        answered = await client.post("/v1/agent", json=body)
    assert refused == [404, 404]
    assert answered.status_code == 200
    assert ENDED in answered.text


async def _streamed(client: httpx.AsyncClient, path: str) -> int:
    """The status of a stream, once there is a place for it; hung up on at once."""
    async with asyncio.timeout(10):
        while True:
            async with client.stream("GET", path) as response:
                if response.status_code != 429:
                    return response.status_code
            await asyncio.sleep(0.02)


async def test_silence_is_filled_as_often_as_is_set(tmp_path: Path) -> None:
    held = asyncio.Event()

    async def wait(_: JsonObject) -> str:
        async with asyncio.timeout(20):
            await held.wait()
        return "done"

    body = {"prompt": "wait", "stream": True, "metadata": {"tool_calls": [{"tool": "wait"}]}}
    beats = 0
    async with (
        gateway(tmp_path, FunctionTool("wait", wait), heartbeat_seconds=0.05) as url,
        httpx.AsyncClient(timeout=20) as client,
        client.stream("POST", f"{url}/v1/agent", json=body) as response,
    ):
        async for line in response.aiter_lines():
            beats += line == ": keep-alive"
            if beats == 2:
                held.set()
    assert beats >= 2


@pytest.mark.parametrize("keyed", [False, True], ids=["", "with an idempotency key"])
async def test_a_run_goes_on_visibly_when_its_caller_hangs_up(tmp_path: Path, keyed: bool) -> None:
    begun, held = asyncio.Event(), asyncio.Event()

    async def wait(_: JsonObject) -> str:
        begun.set()
        async with asyncio.timeout(20):
            await held.wait()
        return "done"

    body = {"prompt": "wait", "metadata": {"tool_calls": [{"tool": "wait"}]}}
    headers = {"idempotency-key": "one"} if keyed else {}
    async with gateway(tmp_path, FunctionTool("wait", wait)) as url, httpx.AsyncClient(timeout=20) as client:
        asking = asyncio.create_task(client.post(f"{url}/v1/agent", json=body, headers=headers))
        await begun.wait()
        asking.cancel()
        await asyncio.wait([asking])
        run_id = await _first_run(client, url)
        if not keyed:  # nobody waits any more: the request is over before the run is
            metrics = await _metric(client, url, 'route="/v1/agent",status="499"')
            assert metrics == 1
        held.set()
        lines = [line async for line in _events(client, f"{url}/v1/runs/{run_id}/events")]
        again = await client.post(f"{url}/v1/agent", json=body, headers=headers) if keyed else None
        runs = (await client.get(f"{url}/v1/runs")).json()["data"]
    assert ENDED in lines
    if again is not None:
        assert again.headers["idempotent-replayed"] == "true"
        assert again.json()["metadata"]["run_id"] == run_id
    assert len(runs) == 1


async def _metric(client: httpx.AsyncClient, url: str, labels: str) -> float:
    async with asyncio.timeout(10):
        while True:
            for line in (await client.get(f"{url}/metrics")).text.splitlines():
                if line.startswith("stepgate_http_requests_total") and labels in line:
                    return float(line.rsplit(" ", 1)[1])
            await asyncio.sleep(0.02)


async def test_a_hidden_run_ends_with_its_caller(serve: Serve) -> None:
    slow = script(says("never heard", delay_s=30))
    body = {"model": "stepgate", "messages": [{"role": "user", "content": "### Task: a title, please"}]}
    async with serve(slow) as url, httpx.AsyncClient(timeout=20) as client:
        asking = asyncio.create_task(client.post(f"{url}/v1/chat/completions", json=body))
        assert await _live(client, url, 1)
        asking.cancel()
        await asyncio.wait([asking])
        assert await _live(client, url, 0), "its model call would have taken half a minute"


async def _live(client: httpx.AsyncClient, url: str, count: int) -> bool:
    async with asyncio.timeout(10):
        while True:
            if f"stepgate_runs_live {count}.0" in (await client.get(f"{url}/metrics")).text:
                return True
            await asyncio.sleep(0.05)
