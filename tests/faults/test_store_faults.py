"""A store that fails for a while, in the middle of a run: nothing accepted is lost, no effect happens twice."""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agent.core.errors import StoreError, StoreFullError
from agent.core.models import AgentRequest
from agent.storage.sqlite import SqliteDatabase
from tests.faults.gateway import DEADLINE_S, ROOM, FaultyGateway, faulty_gateway
from tests.support.builders import RUN_ID, created
from tests.support.faulty import Gate
from tests.support.tools import EFFECT, FunctionTool, returning

Trouble = Callable[[FaultyGateway], AbstractAsyncContextManager[None]]


def database_of(gateway: FaultyGateway) -> SqliteDatabase:
    journal: Any = gateway.stepgate.journal
    database: SqliteDatabase = journal._database
    return database


async def pragma(gateway: FaultyGateway, text: str) -> None:
    await database_of(gateway).read(lambda connection: connection.execute(f"PRAGMA {text}").fetchall())


def _insert_blob(data: bytes) -> Callable[[sqlite3.Connection], object]:
    return lambda db: db.execute("INSERT INTO blobs (checksum, data) VALUES (?,?)", (data[:32].hex(), data))


@asynccontextmanager
async def full(gateway: FaultyGateway) -> AsyncIterator[None]:
    """SQLite fails as on a full disk, with the pages that are free already given away."""
    await pragma(gateway, "max_page_count = 1")  # as few as there are
    for size in (4_000, 50):
        with contextlib.suppress(StoreFullError):
            while True:
                await database_of(gateway).write(_insert_blob(os.urandom(size)))
    try:
        yield
    finally:
        await pragma(gateway, "max_page_count = 1000000")


@asynccontextmanager
async def locked(gateway: FaultyGateway) -> AsyncIterator[None]:
    """Another process writes for longer than ours waits."""
    with sqlite3.connect(database_of(gateway).path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    other.close()


@asynccontextmanager
async def read_only(gateway: FaultyGateway) -> AsyncIterator[None]:
    """Every write is refused as that of a read-only file."""
    await pragma(gateway, "query_only = ON")
    yield
    await pragma(gateway, "query_only = OFF")


@pytest.mark.parametrize(
    ("trouble", "code", "said"),
    [
        (full, "ERR_STORE_FULL", "free space"),
        (locked, "ERR_STORE", "another process has been writing"),
        (read_only, "ERR_STORE", "check the owner and mode"),
    ],
)
async def test_a_store_that_fails_for_a_while_loses_no_run_and_repeats_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Trouble, code: str, said: str
) -> None:
    monkeypatch.setattr("agent.storage.sqlite.BUSY_SECONDS", 0.2)
    gate, send = Gate(), returning("send", "sent", annotations=EFFECT)
    wait = FunctionTool("wait", gate.work)
    async with faulty_gateway(tmp_path, None, send, wait, lease_seconds=0.6) as gateway:
        calls: list[JsonValue] = [{"tool": "send"}, {"tool": "wait"}]
        run_id = await gateway.stepgate.service.start_run(AgentRequest(prompt="", metadata={"tool_calls": calls}))
        async with asyncio.timeout(DEADLINE_S):
            await gate.reached.wait()
            while not any(event.type == "step.judged" for event in gateway.logs[run_id]):  # noqa: ASYNC110 - of `send`
                await asyncio.sleep(0.01)
            async with trouble(gateway):
                gate.open()
                refused = await gateway.client.post(f"{gateway.url}/v1/agent", json={"prompt": "/calculator 2*21"})
                unready = await gateway.client.get(f"{gateway.url}/ready")
                alive = await gateway.client.get(f"{gateway.url}/health")
                while gateway.stepgate.service.worker.live_count:  # noqa: ASYNC110 - it is let go of without a word
                    await asyncio.sleep(0.01)
            response = await gateway.stepgate.service.wait_for_response(run_id)
            after = await gateway.client.post(f"{gateway.url}/v1/agent", json={"prompt": "/calculator 2*21"})
        faults = gateway.faults_of_log(run_id)
    error = refused.json()["error"]
    assert (refused.status_code, error["error_code"]) == (503, code)
    assert said in error["message"]
    assert (unready.status_code, alive.status_code) == (503, 200)
    assert response.metadata["status"] == "complete"
    assert faults == []
    assert len(send.calls) == 1
    assert after.status_code == 200


async def test_a_store_that_fails_for_long_is_told_of_once_and_its_return_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    looked, is_away, back = 0, True, asyncio.Event()
    async with faulty_gateway(tmp_path, None, lease_seconds=0.3) as gateway:
        journal: Any = gateway.stepgate.journal
        workers = journal.list_workers

        async def away() -> Any:
            nonlocal looked
            looked += 1
            if is_away:
                raise StoreError("the store is away", agent_id="store")
            back.set()
            return await workers()

        journal.list_workers = away
        async with asyncio.timeout(DEADLINE_S):
            while looked < 10:  # noqa: ASYNC110 - how often it looks is not told
                await asyncio.sleep(0.01)
            is_away = False
            await back.wait()
            told = [record for record in caplog.records if record.name == "agent.runs.run_worker"]
            while len(told) < 2:
                await asyncio.sleep(0.01)
                told = [record for record in caplog.records if record.name == "agent.runs.run_worker"]
    began, over = (record.message for record in told)
    assert began == "the store cannot be used: the store is away"
    assert over.startswith("recovered after ")
    assert over.endswith("failures: the store cannot be used")


async def test_a_clock_that_jumps_by_hours_disturbs_no_run(tmp_path: Path) -> None:
    ahead = [0.0]

    def jumping(name: str, hours: float) -> FunctionTool:
        async def work(_: object) -> JsonValue:
            ahead[0] += hours * 3600
            await asyncio.sleep(0.5)  # the watch renews leases and looks for abandoned runs meanwhile
            return f"{hours:+g} h"

        return FunctionTool(name, work, annotations=EFFECT)

    tools = [jumping("forth", 5), jumping("back", -9), jumping("again", 3)]
    room = "budgets: {max_parallel: 1}"
    async with faulty_gateway(tmp_path, None, *tools, room=room, lease_seconds=0.6) as gateway:
        journal: Any = gateway.stepgate.journal
        journal._clock = lambda: time.time() + ahead[0]
        response, log = await gateway.call("forth", "back", "again")
        faults = gateway.faults_of_log(log[0].run_id)
        listed = (await gateway.client.get(f"{gateway.url}/v1/runs")).json()["data"]
    assert faults == []
    assert [len(tool.calls) for tool in tools] == [1, 1, 1]
    assert response.metadata["status"] == "complete"
    assert {event.type for event in log}.isdisjoint({"run.suspended", "run.failed"})
    assert max(event.at for event in log) - min(event.at for event in log) > 3600, "the clock did jump"
    assert all((step.duration or 0) >= 0 for step in response.steps)
    assert [row["status"] for row in listed] == ["succeeded"]


async def test_a_run_left_by_a_process_whose_clock_was_ahead_is_taken_up_at_once(tmp_path: Path) -> None:
    async with faulty_gateway(tmp_path, None, returning("send", "sent", annotations=EFFECT)) as gateway:
        service: Any = gateway.stepgate.service
        journal: Any = gateway.stepgate.journal
        room = gateway.stepgate.rooms.get(ROOM, None)
        journal._clock = lambda: time.time() + 5 * 3600
        body = created("", room=room, metadata={"tool_calls": [{"tool": "send"}]})
        dead = service.worker._worker.split(":")[0] + ":999999999:x"
        await journal.create_run(RUN_ID, body, worker=dead, lease_s=60)
        journal._clock = time.time
        assert await service.worker.recover_runs() == 1
        async with asyncio.timeout(DEADLINE_S):
            response = await service.wait_for_response(RUN_ID)
    assert response.metadata["status"] == "complete"
