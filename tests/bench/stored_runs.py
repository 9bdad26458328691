"""Row 11: what the size of the database costs. `BENCH_RUNS` (default 100,000) runs, with their events and their usage,
are copies of one real run; the same requests are made beside a hundred of them.
"""

import os
import signal
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import aiohttp

from tests.bench.contenders import Running, stepgate
from tests.bench.load import ask, client
from tests.bench.report import Row
from tests.bench.work import request, turn
from tests.support.scripted_server import ScriptedServer

RUNS = int(os.environ.get("BENCH_RUNS") or 100_000)
FEW = 100
TIMES = 100
AIM = 1.25
"""Times as long among all runs as among few."""
TABLES = ("runs", "events", "model_usage")

Ask = Callable[[aiohttp.ClientSession, str], Awaitable[None]]


async def rows() -> list[Row]:
    """Medians of a hundred requests each: a page of the list, one run, its log followed from the start, a turn."""
    with ScriptedServer(turn()) as server:
        few, many = [await _measured(server.url, count) for count in (FEW, RUNS)]
    return [
        Row(
            f"11 {name} among {RUNS:,} stored runs over {FEW}",
            "",
            many[name] / few[name],
            AIM,
            note=f"({many[name]:.1f} and {few[name]:.1f} ms)",
        )
        for name in few
    ]


async def _measured(upstream: str, count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with stepgate.running(upstream, folder) as one:
            run_id = await _make_run(one)
            one.process.signal(signal.SIGTERM)  # the usage of the run is stored
            one.process.wait()
        _copy_run(folder / "data" / "stepgate.db", run_id, count - 1)
        with stepgate.running(upstream, folder) as one:
            return await _time(one, run_id)


async def _make_run(one: Running) -> str:
    async with client() as session:
        await ask(session, one.url, request("turn"))
        async with session.get(f"{one.url}/v1/runs") as response:
            run_id: str = (await response.json())["data"][0]["id"]
    return run_id


def _copy_run(database: Path, run_id: str, copies: int) -> None:
    """Store so many copies of a run, each a second older than the one before."""
    with sqlite3.connect(database) as db:
        for table in TABLES:
            columns = [str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")]
            times = {"created_at", "updated_at", "at"}
            values = [
                "printf('run_%032x', n)" if column == "run_id" else f"{column} - n" if column in times else column
                for column in columns
            ]
            db.execute(
                f"WITH RECURSIVE copies(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < ?) "
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM copies, {table} "
                "WHERE run_id = ?",
                (copies, run_id),
            )
    db.close()


async def _time(one: Running, run_id: str) -> dict[str, float]:
    body = request("turn")

    async def make_turn(session: aiohttp.ClientSession, _: str) -> None:
        await ask(session, one.url, body)

    asked: dict[str, Ask] = {
        "list": lambda session, _: _read(session, f"{one.url}/v1/runs?limit=20"),
        "one run": lambda session, run: _read(session, f"{one.url}/v1/runs/{run}"),
        "its events": lambda session, run: _read(session, f"{one.url}/v1/runs/{run}/events"),
        "a turn": make_turn,
    }
    found = {}
    async with client() as session:
        await ask(session, one.url, body)
        for name, make_request in asked.items():
            times = []
            for _ in range(TIMES):
                started = perf_counter()
                await make_request(session, run_id)
                times.append(1000 * (perf_counter() - started))
            found[name] = median(times)
    return found


async def _read(session: aiohttp.ClientSession, url: str) -> None:
    async with session.get(url) as response:
        data = await response.read()
    if response.status != 200:
        raise RuntimeError(f"{url} answered {response.status}: {data[:300]!r}")
