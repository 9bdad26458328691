"""CPU of one append: the journal as it is, and the same statements through SQLAlchemy's async engine on aiosqlite.

`python -m tests.bench.journal [appends]` prints a table; docs/adr/0001-journal-driver.md holds what it printed.
The comparison needs `aiosqlite` and `greenlet`, which Stepgate does not: without them only its own side is measured.
"""

import asyncio
import importlib.util
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import process_time, time
from typing import TYPE_CHECKING

from sqlalchemy import insert, update

from agent.core.errors import StaleEpochError
from agent.core.events import Event, EventDraft, RunCreated, StepFinished, StepOutput
from agent.core.models import AgentRequest, Room
from agent.storage.event_codec import encode
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.tables.runs import events, runs

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

CONCURRENCIES = (1, 50)
BODY = StepFinished(output=StepOutput(value={"items": ["some words"] * 30}, text="a result " * 40), duration=0.2)
CREATED = RunCreated(request=AgentRequest(prompt="measure"), room=Room(id="bench"), owner="local")

Append = Callable[[str], Awaitable[object]]


async def measure(append: Append, concurrency: int, appends: int) -> float:
    """Microseconds of CPU per append, all threads of this process together."""

    async def write(run_id: str) -> None:
        for _ in range(appends // concurrency):
            await append(run_id)

    before = process_time()
    await asyncio.gather(*(write(f"run_{number}") for number in range(concurrency)))
    return (process_time() - before) / appends * 1e6


async def create_runs(path: Path) -> None:
    """A fresh store with a run for every writer."""
    store = await open_sqlite(path)
    for number in range(max(CONCURRENCIES)):
        await store.journal.create_run(f"run_{number}", CREATED, worker="bench", lease_s=3600)
    await store.close()


async def through_driver(path: Path, concurrency: int, appends: int) -> float:
    """The journal itself: one thread, the driver's own SQL, shared transactions."""
    await create_runs(path)
    store = await open_sqlite(path)
    drafts = [EventDraft(BODY, "s1", 1)]
    spent = await measure(lambda run_id: store.journal.append(run_id, 1, drafts), concurrency, appends)
    await store.close()
    return spent


async def through_sqlalchemy(path: Path, concurrency: int, appends: int) -> float:
    """The same rows by SQLAlchemy Core on aiosqlite: one connection, as SQLite has one writer."""
    from sqlalchemy.ext.asyncio import create_async_engine  # cannot be imported without greenlet

    await create_runs(path)
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}", pool_size=1, max_overflow=0)
    async with engine.connect() as connection:
        await connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
    spent = await measure(lambda run_id: _append(engine, run_id), concurrency, appends)
    await engine.dispose()
    return spent


async def _append(engine: "AsyncEngine", run_id: str) -> Event:
    now = time()
    advance = (
        update(runs)
        .where(runs.c.run_id == run_id, runs.c.epoch == 1, runs.c.terminal.is_(False))
        .values(last_seq=runs.c.last_seq + 1, updated_at=now)
        .returning(runs.c.last_seq)
    )
    async with engine.begin() as connection:
        seq = (await connection.execute(advance)).scalar_one_or_none()
        if seq is None:
            raise StaleEpochError(f"run {run_id} has another owner")
        event, row = encode(Event(run_id, seq, 1, now, BODY, "s1", 1))
        await connection.execute(insert(events), [dict(zip(events.c.keys(), row, strict=True))])
    return event


async def main(appends: int) -> None:
    """Print the table."""
    comparable = all(importlib.util.find_spec(name) for name in ("aiosqlite", "greenlet"))
    print(f"CPU per append in µs, {appends} appends of one event ({len(BODY.model_dump_json())} bytes of JSON)")
    print(f"{'at once':>8}{'journal':>10}{'SQLAlchemy + aiosqlite':>25}{'ratio':>8}")
    for concurrency in CONCURRENCIES:
        with tempfile.TemporaryDirectory() as folder:
            own = await through_driver(Path(folder) / "own.db", concurrency, appends)
            line = f"{concurrency:>8}{own:>10.0f}"
            if comparable:
                other = await through_sqlalchemy(Path(folder) / "other.db", concurrency, appends)
                line += f"{other:>25.0f}{other / own:>8.1f}"
            print(line)
    if not comparable:
        print("aiosqlite and greenlet are not installed: nothing to compare with")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
