"""One SQLite file, one thread, one connection; a unit of work is one function on that thread.

Units that arrive together share a transaction (group commit). An open cursor never outlives its unit, so no
reader pins the write-ahead log and no await tears a transaction.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from agent.core.errors import AgentError, StoreError, StoreFullError, StoreNewerError
from agent.core.migrations import FRESH, HEAD, REVISIONS

T = TypeVar("T")
Unit = Callable[[sqlite3.Connection], T]

MAX_GROUP = 64
"""Units per transaction: enough to share the cost of a commit, few enough that none waits long."""

BUSY_SECONDS = 30
"""How long a transaction waits for another process's; theirs last milliseconds."""


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    unit: Unit[T]
    writes: bool
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[T]


@dataclass(frozen=True, slots=True)
class _Result:
    job: _Job[Any]
    value: Any = None
    error: Exception | None = None


class Database:
    """The thread with the connection. Open with `open_database`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="sqlite", daemon=True)
        self._closed = False
        self._thread.start()

    async def run(self, unit: Unit[T]) -> T:
        """Run `unit` in a transaction, shared with others; what it raises is raised here and spoils only itself.

        A unit can be run again when a neighbour failed, so it must do nothing but talk to the database.
        Cancelling the caller does not take back what was submitted. Raises `StoreError` for database failures."""
        return await self._submit(unit, writes=True)

    async def read(self, unit: Unit[T]) -> T:
        """Like `run` for a unit that only reads: it needs no lock, so no other process's writing holds it up."""
        return await self._submit(unit, writes=False)

    async def close(self) -> None:
        """Finish everything submitted, then close the file. Closing twice is closing once."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    async def _submit(self, unit: Unit[T], *, writes: bool) -> T:
        if self._closed:
            raise StoreError(f"the store {self.path} is closed; open it again", agent_id="store")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Job(unit, writes, loop, done))
        return await done

    def _serve(self) -> None:
        """The thread: take what is there, do it in one transaction, hand the results over in one go."""
        while jobs := self._next():
            self._do(jobs)
        self._connection.close()

    def _next(self) -> list[_Job[Any]]:
        """All jobs that are waiting, once there is one; none when the database is to be closed."""
        jobs: list[_Job[Any]] = []
        while len(jobs) < MAX_GROUP and not (jobs and self._queue.empty()):
            job = self._queue.get()
            if job is None:
                if jobs:
                    self._queue.put(None)
                break
            jobs.append(job)
        return jobs

    def _do(self, jobs: list[_Job[Any]]) -> None:
        try:
            results = self._transaction(jobs)
        except Exception as error:  # noqa: BLE001 - the border of a thread: what a unit raises is its caller's
            self._roll_back()
            if len(jobs) > 1:  # one of them filled the disk or broke a rule: each by itself
                for job in jobs:
                    self._do([job])
                return
            results = [_Result(jobs[0], error=self._translated(error))]
        _deliver(results)

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # a full disk has rolled back by itself
            with contextlib.suppress(sqlite3.Error):  # the next BEGIN will say that this failed
                self._connection.execute("ROLLBACK")

    def _transaction(self, jobs: list[_Job[Any]]) -> list[_Result]:
        writes = any(job.writes for job in jobs)
        self._connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        results = [self._one(job) for job in jobs]
        self._connection.execute("COMMIT")
        return results

    def _one(self, job: _Job[Any]) -> _Result:
        """One unit. An error of ours that was raised before anything was written needs no rollback."""
        changes = self._connection.total_changes
        try:
            return _Result(job, value=job.unit(self._connection))
        except AgentError as error:
            if self._connection.total_changes != changes:
                raise
            return _Result(job, error=error)

    def _translated(self, error: Exception) -> Exception:
        if not isinstance(error, sqlite3.Error):
            return error
        ours = translate(error, self.path)
        ours.__cause__ = error
        return ours


def _deliver(results: list[_Result]) -> None:
    """Hand results to the loops that wait for them: one wake-up a loop, not one a unit."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Result]] = {}
    for result in results:
        by_loop.setdefault(result.job.loop, []).append(result)
    for loop, theirs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, theirs)


def _settle(results: list[_Result]) -> None:
    for result in results:
        if result.job.done.done():  # the caller was cancelled meanwhile
            continue
        if result.error is not None:
            result.job.done.set_exception(result.error)
        else:
            result.job.done.set_result(result.value)


def open_database(path: Path) -> Database:
    """Open or make the database at `path` and bring it to this version's schema.

    Raises `StoreNewerError` for a file of a newer version, `StoreError` and `StoreFullError` with what to do."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # what people ask is nobody else's business
    except OSError as error:
        raise StoreError(
            f"the data folder {path.parent} cannot be made: {error.strerror}; set AGENT_DATA_DIR to another folder",
            agent_id="store",
        ) from error
    with contextlib.ExitStack() as stack:
        try:
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            stack.callback(connection.close)
            if _revision(connection, path) != HEAD and not _laid_out(connection):
                _bring_up(connection, path)
            _configure(connection)
        except sqlite3.Error as error:
            raise translate(error, path) from error
        stack.pop_all()
    return Database(path, connection)


def _configure(connection: sqlite3.Connection) -> None:
    _set_wal(connection)
    # In WAL, NORMAL loses no committed transaction when the process dies; only a power cut can take the newest.
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _set_wal(connection: sqlite3.Connection) -> None:
    """Write-ahead logging, which the file keeps. SQLite does not wait for other processes when the mode changes, so
    two that open a fresh folder at once have to try again."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                raise
        time.sleep(0.02)


def _revision(connection: sqlite3.Connection, path: Path) -> str | None:
    """The schema's revision; None for an empty file. `StoreNewerError` for one this version does not know."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if known else None
    if row is None:
        return None
    revision = str(row[0])
    if revision not in REVISIONS:
        raise StoreNewerError(
            f"the data folder {path.parent} was written by a newer version of Stepgate (schema {revision}, this one "
            f"knows {HEAD}); upgrade Stepgate, or set AGENT_DATA_DIR to another folder",
            agent_id="store",
        )
    return revision


def _laid_out(connection: sqlite3.Connection) -> bool:
    """Make the tables of an empty file, in one transaction; False for one that holds something already.

    The script makes what the migrations make, without the half second that loading Alembic takes."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        empty = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
        if empty:
            for statement in FRESH.read_text("utf-8").split(";\n\n"):
                connection.execute(statement)
            connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has rolled back by itself
            connection.execute("ROLLBACK")
        raise
    return empty


def _bring_up(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate a file of an earlier version. `StoreError` for one that something else has made: it stays as it is."""
    revision = _revision(connection, path)  # anew: another process may just have laid it out
    if revision is None:
        raise StoreError(
            f"{path} is a database of another program; set AGENT_DATA_DIR to another folder", agent_id="store"
        )
    if revision != HEAD:
        _migrate(path)


def _migrate(path: Path) -> None:
    from agent.core.migrate import sqlite_engine, upgrade  # noqa: PLC0415 - 0.2 s of CPU, once in a folder's life

    upgrade(sqlite_engine(path))


def translate(error: sqlite3.Error, path: Path) -> StoreError:
    """A database failure as ours, saying what to do."""
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return StoreFullError(
            f"the disk of {path.parent} is full; free space, nothing was lost and unfinished runs go on",
            agent_id="store",
        )
    if name == "SQLITE_NOTADB":
        return StoreError(f"{path} is no SQLite database; set AGENT_DATA_DIR to another folder", agent_id="store")
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
