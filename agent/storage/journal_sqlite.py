"""The journal on SQLite. It sends SQL to the driver directly for speed; see docs/adr/0001-journal-driver.md."""

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.core.errors import AgentError, ConflictError, NotFoundError
from agent.core.events import AnswerDelta, Event, EventDraft, RunCreated
from agent.core.models import RunStatus
from agent.core.surrogates import replace_surrogates
from agent.storage import audit
from agent.storage.audit import AuditRow
from agent.storage.conversations_sqlite import SqliteConversations
from agent.storage.event_codec import decode, encode
from agent.storage.journal import Claim, RunAppend, RunRow, Signal, SignalKind
from agent.storage.journal_rows import (
    CHECK_BYTES,
    EVENT_COLUMNS,
    INSERT_ANSWER_DIGEST,
    INSERT_BLOB,
    INSERT_BLOB_REFERENCE,
    INSERT_REQUEST_WORDS,
    IS_WAITING_OVER,
    MAX_SEQ,
    RUN_COLUMNS,
    SELECT_ENDS,
    WaiterRegistry,
    build_append_error,
    build_owner_filter,
    build_run_not_found_error,
    check_terminal_last,
    compute_ages,
    derive_status,
    find_labelled_answer,
    list_blob_references,
    make_search_words,
    make_title,
    parse_ends,
    parse_run_row,
)
from agent.storage.signals_sqlite import check_signal, insert_signal, select_signals
from agent.storage.sqlite import SqliteDatabase, Unit, open_database, open_memory_database

POLL_SECONDS = 0.25
"""How often a waiting reader checks whether another process has appended."""

_INSERT_RUN = (
    "INSERT INTO runs (run_id, owner, room, status, hidden, tainted, title, conversation_id, epoch, last_seq, "
    "terminal, worker, lease_until, queue, created_at, updated_at, parent) "
    "VALUES (?,?,?,'queued',?,?,?,?,?,1,0,?,?,?,?,?,?)"
)
_ADVANCE_RUN = (
    "UPDATE runs SET last_seq = last_seq + ?, updated_at = ?, status = COALESCE(?, status) "
    "WHERE run_id = ? AND epoch = ? AND terminal = 0 RETURNING last_seq"
)
_END_RUN = (
    "UPDATE runs SET last_seq = last_seq + ?, updated_at = ?, status = ?, terminal = 1, worker = NULL, lease_until = 0 "
    "WHERE run_id = ? AND epoch = ? AND terminal = 0 RETURNING last_seq"
)
"""The same at the end of a run, which releases it."""
_INSERT_EVENT = f"INSERT INTO events ({EVENT_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)"  # noqa: S608 - constants only


@dataclass(frozen=True, slots=True)
class SqliteStore:
    """The stores of one data folder's database."""

    journal: "SqliteJournal"
    conversations: SqliteConversations
    database: SqliteDatabase
    clock: Callable[[], float]
    """This machine's time in UTC seconds since 1970."""

    async def close(self) -> None:
        """Completes accepted work and closes the file."""
        await self.database.close()


async def open_sqlite(path: Path, clock: Callable[[], float] = time.time) -> SqliteStore:
    """Opens the store at `path`. Raises what `open_database` raises."""
    return _build_store(await asyncio.to_thread(open_database, path), clock)


def open_in_memory() -> SqliteStore:
    """An empty store in memory. Nothing of it is kept, and no other process sees it."""
    return _build_store(open_memory_database(), time.time)


def _build_store(database: SqliteDatabase, clock: Callable[[], float]) -> SqliteStore:
    return SqliteStore(SqliteJournal(database, clock), SqliteConversations(database, clock), database, clock)


class SqliteJournal:
    """Implements `Journal`; see there for the contract."""

    def __init__(self, database: SqliteDatabase, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._wakeups = WaiterRegistry(POLL_SECONDS)

    async def create_run(
        self, run_id: str, body: RunCreated, *, worker: str | None, lease_s: float, queue: str = ""
    ) -> Claim:
        """See `Journal.create_run`. Here no driver has a queue: `list_claimable_runs` finds runs without a worker."""
        request = body.request
        words = make_search_words(request.prompt)

        def unit(db: sqlite3.Connection) -> Event:
            now = self._clock()
            event, row = encode(Event(run_id, 1, 1, now, body))
            title = make_title(request.prompt)
            conversation = request.conversation_id and replace_surrogates(request.conversation_id)
            try:
                db.execute(
                    _INSERT_RUN,
                    (
                        run_id, body.owner, body.room.id, body.hidden, body.tainted, title, conversation,
                        1 if worker else 0, worker, now + lease_s if worker else 0, queue, now, now, request.parent,
                    ),
                )  # fmt: skip
            except sqlite3.IntegrityError as error:
                raise ConflictError(f"a run {run_id!r} exists already; use a new id", agent_id="journal") from error
            db.execute(_INSERT_EVENT, row)
            if words and not body.hidden:
                db.execute(INSERT_REQUEST_WORDS, (run_id, words))
            return event

        return Claim(run_id, 1, (await self._database.write(unit, brief=True),), is_new=True)

    async def claim(self, run_id: str, *, worker: str, lease_s: float) -> Claim | None:
        """See `Journal.claim`."""

        def unit(db: sqlite3.Connection) -> Claim | None:
            now = self._clock()
            free = db.execute(
                "SELECT epoch, NULLIF(worker, ?) FROM runs WHERE run_id = ? AND terminal = 0 "
                "AND (worker IS NULL OR worker = ? OR lease_until < ?)",
                (worker, run_id, worker, now),
            ).fetchone()
            if free is None:
                return None
            events = tuple(_read_events(db, run_id, 0, -1))
            epoch = int(free[0]) + 1
            db.execute(
                "UPDATE runs SET epoch = ?, worker = ?, lease_until = ?, updated_at = ? WHERE run_id = ?",
                (epoch, worker, now + lease_s, now, run_id),
            )
            return Claim(run_id, epoch, events, free[1])

        return await self._database.write(unit)

    async def list_claimable_runs(self, *, dead_workers: Sequence[str] = (), limit: int = 100) -> list[str]:
        """See `Journal.list_claimable_runs`."""

        def unit(db: sqlite3.Connection) -> list[str]:
            for worker in dead_workers:
                db.execute(
                    "UPDATE runs SET lease_until = 0 WHERE terminal = 0 AND worker = ? AND lease_until > 0", (worker,)
                )
            now = self._clock()
            rows = db.execute(
                "SELECT run_id FROM runs WHERE terminal = 0 AND (worker IS NULL OR lease_until < ?) "  # noqa: S608
                f"AND {IS_WAITING_OVER.format(now='?')} ORDER BY created_at + 0 LIMIT ?",
                (now, now, limit),
            )
            return [str(row[0]) for row in rows]

        return await self._database.write(unit)

    async def list_workers(self) -> list[str]:
        """See `Journal.list_workers`."""

        def unit(db: sqlite3.Connection) -> list[str]:
            rows = db.execute("SELECT DISTINCT worker FROM runs WHERE terminal = 0 AND worker IS NOT NULL")
            return [str(row[0]) for row in rows]

        return await self._database.read(unit)

    async def renew_leases(self, worker: str, run_ids: Sequence[str], *, lease_s: float) -> None:
        """See `Journal.renew_leases`."""

        def unit(db: sqlite3.Connection) -> None:
            until = self._clock() + lease_s
            db.executemany(
                "UPDATE runs SET lease_until = ? WHERE run_id = ? AND terminal = 0 AND worker = ?",
                [(until, run_id, worker) for run_id in run_ids],
            )

        await self._database.write(unit)

    async def append(self, run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        """See `Journal.append`."""
        check_terminal_last(run_id, drafts)
        events = await self._database.write(self._make_append_unit(run_id, epoch, drafts))
        self._wakeups.wake(run_id)
        return events

    def append_now(self, *appends: RunAppend) -> list[tuple[Event, ...]] | None:
        """See `Journal.append_now`."""
        if any(draft.body.terminal for one in appends for draft in one.drafts[:-1]):
            return None
        units = [self._make_append_unit(*one) for one in appends]
        result = self._database.run_here(lambda db: [unit(db) for unit in units], writes=True)
        if result is None or result.error is not None:
            return None
        for one in appends:
            self._wakeups.wake(one.run_id)
        return result.value

    def _make_append_unit(self, run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> Unit[tuple[Event, ...]]:
        def unit(db: sqlite3.Connection) -> tuple[Event, ...]:
            past, now = compute_ages(drafts), self._clock()
            status, ended = derive_status(drafts)
            advance = _END_RUN if ended else _ADVANCE_RUN
            row = db.execute(advance, (len(drafts), now, status, run_id, epoch)).fetchone()
            if row is None:
                raise _build_append_error(db, run_id, epoch)
            first = int(row[0]) - len(drafts) + 1
            encoded = [
                encode(
                    Event(run_id, first + index, epoch, now - past[index], draft.body, draft.step_id, draft.attempt),
                    draft.data,
                )
                for index, draft in enumerate(drafts)
            ]
            if ended:  # the run needs its deltas no more
                db.execute("DELETE FROM events WHERE run_id = ? AND type = ?", (run_id, AnswerDelta.type))
            kept_rows = [row for event, row in encoded if not (ended and event.type == AnswerDelta.type)]
            db.executemany(_INSERT_EVENT, kept_rows)
            events = tuple(event for event, _ in encoded)
            if references := list_blob_references(events):
                db.executemany(INSERT_BLOB_REFERENCE, references)
            answer = find_labelled_answer(events) if ended else None
            if answer is not None and (label := answer.label) is not None:
                rows = [(digest, label.trusted, label.private, run_id) for digest in answer.digests]
                db.executemany(INSERT_ANSWER_DIGEST, rows)
            return events

        return unit

    async def release(self, run_id: str, epoch: int) -> None:
        """See `Journal.release`."""

        def unit(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE runs SET worker = NULL, lease_until = 0 WHERE run_id = ? AND epoch = ? AND terminal = 0",
                (run_id, epoch),
            )

        await self._database.write(unit, brief=True)

    async def park(self, run_id: str, epoch: int, *, until: float, after_signal: int) -> bool:
        """See `Journal.park`."""

        def unit(db: sqlite3.Connection) -> bool:
            parked = db.execute(
                "UPDATE runs SET worker = NULL, lease_until = ?, updated_at = ?, status = 'awaiting_approval' "
                "WHERE run_id = ? AND epoch = ? AND terminal = 0 "
                "AND NOT EXISTS (SELECT 1 FROM signals WHERE run_id = ? AND id > ?)",
                (until, self._clock(), run_id, epoch, run_id, after_signal),
            )
            return parked.rowcount == 1

        return await self._database.write(unit, brief=True)

    async def read_events(self, run_id: str, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        """See `Journal.read_events`."""
        return await self._database.read(lambda db: _read_events(db, run_id, after, limit))

    async def get_run(self, run_id: str, *, owner: str | None) -> RunRow:
        """See `Journal.get_run`."""

        def unit(db: sqlite3.Connection) -> RunRow:
            query = f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = ? AND {build_owner_filter(owner)}"  # noqa: S608 - constants only
            row = db.execute(query, (run_id, owner)).fetchone()
            if row is None:
                raise build_run_not_found_error(run_id)
            return parse_run_row(row)

        return await self._database.read(unit, brief=True)

    async def list_runs(
        self,
        *,
        owner: str | None,
        limit: int = 50,
        before: str | None = None,
        status: RunStatus | None = None,
        include_hidden: bool = False,
    ) -> list[RunRow]:
        """See `Journal.list_runs`."""

        def unit(db: sqlite3.Connection) -> list[RunRow]:
            owned = build_owner_filter(owner)
            rows = db.execute(
                f"SELECT {RUN_COLUMNS} FROM runs WHERE {owned} AND (? OR hidden = 0) AND "  # noqa: S608
                "(? IS NULL OR status = ?) AND "
                "(? IS NULL OR (created_at, run_id) < "
                f"(SELECT created_at, run_id FROM runs WHERE run_id = ? AND {owned})) "
                "ORDER BY created_at DESC, run_id DESC LIMIT ?",
                (owner, include_hidden, status, status, before, before, owner, limit),
            )
            return [parse_run_row(row) for row in rows]

        return await self._database.read(unit)

    async def find_conversation_ends(self, conversation_id: str, *, owner: str) -> tuple[RunRow, RunRow] | None:
        """See `Journal.find_conversation_ends`."""
        values = (owner, conversation_id) * 2
        return parse_ends(await self._database.read(lambda db: db.execute(SELECT_ENDS, values).fetchall(), brief=True))

    async def send_signal(
        self, run_id: str, kind: SignalKind, payload: dict[str, object], *, record: AuditRow | None = None
    ) -> None:
        """See `Journal.send_signal`."""

        def unit(db: sqlite3.Connection) -> None:
            check_signal(db, run_id, payload)
            if record is not None:
                db.execute(audit.INSERT_SQL, record)
            insert_signal(db, run_id, kind, payload, at=self._clock())

        await self._database.write(unit, brief=True)
        self._wakeups.wake(run_id)

    async def read_signals(self, run_id: str, *, after: int = 0) -> list[Signal]:
        """See `Journal.read_signals`."""
        return await self._database.read(lambda db: select_signals(db, run_id, after), brief=True)

    async def put_blob(self, data: bytes, *, run_id: str) -> str:
        """See `Journal.put_blob`."""
        checksum = hashlib.sha256(data).hexdigest()

        def unit(db: sqlite3.Connection) -> None:
            try:
                db.execute(INSERT_BLOB, (checksum, data))
                db.execute(INSERT_BLOB_REFERENCE, (run_id, checksum))
            except sqlite3.IntegrityError as error:
                raise build_run_not_found_error(run_id) from error

        await self._database.write(unit)
        return checksum

    async def get_blob(self, checksum: str) -> bytes:
        """See `Journal.get_blob`."""

        def unit(db: sqlite3.Connection) -> bytes:
            row = db.execute("SELECT data FROM blobs WHERE checksum = ?", (checksum,)).fetchone()
            if row is None:
                raise NotFoundError(f"there is no blob {checksum}", agent_id="journal")
            return bytes(row[0])

        return await self._database.read(unit)

    async def wait_for_events(self, run_id: str, *, after: int, timeout_s: float) -> None:
        """See `Journal.wait_for_events`. Polls one indexed number to notice appends of other processes."""

        async def arrived() -> bool:
            return await self._get_last_seq(run_id) > after

        await self._wakeups.wait(run_id, arrived, timeout_s)

    async def check_writable(self) -> None:
        """See `Journal.check_writable`. Writes a row and deletes it again."""

        def unit(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO blobs (checksum, data) VALUES ('check', ?)", (bytes(CHECK_BYTES),))
            db.execute("DELETE FROM blobs WHERE checksum = 'check'")

        await self._database.write(unit)

    async def close(self) -> None:
        """See `Journal.close`."""
        await self._database.close()

    async def _get_last_seq(self, run_id: str) -> int:
        def unit(db: sqlite3.Connection) -> int:
            row = db.execute("SELECT last_seq FROM runs WHERE run_id = ?", (run_id,)).fetchone()
            return 0 if row is None else int(row[0])

        return await self._database.read(unit, brief=True)


def _read_events(db: sqlite3.Connection, run_id: str, after: int, limit: int) -> list[Event]:
    query = f"SELECT {EVENT_COLUMNS} FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608
    return [decode(row) for row in db.execute(query, (run_id, min(after, MAX_SEQ), limit))]


def _build_append_error(db: sqlite3.Connection, run_id: str, epoch: int) -> AgentError:
    row = db.execute("SELECT epoch, terminal, worker FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    return build_append_error(run_id, epoch, row)
