"""Row 11: what the size of the database costs. `BENCH_RUNS` (default 100,000) runs, with their events and their usage,
are copies of one real run; the same requests are made beside a hundred of them, to two gateways in turn. Of a copied
log only the first two and the last two events are kept, so that a million runs take less than 3 GB.
"""

import os
import signal
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
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
TABLES = {
    "runs": "TRUE",
    "events": "(seq <= 2 OR seq > (SELECT max(seq) - 2 FROM events AS log WHERE log.run_id = events.run_id))",
    "model_usage": "TRUE",
}
"""What is copied, and which of a run's rows."""

Ask = Callable[[aiohttp.ClientSession, str, str], Awaitable[None]]


async def rows() -> list[Row]:
    """Medians of a hundred requests each: a page of the list, one run, its log followed from the start, a turn."""
    with ExitStack() as stack:
        server = stack.enter_context(ScriptedServer(turn()))
        filled: list[tuple[Running, str]] = []
        for count in (FEW, RUNS):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            run_id = await _fill(server.url, folder, count)
            filled.append((stack.enter_context(stepgate.running(server.url, folder)), run_id))
        times = await _time(filled)
    return [
        Row(
            f"11 {name} among {RUNS:,} stored runs over {FEW}",
            "",
            many / few,
            AIM,
            note=f"({many:.1f} and {few:.1f} ms)",
        )
        for name, (few, many) in times.items()
    ]


async def _fill(upstream: str, folder: Path, count: int) -> str:
    """Stores so many runs. Returns the id of the real one."""
    with stepgate.running(upstream, folder) as one:
        run_id = await _make_run(one)
        one.process.signal(signal.SIGTERM)  # the usage of the run is stored
        one.process.wait()
    _copy_run(folder / "data" / "stepgate.db", run_id, count - 1)
    return run_id


async def _make_run(one: Running) -> str:
    async with client() as session:
        await ask(session, one.url, request("turn"))
        async with session.get(f"{one.url}/v1/runs") as response:
            run_id: str = (await response.json())["data"][0]["id"]
    return run_id


def _copy_run(database: Path, run_id: str, copies: int) -> None:
    """Store so many copies of a run, each a second older than the one before."""
    with sqlite3.connect(database) as db:
        for table, kept in TABLES.items():
            columns = [str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")]
            times = {"created_at", "updated_at", "at"}
            values = [
                "printf('run_%032x', n)" if column == "run_id" else f"{column} - n" if column in times else column
                for column in columns
            ]
            db.execute(
                f"WITH RECURSIVE copies(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < ?) "
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM copies, {table} "
                f"WHERE run_id = ? AND {kept}",
                (copies, run_id),
            )
    db.close()


async def _time(filled: Sequence[tuple[Running, str]]) -> dict[str, list[float]]:
    """The medians of each request in ms, in the order of the gateways.

    They are asked in turn, so that a busy machine is busy for all.
    """
    body = request("turn")

    async def make_turn(session: aiohttp.ClientSession, url: str, _: str) -> None:
        await ask(session, url, body)

    asked: dict[str, Ask] = {
        "list": lambda session, url, _: _read(session, f"{url}/v1/runs?limit=20"),
        "one run": lambda session, url, run: _read(session, f"{url}/v1/runs/{run}"),
        "its events": lambda session, url, run: _read(session, f"{url}/v1/runs/{run}/events"),
        "a turn": make_turn,
    }
    found = {}
    async with client() as session:
        for one, _ in filled:
            await ask(session, one.url, body)
        for name, make_request in asked.items():
            times: list[list[float]] = [[] for _ in filled]
            for _ in range(TIMES):
                for place, (one, run_id) in enumerate(filled):
                    started = perf_counter()
                    await make_request(session, one.url, run_id)
                    times[place].append(1000 * (perf_counter() - started))
            found[name] = [median(each) for each in times]
    return found


async def _read(session: aiohttp.ClientSession, url: str) -> None:
    async with session.get(url) as response:
        data = await response.read()
    if response.status != 200:
        raise RuntimeError(f"{url} answered {response.status}: {data[:300]!r}")
