"""One SQLite file with one connection and one thread. A unit of work is one function that runs on that thread.

Units that arrive together share a transaction (group commit). An open cursor never outlives its unit, so no reader
blocks the write-ahead log and no await splits a transaction.

A brief unit runs on the caller's thread while nobody else uses the file: a hand-over costs more than its few rows. See
docs/adr/0012-brief-units.md.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

from agent.core.errors import AgentError, StoreError, StoreFullError
from agent.storage.migrations import FIRST, HEAD, SQUASHED, STAMP, check_revision

T = TypeVar("T")
Unit = Callable[[sqlite3.Connection], T]

MAX_GROUP = 64
"""Most units per transaction: enough to share the cost of a commit, few enough that none waits long."""

BUSY_SECONDS = 30
"""How long a transaction waits for those of other processes, which last milliseconds."""

SLOW_SECONDS = 0.02
"""A brief unit that takes longer than this shows a slow disk, and holds the event loop too long."""
SLOW_PAUSE_SECONDS = 5.0
"""How long brief units use the thread after a slow one."""
THREAD_WAIT_SECONDS = 0.005
"""How long a brief unit waits for what the thread is doing. That is over soon, since the waiting caller leaves it the
interpreter. If brief units followed others to the thread instead, the next ones would too: under load most did."""
CHECKPOINT_PAGES = 1000
"""The size of the write-ahead log at which a commit on the thread makes a checkpoint; SQLite's default."""
CHECKPOINT_UNITS = 200
"""Brief writes between checkpoints, about 4 MB of write-ahead log. A checkpoint waits for the disk, so the thread does
it."""

SCHEMA_SCRIPT = Path(__file__).parent / "tables.sqlite.sql"
"""Generated from `tables/` by `python -m agent.storage.migrate`; a test compares the two."""


class _Job(NamedTuple, Generic[T]):
    unit: Unit[T]
    is_write: bool
    future: asyncio.Future[T] | None = None
    """The future of the caller; None if nobody waits."""


class UnitResult(NamedTuple, Generic[T]):
    """The outcome of a unit."""

    job: _Job[T]
    value: T | None = None
    error: Exception | None = None

    def get(self) -> T:
        """The value; raises the error if there is one."""
        if self.error is not None:
            raise self.error
        return cast("T", self.value)


class SqliteDatabase:
    """The thread with the connection. Use `open_database` to create one."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="sqlite", daemon=True)
        self._lock = threading.Lock()
        """Held by the thread that uses the connection."""
        self._waits = True
        """Whether the connection waits for other processes and makes checkpoints, as on the thread."""
        self._thread_until = 0.0
        """Until when brief units use the thread, because one was slow."""
        self._is_thread_slow = False
        """Whether a brief unit has waited in vain for what the thread is doing; the others do not wait then."""
        self._uncheckpointed = 0
        """Brief writes since the last checkpoint."""
        self._closed = False
        self._thread.start()

    async def write(self, unit: Unit[T], *, brief: bool = False) -> T:
        """Runs `unit` in a write transaction, which it may share with others. What it raises is raised here and affects
        only this unit.

        A unit may run again if another one in its group failed, so it must do nothing but access the database.
        A `brief` unit touches a few rows by their keys; it may run at once on the caller's thread.
        Cancelling the caller does not undo what was submitted. Raises `StoreError` for database failures.
        """
        result = self.run_here(unit, writes=True) if brief else None
        return await self._submit(unit, writes=True) if result is None else result.get()

    async def read(self, unit: Unit[T], *, brief: bool = False) -> T:
        """Runs a unit that only reads. It needs no lock, so writes of other processes do not delay it.

        `brief` as in `write`; such a unit is a single query, which needs no transaction around it.
        """
        result = self.run_here(unit, writes=False) if brief else None
        return await self._submit(unit, writes=False) if result is None else result.get()

    async def close(self) -> None:
        """Completes everything submitted, then closes the file. Closing again does nothing."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    async def _submit(self, unit: Unit[T], *, writes: bool) -> T:
        if self._closed:
            raise StoreError(f"the store {self.path} is closed; open it again", agent_id="store")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put(_Job(unit, writes, done))
        return await done

    def run_here(self, unit: Unit[T], *, writes: bool) -> "UnitResult[T] | None":
        """Runs a brief unit on this thread: one that writes in a transaction of its own.

        Returns None, with nothing changed, where the thread must run it: the thread is busy for longer, another process
        is writing, the disk is slow, or the unit failed in a way that `_execute` handles.
        """
        if self._closed or time.monotonic() < self._thread_until:
            return None
        if not self._lock.acquire(timeout=0 if self._is_thread_slow else THREAD_WAIT_SECONDS):
            self._is_thread_slow = True
            return None
        started = time.monotonic()
        try:
            self._set_waiting(False)
            job = _Job(unit, writes)
            result = self._run_transaction([job])[0] if writes else self._run_unit(job)
        except Exception:  # noqa: BLE001 - the thread runs it again, and reports what is raised there
            self._roll_back()
            return None
        finally:
            self._lock.release()
        if time.monotonic() - started > SLOW_SECONDS:
            self._thread_until = time.monotonic() + SLOW_PAUSE_SECONDS
        if writes:
            self._uncheckpointed += 1
            if self._uncheckpointed == CHECKPOINT_UNITS:
                self._queue.put(_Job(_do_nothing, is_write=False))  # wakes the thread, which makes the checkpoint
        return result

    def _set_waiting(self, waits: bool) -> None:
        """Makes the connection wait for other processes and for checkpoints, or not."""
        if waits != self._waits:
            self._connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000 if waits else 0}")
            self._connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES if waits else 0}")
            self._waits = waits

    def _serve(self) -> None:
        """Runs on the thread: takes waiting jobs, executes them in one transaction, delivers the results together."""
        while jobs := self._take_jobs():
            with self._lock:
                self._is_thread_slow = False
                self._set_waiting(True)
                results = self._execute(jobs)
            _deliver(results)  # behind the lock, so that the caller's next brief unit need not use the thread
            if self._uncheckpointed >= CHECKPOINT_UNITS:
                with self._lock, contextlib.suppress(sqlite3.Error):  # it is only put off
                    self._uncheckpointed = 0
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        with self._lock:
            self._connection.close()

    def _take_jobs(self) -> list[_Job[Any]]:
        """Waits for a job and returns all that are waiting; none once the database is closed."""
        jobs: list[_Job[Any]] = []
        while len(jobs) < MAX_GROUP and not (jobs and self._queue.empty()):
            job = self._queue.get()
            if job is None:
                if jobs:
                    self._queue.put(None)
                break
            jobs.append(job)
        return jobs

    def _execute(self, jobs: list[_Job[Any]]) -> list[UnitResult[Any]]:
        try:
            return self._run_transaction(jobs)
        except Exception as error:  # noqa: BLE001 - the border of a thread: what a unit raises is its caller's
            self._roll_back()
            if len(jobs) > 1:  # one of them filled the disk or broke a constraint: run each on its own
                return [result for job in jobs for result in self._execute([job])]
            return [UnitResult(jobs[0], error=self._to_agent_error(error))]

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # SQLite rolls back on a full disk by itself
            with contextlib.suppress(sqlite3.Error):  # the next BEGIN reports it
                self._connection.execute("ROLLBACK")

    def _run_transaction(self, jobs: list[_Job[T]]) -> list[UnitResult[T]]:
        writes = any(job.is_write for job in jobs)
        self._connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        results = [self._run_unit(job) for job in jobs]
        self._connection.execute("COMMIT")
        return results

    def _run_unit(self, job: _Job[T]) -> UnitResult[T]:
        """Runs one unit. An `AgentError` raised before anything was written needs no rollback."""
        changes = self._connection.total_changes
        try:
            return UnitResult(job, value=job.unit(self._connection))
        except AgentError as error:
            if self._connection.total_changes != changes:
                raise
            return UnitResult(job, error=error)

    def _to_agent_error(self, error: Exception) -> Exception:
        if not isinstance(error, sqlite3.Error):
            return error
        ours = to_store_error(error, self.path)
        ours.__cause__ = error
        return ours


def _do_nothing(_: sqlite3.Connection) -> None:
    return


def _deliver(results: list[UnitResult[Any]]) -> None:
    """Passes results to the event loops that wait for them, with one wake-up per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[UnitResult[Any]]] = {}
    for result in results:
        if result.job.future is not None:
            by_loop.setdefault(result.job.future.get_loop(), []).append(result)
    for loop, theirs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_set_results, theirs)


def _set_results(results: list[UnitResult[Any]]) -> None:
    for result in results:
        future = result.job.future
        if future is None or future.done():  # the caller was cancelled meanwhile
            continue
        if result.error is not None:
            future.set_exception(result.error)
        else:
            future.set_result(result.value)


def open_database(path: Path) -> SqliteDatabase:
    """Opens or creates the database at `path` and brings it to this version's schema.

    Raises `StoreNewerError` for a file of a newer version, else `StoreError` or `StoreFullError` with what to do.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # private: it contains what people ask
    except OSError as error:
        raise StoreError(
            f"the data folder {path.parent} cannot be created: {error.strerror}; set AGENT_DATA_DIR to another folder",
            agent_id="store",
        ) from error
    with contextlib.ExitStack() as stack:
        try:
            _refuse_lost_store(path)
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            stack.callback(connection.close)
            if _read_revision(connection, path) != HEAD and not _create_tables(connection):
                _upgrade_tables(connection, path)
            _configure(connection)
            _get_mark(path).touch(mode=0o600)
        except OSError as error:
            raise StoreError(f"the data folder {path.parent} cannot be written: {error}", agent_id="store") from error
        except sqlite3.Error as error:
            raise to_store_error(error, path) from error
        stack.pop_all()
    return SqliteDatabase(path, connection)


def _get_mark(path: Path) -> Path:
    """The file that says that the database has had tables."""
    return path.with_name(f".{path.name}.created")


def _refuse_lost_store(path: Path) -> None:
    """Raises `StoreError` for an empty file in place of a store: a copy that failed, or a disk that was full. A new
    store there would hide that everything is lost, keys and their limits included.
    """
    # The mark is made after the tables: a process that sees it sees them too, unless they are gone.
    if _get_mark(path).exists() and path.exists() and path.stat().st_size == 0:
        raise StoreError(
            f"the database {path} is empty, but was not before: restore it (`stepgate restore`), or delete the empty "
            "file to start empty",
            agent_id="store",
        )


def open_memory_database() -> SqliteDatabase:
    """An empty database in memory, which ends with its connection. For tests and trials: nothing is kept."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _create_tables(connection)
    _configure(connection)
    return SqliteDatabase(Path(":memory:"), connection)


def _configure(connection: sqlite3.Connection) -> None:
    _set_wal(connection)
    # With WAL, NORMAL loses no committed transaction if the process dies, only if the power fails.
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.create_function("lower", 1, _lower, deterministic=True)


def _lower(value: str | bytes | float | None) -> str | bytes | float | None:
    """`lower` of all letters: SQLite's own knows those of ASCII only."""
    return value.lower() if isinstance(value, str) else value


def _set_wal(connection: sqlite3.Connection) -> None:
    """Switches to write-ahead logging, which the file remembers. SQLite does not wait for other processes when the mode
    changes, so two that open a new folder at once must try again.
    """
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                raise
        time.sleep(0.02)


def _read_revision(connection: sqlite3.Connection, path: Path) -> str | None:
    """The schema's revision, None for an empty file. Raises what `check_revision` raises."""
    version_table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if version_table else None
    if row is None:
        return None
    revision = str(row[0])
    check_revision(revision, f"the data folder {path.parent}", "set AGENT_DATA_DIR to another folder")
    return revision


def _create_tables(connection: sqlite3.Connection) -> bool:
    """Creates the tables of an empty file in one transaction. Returns False if the file is not empty."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        empty = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
        if empty:
            for statement in SCHEMA_SCRIPT.read_text("utf-8").split(";\n\n"):
                connection.execute(statement)
            connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite rolls back on a full disk by itself
            connection.execute("ROLLBACK")
        raise
    return empty


def _upgrade_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Brings a file of an earlier version to `HEAD`. Raises `StoreError` for another program's file, unchanged."""
    revision = _read_revision(connection, path)  # read again: another process may have created the tables just now
    if revision is None:
        raise StoreError(f"{path} belongs to another program; set AGENT_DATA_DIR to another folder", agent_id="store")
    if revision == SQUASHED:
        connection.execute(STAMP)
        revision = FIRST
    if revision != HEAD:
        from agent.storage.migrate import create_sqlite_engine, upgrade  # noqa: PLC0415 - 0.3 s, once per upgrade

        upgrade(create_sqlite_engine(path))


def to_store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Converts a database error to a `StoreError` that says what to do."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return StoreFullError(
            f"the disk of {path.parent} is full; free space; nothing was lost and unfinished runs continue",
            agent_id="store",
        )
    if name == "SQLITE_NOTADB":
        return StoreError(f"{path} is not a SQLite database; set AGENT_DATA_DIR to another folder", agent_id="store")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return StoreError(f"{path} cannot be written; check the owner and mode of it and its folder", agent_id="store")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreError(
            f"another process has been writing {path} for {BUSY_SECONDS} s; end it if it hangs", agent_id="store"
        )
    if name.startswith("SQLITE_IOERR"):
        return StoreError(f"the disk of {path} failed ({name}); check its space and its health", agent_id="store")
    return StoreError(
        f"the store {path} failed: {error} ({name or 'no code'}); check the file, or restore it from a backup",
        agent_id="store",
    )
