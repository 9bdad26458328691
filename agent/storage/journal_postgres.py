"""The journal on PostgreSQL. NOTIFY wakes other processes after the commit."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from psycopg.errors import ForeignKeyViolation, UniqueViolation

from agent.core.errors import ConflictError, NotFoundError, StoreError
from agent.core.events import Event, EventDraft, RunCreated
from agent.core.models import RunStatus
from agent.storage import append_postgres, audit
from agent.storage.audit import AuditRow
from agent.storage.conversations_postgres import PostgresConversations
from agent.storage.event_codec import EventRow, decode, encode
from agent.storage.journal import Claim, RunAppend, RunRow, Signal, SignalKind
from agent.storage.journal_rows import (
    CHECK_BYTES,
    EVENT_COLUMNS,
    INSERT_BLOB,
    INSERT_BLOB_REFERENCE,
    IS_WAITING_OVER,
    MAX_SEQ,
    RUN_COLUMNS,
    SELECT_DECISIONS,
    SELECT_ENDS,
    WaiterRegistry,
    build_append_error,
    build_owner_filter,
    build_run_not_found_error,
    check_terminal_last,
    check_undecided,
    make_title,
    parse_ends,
    parse_run_row,
)
from agent.storage.postgres import IDLE_SECONDS, NOW_SQL, Connection, PostgresDatabase, strip_nul

POLL_SECONDS = 2.0
"""How late a reader may notice an event if a notification was lost."""

PUT_BLOB_ATTEMPTS = 3
_REFERENCE_TO_RUN = "blob_references_run_id_fkey"
_SELECT_DECISIONS, _INSERT_AUDIT, _INSERT_BLOB, _INSERT_BLOB_REFERENCE = (
    statement.replace("?", "%s").encode()
    for statement in (SELECT_DECISIONS, audit.INSERT_SQL, INSERT_BLOB, INSERT_BLOB_REFERENCE)
)


class RunJobs(Protocol):
    """The jobs that wake a run up; `gateway.features.fleet.engine.run_jobs.QueuedRunJobs` implements it."""

    async def take_priority(self, owner: str, queue: str) -> int:
        """The priority of the owner's next run. Raises `StoreError`."""
        ...

    async def enqueue(self, db: Connection, run_id: str, *, queue: str, priority: int | None) -> None:
        """Puts a job for the run into `queue`, in the transaction of `db`; does nothing if one waits there already.

        A run without a priority has waited its turn before, and goes to the head of the queue.
        """
        ...


@dataclass(frozen=True, slots=True)
class PostgresStore:
    """The stores of one database."""

    journal: "PostgresJournal"
    conversations: PostgresConversations
    database: PostgresDatabase

    @property
    def clock(self) -> Callable[[], float]:
        """The server's time in UTC seconds since 1970."""
        return self.database.clock

    async def close(self) -> None:
        """Completes accepted work and closes the connections."""
        await self.database.close()


async def open_postgres(
    url: str, clock: Callable[[], float] | None = None, *, idle_s: float = IDLE_SECONDS
) -> PostgresStore:
    """Opens the store at `url`. Raises `StoreNewerError` for a newer schema, else `StoreError` with what to do.

    The time is the server's, so that leases agree between machines. `clock` is for tests. `idle_s` is how long a
    transaction may stand still, in seconds; less than a lease.
    """
    database = PostgresDatabase(url, idle_s=idle_s)
    journal = PostgresJournal(database, clock)
    await database.open(journal.wakeups.wake, journal.wakeups.wake_all)
    return PostgresStore(journal, PostgresConversations(database), database)


class PostgresJournal:
    """Implements `Journal`; see there for the contract."""

    def __init__(self, database: PostgresDatabase, clock: Callable[[], float] | None = None) -> None:
        self._database = database
        self._clock = clock
        self.wakeups = WaiterRegistry(POLL_SECONDS)
        self.jobs: RunJobs | None = None
        """The queue of runs, where AGENT_DISPATCH chooses one."""

    async def create_run(
        self, run_id: str, body: RunCreated, *, worker: str | None, lease_s: float, queue: str = ""
    ) -> Claim:
        """See `Journal.create_run`."""
        request = body.request
        # Before writing anything, because it refuses a body that cannot be encoded.
        created, row = encode(Event(run_id, 1, 1, 0.0, body))
        conversation = strip_nul(request.conversation_id) if request.conversation_id else None
        title = strip_nul(make_title(request.prompt))
        jobs = self.jobs if worker is None else None
        priority = await jobs.take_priority(body.owner, queue) if jobs is not None else None
        # The run and its job belong together; a run alone is one statement.
        begin = self._database.begin_single_query if jobs is None else self._database.transaction
        try:
            async with begin() as db:
                now = await append_postgres.create_run(
                    db, body, row, title=title, conversation=conversation, worker=worker, lease_s=lease_s, queue=queue,
                    now=self._clock() if self._clock else None,
                )  # fmt: skip
                if jobs is not None:
                    await jobs.enqueue(db, run_id, queue=queue, priority=priority)
        except StoreError as error:
            if isinstance(error.__cause__, UniqueViolation):
                raise ConflictError(f"a run {run_id!r} exists already; use a new id", agent_id="journal") from error
            raise
        return Claim(run_id, 1, (created._replace(at=now),), is_new=True)

    async def claim(self, run_id: str, *, worker: str, lease_s: float) -> Claim | None:
        """See `Journal.claim`."""
        async with self._database.transaction() as db:
            now = await self._get_time(db)
            cursor = await db.execute(
                "SELECT epoch, NULLIF(worker, %s) FROM runs WHERE run_id = %s AND NOT terminal "
                "AND (worker IS NULL OR worker = %s OR lease_until < %s) FOR UPDATE",
                (worker, run_id, worker, now),
            )
            free = await cursor.fetchone()
            if free is None:
                return None
            events = tuple(await _read_events(db, run_id, 0, None))
            epoch = int(free[0]) + 1
            await db.execute(
                "UPDATE runs SET epoch = %s, worker = %s, lease_until = %s, updated_at = %s WHERE run_id = %s",
                (epoch, worker, now + lease_s, now, run_id),
            )
            return Claim(run_id, epoch, events, free[1])

    async def list_claimable_runs(self, *, dead_workers: Sequence[str] = (), limit: int = 100) -> list[str]:
        """See `Journal.list_claimable_runs`."""
        async with self._database.transaction() as db:
            if dead_workers:
                await db.execute(
                    "UPDATE runs SET lease_until = 0 WHERE NOT terminal AND worker = ANY(%s) AND lease_until > 0",
                    (list(dead_workers),),
                )
            now = await self._get_time(db)
            cursor = await db.execute(
                "SELECT run_id FROM runs WHERE NOT terminal AND (worker IS NULL OR lease_until < %s) "  # noqa: S608
                f"AND {IS_WAITING_OVER.format(now='%s')} ORDER BY created_at + 0 LIMIT %s",
                (now, now, limit),
            )
            return [str(row[0]) async for row in cursor]

    async def list_workers(self) -> list[str]:
        """See `Journal.list_workers`."""
        async with self._database.begin_single_query() as db:
            cursor = await db.execute("SELECT DISTINCT worker FROM runs WHERE NOT terminal AND worker IS NOT NULL")
            return [str(row[0]) async for row in cursor]

    async def renew_leases(self, worker: str, run_ids: Sequence[str], *, lease_s: float) -> None:
        """See `Journal.renew_leases`."""
        async with self._database.begin_single_query() as db:
            await db.execute(
                f"UPDATE runs SET lease_until = COALESCE(%s, {NOW_SQL}) + %s "  # noqa: S608 - constants only
                "WHERE NOT terminal AND worker = %s AND run_id = ANY(%s)",
                (self._clock() if self._clock else None, lease_s, worker, list(run_ids)),
            )

    async def append(self, run_id: str, epoch: int, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        """See `Journal.append`."""
        check_terminal_last(run_id, drafts)
        async with self._database.begin_single_query() as db:
            events = await append_postgres.append(db, run_id, epoch, drafts, self._clock() if self._clock else None)
            if events is None:
                cursor = await db.execute("SELECT epoch, terminal, worker FROM runs WHERE run_id = %s", (run_id,))
                raise build_append_error(run_id, epoch, await cursor.fetchone())
        self._wake(run_id)
        return events

    def append_now(self, *appends: RunAppend) -> list[tuple[Event, ...]] | None:
        """See `Journal.append_now`. A server always has to be waited for."""
        return None

    async def release(self, run_id: str, epoch: int) -> None:
        """See `Journal.release`."""
        async with self._database.begin_single_query() as db:
            await db.execute(
                "UPDATE runs SET worker = NULL, lease_until = 0 WHERE run_id = %s AND epoch = %s AND NOT terminal",
                (run_id, epoch),
            )

    async def park(self, run_id: str, epoch: int, *, until: float, after_signal: int) -> bool:
        """See `Journal.park`."""
        async with self._database.transaction() as db:
            # Signals lock this row too, so that none arrives between the check and the update.
            await db.execute("SELECT 1 FROM runs WHERE run_id = %s FOR UPDATE", (run_id,))
            cursor = await db.execute(
                "UPDATE runs SET worker = NULL, lease_until = %s, updated_at = %s, status = 'awaiting_approval' "
                "WHERE run_id = %s AND epoch = %s AND NOT terminal "
                "AND NOT EXISTS (SELECT 1 FROM signals WHERE run_id = %s AND id > %s)",
                (until, await self._get_time(db), run_id, epoch, run_id, after_signal),
            )
            return cursor.rowcount == 1

    async def read_events(self, run_id: str, *, after: int = 0, limit: int = 10_000) -> list[Event]:
        """See `Journal.read_events`."""
        async with self._database.begin_single_query() as db:
            return await _read_events(db, run_id, after, limit)

    async def get_run(self, run_id: str, *, owner: str | None) -> RunRow:
        """See `Journal.get_run`."""
        async with self._database.begin_single_query() as db:
            query = f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = %s AND {build_owner_filter(owner, '%s')}"  # noqa: S608 - constants only
            row = await (await db.execute(query, (strip_nul(run_id), owner))).fetchone()
        if row is None:
            raise build_run_not_found_error(run_id)
        return parse_run_row(row)

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
        conditions, values = [build_owner_filter(owner, "%s")], [owner]
        if not include_hidden:
            conditions.append("NOT hidden")
        if status is not None:
            conditions.append("status = %s")
            values.append(status)
        if before is not None:
            conditions.append(
                "(created_at, run_id) < "  # noqa: S608 - constants only
                f"(SELECT created_at, run_id FROM runs WHERE run_id = %s AND {build_owner_filter(owner, '%s')})"
            )
            values += [strip_nul(before), owner]
        query = (
            f"SELECT {RUN_COLUMNS} FROM runs WHERE {' AND '.join(conditions)} "  # noqa: S608 - constants only
            "ORDER BY created_at DESC, run_id DESC LIMIT %s"
        )
        async with self._database.begin_single_query() as db:
            return [parse_run_row(row) async for row in await db.execute(query, (*values, limit))]

    async def find_conversation_ends(self, conversation_id: str, *, owner: str) -> tuple[RunRow, RunRow] | None:
        """See `Journal.find_conversation_ends`."""
        values = (owner, strip_nul(conversation_id)) * 2
        async with self._database.begin_single_query() as db:
            return parse_ends([row async for row in await db.execute(SELECT_ENDS.replace("?", "%s"), values)])

    async def send_signal(
        self, run_id: str, kind: SignalKind, payload: dict[str, object], *, record: AuditRow | None = None
    ) -> None:
        """See `Journal.send_signal`. Locks the run's row to handle two signals one after the other."""
        try:
            async with self._database.transaction() as db:
                cursor = await db.execute(
                    "SELECT CASE WHEN worker IS NULL AND NOT terminal THEN queue ELSE '' END FROM runs "
                    "WHERE run_id = %s FOR UPDATE",  # see `park`
                    (run_id,),
                )
                (queue,) = await cursor.fetchone() or ("",)
                if "approvals" in payload:
                    check_undecided(run_id, payload, await (await db.execute(_SELECT_DECISIONS, (run_id,))).fetchall())
                if record is not None:
                    await db.execute(_INSERT_AUDIT, record)
                await db.execute(
                    "INSERT INTO signals (run_id, kind, payload, at) VALUES (%s,%s,%s,%s)",
                    (run_id, kind, json.dumps(payload), await self._get_time(db)),
                )
                if queue and self.jobs is not None:  # nobody holds the run
                    await self.jobs.enqueue(db, run_id, queue=queue, priority=None)
        except StoreError as error:
            if isinstance(error.__cause__, ForeignKeyViolation):
                raise build_run_not_found_error(run_id) from error
            raise
        self._wake(run_id)

    async def read_signals(self, run_id: str, *, after: int = 0) -> list[Signal]:
        """See `Journal.read_signals`."""
        async with self._database.begin_single_query() as db:
            cursor = await db.execute(
                "SELECT id, run_id, kind, payload, at FROM signals WHERE run_id = %s AND id > %s ORDER BY id",
                (run_id, after),
            )
            return [Signal(row[0], row[1], row[2], json.loads(row[3]), row[4]) async for row in cursor]

    async def put_blob(self, data: bytes, *, run_id: str) -> str:
        """See `Journal.put_blob`."""
        checksum = hashlib.sha256(data).hexdigest()
        for attempt in range(PUT_BLOB_ATTEMPTS):
            try:
                async with self._database.transaction() as db:
                    await db.execute(_INSERT_BLOB, (checksum, data))
                    await db.execute(_INSERT_BLOB_REFERENCE, (run_id, checksum))
            except StoreError as error:
                if not isinstance(error.__cause__, ForeignKeyViolation):
                    raise
                if error.__cause__.diag.constraint_name == _REFERENCE_TO_RUN or attempt + 1 == PUT_BLOB_ATTEMPTS:
                    raise build_run_not_found_error(run_id) from error
                # Otherwise the same bytes were stored already, and deleted between the two statements.
            else:
                break
        return checksum

    async def get_blob(self, checksum: str) -> bytes:
        """See `Journal.get_blob`."""
        async with self._database.begin_single_query() as db:
            row = await (await db.execute("SELECT data FROM blobs WHERE checksum = %s", (checksum,))).fetchone()
        if row is None:
            raise NotFoundError(f"there is no blob {checksum}", agent_id="journal")
        return bytes(row[0])

    async def wait_for_events(self, run_id: str, *, after: int, timeout_s: float) -> None:
        """See `Journal.wait_for_events`."""

        async def arrived() -> bool:
            async with self._database.begin_single_query() as db:
                row = await (await db.execute("SELECT last_seq FROM runs WHERE run_id = %s", (run_id,))).fetchone()
            return row is not None and int(row[0]) > after

        await self.wakeups.wait(run_id, arrived, timeout_s)

    async def check_writable(self) -> None:
        """See `Journal.check_writable`. Writes a row and deletes it again."""
        async with self._database.transaction() as db:
            await db.execute(
                "INSERT INTO blobs (checksum, data) VALUES ('check', %s) ON CONFLICT (checksum) DO NOTHING",
                (bytes(CHECK_BYTES),),
            )
            await db.execute("DELETE FROM blobs WHERE checksum = 'check'")

    def _wake(self, run_id: str) -> None:
        """Wakes who waits for this run, here and in other processes."""
        self.wakeups.wake(run_id)
        self._database.notify(run_id)

    async def close(self) -> None:
        """See `Journal.close`."""
        await self._database.close()

    async def _get_time(self, db: Connection) -> float:
        if self._clock is not None:
            return self._clock()
        row = await (await db.execute(f"SELECT {NOW_SQL}")).fetchone()
        return float(row[0]) if row else 0.0


async def _read_events(db: Connection, run_id: str, after: int, limit: int | None) -> list[Event]:
    query = f"SELECT {EVENT_COLUMNS} FROM events WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s"  # noqa: S608
    cursor = await db.execute(query, (strip_nul(run_id), min(after, MAX_SEQ), limit))
    return [decode(cast("EventRow", row)) async for row in cursor]
