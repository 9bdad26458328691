"""A PostgreSQL that is slow or full in the middle of a run: nothing accepted is lost, no effect happens twice."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from pydantic import JsonValue

from agent.core.models import AgentRequest
from tests.faults.gateway import FaultyGateway, faulty_gateway
from tests.soak.postgres_server import PostgresServer, find_binaries
from tests.support.faulty import Gate
from tests.support.tools import EFFECT, FunctionTool, returning

pytestmark = pytest.mark.skipif(find_binaries() is None, reason="no PostgreSQL server is installed here")

DISK_MB = 120
"""An empty server takes half of it."""
SLOW_S = 3.0
"""Five leases."""


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of its own in memory, so that it can be filled. Skips where none may be mounted."""
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mounting, check=False, capture_output=True).returncode != 0:
        pytest.skip("a small disk can be mounted by root only, and not in every container")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(disk: Path, server: PostgresServer) -> Iterator[None]:
    """Nothing is left of the disk. When there is space again the server is started, if it has given up."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    os.write(file.fileno(), bytes(size))
            except OSError:
                pass
    # What stands in the server's caches needs the disk now.
    with psycopg.connect(server.url, autocommit=True) as connection, suppress(psycopg.Error):
        connection.execute("CREATE TABLE filler AS SELECT repeat('x', 100) FROM generate_series(1, 1000000)")
    try:
        yield
    finally:
        filler.unlink()
        server.ensure_running()


@contextmanager
def slow(server: PostgresServer) -> Iterator[None]:
    """Another session holds the tables of runs for five leases; the block waits for nothing."""
    connection = psycopg.connect(server.url)
    connection.execute("LOCK TABLE runs, events IN ACCESS EXCLUSIVE MODE")
    timer = threading.Timer(SLOW_S, connection.close)
    timer.start()
    try:
        yield
    finally:
        timer.join()


async def _start_run(gateway: FaultyGateway, gate: Gate) -> str:
    """Starts a run and returns its id when its first step is judged and its second one is at work."""
    calls: list[JsonValue] = [{"tool": "send"}, {"tool": "wait"}]
    run_id = await gateway.stepgate.service.start_run(AgentRequest(prompt="", metadata={"tool_calls": calls}))
    await gate.reached.wait()
    while not any(event.type == "step.judged" for event in gateway.logs[run_id]):  # noqa: ASYNC110 - of `send`
        await asyncio.sleep(0.01)
    return run_id


async def _check(gateway: FaultyGateway, run_id: str, send: Any) -> None:
    """Fails unless the run ends whole and the gateway serves."""
    response = await gateway.stepgate.service.wait_for_response(run_id)
    after = await gateway.client.post(f"{gateway.url}/v1/agent", json={"prompt": "/calculator 2*21"})
    assert response.metadata["status"] == "complete"
    log = await gateway.stepgate.journal.read_events(run_id)
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert [event.seq for event in log if event.body.terminal] == [len(log)]
    assert len(send.calls) == 1
    assert after.status_code == 200


async def _ask(gateway: FaultyGateway) -> dict[str, Any] | None:
    """The answer to a question, or None if it lets one wait: its first event may have found a place."""
    try:
        call = {"tool": "calculator", "args": {"expression": "2*21"}}
        body = {"prompt": "Compute it.", "metadata": {"tool_calls": [call]}}
        return dict((await gateway.client.post(f"{gateway.url}/v1/agent", json=body, timeout=3)).json())
    except httpx.ReadTimeout:
        return None


async def test_a_full_disk_is_told_and_loses_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gate, send = Gate(), returning("send", "sent", annotations=EFFECT)
    wait = FunctionTool("wait", gate.work)
    with small_disk(tmp_path / "disk") as disk, PostgresServer(disk / "postgres") as server:
        options: dict[str, Any] = {"database_url": server.url, "lease_seconds": 0.6}
        async with asyncio.timeout(90), faulty_gateway(tmp_path / "gateway", None, send, wait, **options) as gateway:
            run_id = await _start_run(gateway, gate)
            with full(disk, server):
                gate.open()
                answers = await asyncio.gather(*(_ask(gateway) for _ in range(10)))
                alive = await gateway.client.get(f"{gateway.url}/health")
            await _check(gateway, run_id, send)
            service = gateway.stepgate.service
            await asyncio.gather(*(service.wait_for_response(row.run_id) for row in await service.list_runs()))
            ended = [row.status for row in await service.list_runs()]
    refusals = {answer["error"]["error_code"] for answer in answers if answer is not None and "error" in answer}
    assert refusals <= {"ERR_STORE_FULL", "ERR_STORE"}
    assert "is full; free space" in caplog.text
    assert set(ended) <= {"succeeded", "awaiting_input"}  # no model understands the prompt of `_check`
    assert alive.status_code == 200


async def test_a_slow_server_delays_runs_and_loses_none(tmp_path: Path) -> None:
    gate, send = Gate(), returning("send", "sent", annotations=EFFECT)
    wait = FunctionTool("wait", gate.work)
    with PostgresServer(tmp_path / "postgres") as server:
        options: dict[str, Any] = {"database_url": server.url, "lease_seconds": 0.6}
        async with asyncio.timeout(90), faulty_gateway(tmp_path / "gateway", None, send, wait, **options) as gateway:
            run_id = await _start_run(gateway, gate)
            with slow(server):
                gate.open()
                alive = await gateway.client.get(f"{gateway.url}/health")
            await _check(gateway, run_id, send)
    assert alive.status_code == 200
