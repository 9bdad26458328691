"""The database thread: shared transactions, isolated failures, a full disk, closing."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ConflictError, NotFoundError, StoreError, StoreFullError
from agent.core.events import Event
from agent.storage.journal import Journal
from agent.storage.journal_sqlite import SqliteStore, open_sqlite
from agent.storage.sql import SqliteClient
from agent.storage.sqlite import SqliteDatabase, open_database
from tests.contract.journal_stores import DEADLINE_S, LEASE_S, make_end, make_note, new_run, read_seqs


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    database = open_database(tmp_path / "stepgate.db")
    yield database
    await database.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await open_sqlite(tmp_path / "stepgate.db")
    yield store
    await store.close()


async def add(database: SqliteDatabase, checksum: str, error: Exception | None = None) -> str:
    """Writes a blob, and raises `error` after it if given."""

    def unit(db: sqlite3.Connection) -> str:
        db.execute("INSERT INTO blobs (checksum, data) VALUES (?, x'00')", (checksum,))
        if error is not None:
            raise error
        return checksum

    return await database.write(unit)


async def blobs(database: SqliteDatabase) -> list[str]:
    return await database.read(
        lambda db: [str(row[0]) for row in db.execute("SELECT checksum FROM blobs ORDER BY checksum")]
    )


@pytest.mark.parametrize(
    "error",
    [KeyError("a defect"), ConflictError("ours"), sqlite3.OperationalError("theirs")],
    ids=lambda e: type(e).__name__,
)
async def test_a_failing_unit_leaves_nothing_and_spoils_nobody(database: SqliteDatabase, error: Exception) -> None:
    async with asyncio.timeout(DEADLINE_S):
        results = await asyncio.gather(
            add(database, "a"), add(database, "b", error), add(database, "c"), return_exceptions=True
        )
    expected = StoreError if isinstance(error, sqlite3.Error) else type(error)
    assert results[0] == "a"
    assert isinstance(results[1], expected)
    assert results[2] == "c"
    assert await blobs(database) == ["a", "c"]


async def test_units_that_arrive_together_share_a_transaction(database: SqliteDatabase) -> None:
    """Watched from a second connection: while the last unit runs, nothing of the first is committed."""
    watcher = sqlite3.connect(database.path, check_same_thread=False)
    gate = threading.Event()
    seen: list[int] = []

    def hold(_: sqlite3.Connection) -> None:
        gate.wait(30)

    def look(_: sqlite3.Connection) -> None:
        seen.append(watcher.execute("SELECT count(*) FROM blobs").fetchone()[0])

    holding = asyncio.create_task(database.write(hold))
    await asyncio.sleep(0)
    group = [asyncio.create_task(add(database, "a")), asyncio.create_task(database.write(look))]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(holding, *group)
    watcher.close()
    assert seen == [0]
    assert await blobs(database) == ["a"]


async def test_more_units_than_fit_a_group_all_run_in_order(database: SqliteDatabase) -> None:
    names = [f"{number:04}" for number in range(300)]
    assert await asyncio.gather(*(add(database, name) for name in names)) == names
    assert await blobs(database) == names


async def test_a_cancelled_caller_disturbs_neither_the_thread_nor_its_neighbours(database: SqliteDatabase) -> None:
    gate = threading.Event()
    holding = asyncio.create_task(database.write(lambda _: gate.wait(30)))
    await asyncio.sleep(0)
    cancelled = asyncio.create_task(add(database, "a"))
    waiting = asyncio.create_task(add(database, "b"))
    await asyncio.sleep(0)
    cancelled.cancel()
    gate.set()
    async with asyncio.timeout(DEADLINE_S):
        await holding
        assert await waiting == "b"
    assert cancelled.cancelled()
    assert await blobs(database) == ["a", "b"]  # submitted is submitted


async def test_reading_goes_on_while_another_process_writes(database: SqliteDatabase) -> None:
    await add(database, "a")
    with sqlite3.connect(database.path, isolation_level=None) as writer:
        writer.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(DEADLINE_S):
            assert await blobs(database) == ["a"]
        writer.execute("ROLLBACK")
    writer.close()


async def test_units_of_a_loop_that_is_gone_do_not_stop_the_thread(database: SqliteDatabase) -> None:
    gate = threading.Event()

    async def leave() -> None:
        asyncio.ensure_future(database.write(lambda _: gate.wait(30)))  # noqa: RUF006 - abandoned on purpose
        await asyncio.sleep(0)

    def other_loop() -> None:
        asyncio.run(leave())
        gate.set()

    await asyncio.to_thread(other_loop)
    async with asyncio.timeout(DEADLINE_S):
        assert await add(database, "a") == "a"


async def test_closing_finishes_what_was_submitted_and_refuses_more(database: SqliteDatabase) -> None:
    pending = [asyncio.create_task(add(database, name)) for name in "abc"]
    await asyncio.sleep(0)
    await database.close()
    await database.close()
    assert [task.result() for task in pending] == ["a", "b", "c"]
    with pytest.raises(StoreError, match="closed"):
        await add(database, "d")


async def test_a_full_disk_loses_nothing_and_work_goes_on_once_there_is_space(store: SqliteStore) -> None:
    journal = store.journal
    run_id = await new_run(journal)
    acknowledged = await journal.read_events(run_id)
    await _limit_pages(store.database, extra=8)
    with pytest.raises(StoreFullError, match="free space"):
        await _append_much(journal, run_id, acknowledged)
    assert 1 < len(acknowledged) < 100
    with pytest.raises(StoreFullError):
        await journal.check_writable()
    assert await journal.read_events(run_id) == acknowledged
    assert (await journal.get_run(run_id, owner="local")).last_seq == len(acknowledged)
    await _limit_pages(store.database, extra=1_000_000)
    await journal.check_writable()
    acknowledged += await journal.append(run_id, 1, [make_end()])
    assert await journal.read_events(run_id) == acknowledged


async def test_what_still_fits_a_nearly_full_disk_is_stored_though_its_neighbour_does_not(store: SqliteStore) -> None:
    small, big = await new_run(store.journal, "run_small"), await new_run(store.journal, "run_big")
    await _limit_pages(store.database, extra=4)
    results = await asyncio.gather(
        store.journal.append(big, 1, [make_note("x" * 1_000_000)]),
        store.journal.append(small, 1, [make_note("x")]),
        return_exceptions=True,
    )
    assert isinstance(results[0], StoreFullError)
    assert await read_seqs(store.journal, big) == [1]
    assert await read_seqs(store.journal, small) == [1, 2]


async def test_a_log_that_cannot_be_read_is_not_claimed(store: SqliteStore) -> None:
    run_id = await new_run(store.journal)

    def unit(db: sqlite3.Connection) -> None:
        db.execute(
            "INSERT INTO events (run_id, seq, epoch, type, v, data, at) VALUES (?, 2, 1, 'step.dreamt', 1, '{}', 0)",
            (run_id,),
        )

    await store.database.write(unit)
    with pytest.raises(StoreError, match="dreamt"):
        await store.journal.claim(run_id, worker="a", lease_s=LEASE_S)
    row = await store.journal.get_run(run_id, owner="local")
    assert (row.epoch, row.worker) == (1, "a")


async def test_taint_is_kept_with_the_answer(store: SqliteStore) -> None:
    await store.conversations.add_exchange("local", "chat", "run_1", "q", "from the web", tainted=True)
    rows = await store.database.read(lambda db: db.execute("SELECT role, tainted FROM turns ORDER BY id").fetchall())
    assert rows == [("user", 0), ("assistant", 1)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT run_id FROM runs WHERE terminal = 0 AND (worker IS NULL OR lease_until < 1) "
        "ORDER BY created_at + 0 LIMIT 100",
        "SELECT DISTINCT worker FROM runs WHERE terminal = 0 AND worker IS NOT NULL",
        "UPDATE runs SET lease_until = 2 WHERE terminal = 0 AND worker = 'a'",
    ],
)
async def test_looking_for_abandoned_runs_reads_only_unfinished_ones(store: SqliteStore, query: str) -> None:
    plan = await store.database.read(lambda db: str(db.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()))
    assert "runs_unfinished" in plan


async def test_errors_of_ours_reach_the_caller_as_they_are(store: SqliteStore) -> None:
    with pytest.raises(NotFoundError) as caught:
        await store.journal.get_run("run_unknown", owner="local")
    assert caught.value.agent_id == "journal"


async def _append_much(journal: Journal, run_id: str, acknowledged: list[Event]) -> None:
    for number in range(100):
        acknowledged += await journal.append(run_id, 1, [make_note(f"{number} " + "x" * 3000)])


async def _limit_pages(database: SqliteDatabase, *, extra: int) -> None:
    """Leaves room for so many pages. SQLite then fails as on a full disk."""

    def unit(db: sqlite3.Connection) -> None:
        pages = int(db.execute("PRAGMA page_count").fetchone()[0])
        db.execute(f"PRAGMA max_page_count = {pages + extra}")

    await database.write(unit)


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No unit counts as slow, however busy the machine of the tests is."""
    monkeypatch.setattr("agent.storage.sqlite.SLOW_SECONDS", 60.0)
    monkeypatch.setattr("agent.storage.sql.BRIEF_SECONDS", 60.0)


@pytest.mark.usefixtures("quick_disk")
async def test_a_brief_unit_runs_on_the_callers_thread_and_its_failure_leaves_nothing(database: SqliteDatabase) -> None:
    threads = {await database.write(lambda _: threading.get_ident(), brief=brief) for brief in (True, False)}
    assert threading.get_ident() in threads
    assert len(threads) == 2

    def fail(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO blobs (checksum, data) VALUES ('half', x'00')")
        raise ConflictError("ours")

    with pytest.raises(ConflictError):
        await database.write(fail, brief=True)
    assert await blobs(database) == []


@pytest.mark.usefixtures("quick_disk")
async def test_a_brief_unit_never_waits_for_another_process(database: SqliteDatabase) -> None:
    with sqlite3.connect(database.path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        assert database.run_here(lambda _: None, writes=True) is None
        assert database.run_here(lambda _: 5, writes=False) is not None
        waiting = asyncio.create_task(database.write(lambda _: threading.get_ident(), brief=True))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        other.execute("ROLLBACK")
    other.close()
    async with asyncio.timeout(DEADLINE_S):
        assert await waiting != threading.get_ident()


@pytest.mark.usefixtures("quick_disk")
async def test_a_brief_unit_waits_for_the_end_of_what_the_thread_does_but_not_twice_for_the_same(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, release = threading.Event(), threading.Event()

    def occupy(_: sqlite3.Connection) -> bool:
        entered.set()
        return release.wait(DEADLINE_S)

    busy = asyncio.create_task(database.read(occupy))
    await asyncio.to_thread(entered.wait, DEADLINE_S)
    assert database.run_here(lambda _: 5, writes=False) is None
    monkeypatch.setattr("agent.storage.sqlite.THREAD_WAIT_SECONDS", 2 * DEADLINE_S)
    started = time.monotonic()
    assert database.run_here(lambda _: 5, writes=False) is None
    assert time.monotonic() - started < DEADLINE_S
    release.set()
    assert await busy

    entered.clear()
    release.clear()
    busy = asyncio.create_task(database.read(occupy))
    await asyncio.to_thread(entered.wait, DEADLINE_S)
    threading.Timer(0.02, release.set).start()
    assert database.run_here(lambda _: 5, writes=False) is not None
    assert await busy


async def test_after_a_slow_unit_the_thread_takes_over(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.storage.sqlite.SLOW_SECONDS", 0.0)
    assert database.run_here(lambda _: 5, writes=False) is not None
    assert database.run_here(lambda _: 5, writes=False) is None
    assert await database.read(lambda _: 5, brief=True) == 5


@pytest.mark.usefixtures("quick_disk")
async def test_the_thread_makes_the_checkpoints_of_brief_units(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.storage.sqlite.CHECKPOINT_UNITS", 3)

    def write(number: int) -> int:
        row = (str(number), bytes(10_000))
        unit = database.run_here(
            lambda db: db.execute("INSERT INTO blobs (checksum, data) VALUES (?,?)", row), writes=True
        )
        return 0 if unit is None else 1  # the thread may be making a checkpoint

    before, written, number = database.path.stat().st_size, 0, 0
    async with asyncio.timeout(60):
        while database.path.stat().st_size == before:
            number += 1
            written += write(number)
            await asyncio.sleep(0.01)
    assert len(await blobs(database)) == written


@pytest.mark.usefixtures("quick_disk")
async def test_a_statement_that_is_brief_on_average_runs_on_the_callers_thread(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = SqliteClient(database)
    threads: list[int] = []
    run, statement = client._execute, "SELECT 1"

    def watched(*arguments: Any) -> Any:
        threads.append(threading.get_ident())
        return run(*arguments)

    monkeypatch.setattr(client, "_execute", watched)
    # 4 ms once by accident, then a table that has grown, and shrinks again
    times = [0.0002, 0.0002, 0.004, 0.0002, 0.1, *[0.0002] * 40]
    clock = iter([reading for number, took in enumerate(times) for reading in (number, number + took)])
    monkeypatch.setattr("agent.storage.sql.thread_time", lambda: next(clock))
    monkeypatch.setattr("agent.storage.sql.BRIEF_SECONDS", 0.001)
    for _ in times:
        assert await client.read(statement) == [(1,)]
    on_loop = [thread == threading.get_ident() for thread in threads]
    assert on_loop[:8] == [False, True, True, True, True, False, False, False]
    assert on_loop[-1], "it is measured on the thread too, and comes back"
