"""A pool of PostgreSQL connections: brings the schema up to date, translates errors, receives wake-ups by NOTIFY."""

import asyncio
import contextlib
import logging
import select
from collections.abc import AsyncIterator, Callable, Collection

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import StoreError, StoreFullError
from agent.core.surrogates import replace_surrogates
from agent.core.throttled_log import ThrottledLog
from agent.storage.migrations import FIRST, HEAD, SQUASHED, STAMP, check_revision
from agent.storage.server_clock import SYNCHRONIZE_SECONDS, ServerClock

log = logging.getLogger(__name__)

POOL_SIZE = 10
POOL_TIMEOUT_SECONDS = 10.0
"""How long a unit of work waits for a connection; a restarting server is back by then."""
CLOSE_SECONDS = 1.0
"""How long closing waits for notifications that are being sent."""
IDLE_SECONDS = 10.0
"""How long a transaction may stand still. A process that is stopped in the middle of one holds its rows, so that nobody
else could claim its runs; the server ends it.
"""
CHANNEL = "stepgate_runs"
NOTIFY_PAUSE_SECONDS = 0.02
"""How long notifications are collected after the last ones; after a longer silence they go at once. The server takes
one transaction with notifications at a time, and each wakes every process."""
_NOTIFY = (
    # Nothing is stored: without waiting for the disk, for which the next transaction with notifications would wait too.
    b"SELECT set_config('synchronous_commit', 'off', true), pg_notify(channel, payload) "
    b"FROM unnest(%s::text[], %s::text[]) AS sent (channel, payload)"
)
NOW_SQL = "extract(epoch FROM clock_timestamp())"
"""The server's time in UTC seconds, so that several machines agree."""
_RECONNECT_SECONDS = 1.0
_ODD_OFFSET_SECONDS = 5.0
"""A difference of the clocks that is reported to the operator."""
MIGRATION_LOCK = 0x57E96A7E
"""The advisory lock that lets one process at a time change the schema; any fixed number."""

Connection = AsyncConnection[TupleRow]


class PostgresDatabase:
    """The pool and one listening connection. Call `open` before use."""

    def __init__(self, url: str, *, idle_s: float = IDLE_SECONDS) -> None:
        self.url = url
        self.clock = ServerClock()
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            add_options(url, idle_in_transaction_session_timeout=round(1000 * idle_s)),
            min_size=1,
            max_size=POOL_SIZE,
            timeout=POOL_TIMEOUT_SECONDS,
            open=False,
            check=check_connection,
            # Transactions are explicit, so that a single query needs none.
            kwargs={"autocommit": True},
        )
        self._listener: asyncio.Task[None] | None = None
        self._notifier: asyncio.Task[None] | None = None
        self._unsent: set[tuple[str, str]] = set()
        """Notifications to be sent: channels with payloads."""
        self._uncommitted: dict[Connection, set[tuple[str, str]]] = {}
        """Those of open transactions."""

    @property
    def location(self) -> str:
        """The server and database, without the password."""
        return redact_password(self.url)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Yields a connection in a transaction. Raises `StoreError` for whatever the server refuses or cannot do."""
        try:
            async with self._pool.connection() as connection:
                notifications = self._uncommitted[connection] = set()
                try:
                    async with connection.transaction():
                        yield connection
                    self._send(notifications)
                finally:
                    del self._uncommitted[connection]
        except (psycopg.Error, PoolTimeout) as error:
            raise to_store_error(error, self.location) from error

    @contextlib.asynccontextmanager
    async def begin_single_query(self) -> AsyncIterator[Connection]:
        """Yields a connection for one query, which is a transaction of its own: one round trip instead of three.

        Raises `StoreError` as `transaction` does.
        """
        try:
            async with self._pool.connection() as connection:
                yield connection
        except (psycopg.Error, PoolTimeout) as error:
            raise to_store_error(error, self.location) from error

    @contextlib.asynccontextmanager
    async def separate_connection(self) -> AsyncIterator[Connection]:
        """Yields a connection of its own, for statements that take minutes: those of the pool are for brief ones.

        Raises `StoreError` as `transaction` does.
        """
        try:
            async with await AsyncConnection.connect(self.url, autocommit=True) as connection:
                yield connection
        except psycopg.Error as error:
            raise to_store_error(error, self.location) from error

    async def open(self, wake: Callable[[str], None], wake_all: Callable[[], None]) -> None:
        """Connects, updates the schema and starts listening. `wake` is called with the id of a run that has grown."""
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # its failures show as the errors below
        try:
            async with await AsyncConnection.connect(self.url, autocommit=True) as connection:
                if await _read_revision(connection, self.location) != HEAD:
                    await _upgrade_tables(connection, self.url)
                await self._synchronize_clock(connection)
            await self._pool.open(wait=True, timeout=POOL_TIMEOUT_SECONDS)
        except (psycopg.Error, PoolTimeout) as error:
            raise to_store_error(error, self.location) from error
        self._listener = asyncio.create_task(self._listen(wake, wake_all), name="postgres listener")

    def notify(self, run_id: str) -> None:
        """Wakes who waits for this run in other processes, at once or a few milliseconds later.

        A notification is lost with the process or the server; those who wait also look by themselves."""
        self._send({(CHANNEL, run_id)})

    def notify_after_commit(self, db: Connection, channel: str, payload: str) -> None:
        """Sends a notification in the same way once the transaction of `db` has committed; none if it fails."""
        self._uncommitted[db].add((channel, payload))

    def _send(self, notifications: Collection[tuple[str, str]]) -> None:
        self._unsent.update(notifications)
        if self._unsent and self._notifier is None:
            self._notifier = asyncio.create_task(self._send_notifications(), name="postgres notifier")

    async def _send_notifications(self) -> None:
        """Sends the collected notifications until there are none."""
        while self._unsent:
            unsent, self._unsent = self._unsent, set()
            try:
                async with self.begin_single_query() as db:
                    await db.execute(_NOTIFY, [list(column) for column in zip(*unsent, strict=True)])
            except StoreError as error:
                log.debug("%d notifications could not be sent: %s", len(unsent), error.message)
            await asyncio.sleep(NOTIFY_PAUSE_SECONDS)
        self._notifier = None

    async def close(self) -> None:
        """Sends what is left to notify of, stops listening and closes every connection."""
        if self._notifier is not None:
            await asyncio.wait([self._notifier], timeout=CLOSE_SECONDS)
        await cancel_and_wait(*(task for task in (self._listener, self._notifier) if task is not None))
        await self._pool.close()

    async def _synchronize_clock(self, connection: Connection) -> None:
        async def read_time() -> float:
            row = await (await connection.execute(f"SELECT {NOW_SQL}")).fetchone()
            assert row is not None
            return float(row[0])

        before = self.clock.offset
        await self.clock.synchronize(read_time)
        if abs(self.clock.offset) > _ODD_OFFSET_SECONDS and abs(self.clock.offset - before) > _ODD_OFFSET_SECONDS:
            log.warning(
                "this machine's clock is %.0f s off that of %s, whose time is used: set it, for example by NTP",
                self.clock.offset,
                self.location,
            )

    async def _listen(self, wake: Callable[[str], None], wake_all: Callable[[], None]) -> None:
        """Listens forever. Reconnects after a failure and wakes everybody, since notifications may have been missed."""
        trouble = ThrottledLog(log, f"notifications of {self.location} cannot be received")
        while True:
            try:
                async with await AsyncConnection.connect(self.url, autocommit=True) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    trouble.record_recovery()
                    wake_all()
                    while True:
                        await self._synchronize_clock(connection)
                        async for notice in connection.notifies(timeout=SYNCHRONIZE_SECONDS):
                            wake(notice.payload)
            except psycopg.Error as error:
                trouble.record_failure(_format_error(error))
            await asyncio.sleep(_RECONNECT_SECONDS)


async def check_connection(connection: Connection) -> None:
    """Asks the server only if something has arrived on the idle connection: what a closing server sends, or its end.

    Without that, the question would cost a round trip per transaction and find nothing. Raises `OperationalError` for
    a broken connection, which the pool then replaces.
    """
    arrived = select.poll()
    arrived.register(connection.fileno(), select.POLLIN)
    if arrived.poll(0):
        await AsyncConnectionPool.check_connection(connection)


async def _read_revision(connection: Connection, where: str) -> str | None:
    """The schema's revision, None for an empty database. Raises what `check_revision` raises."""
    cursor = await connection.execute("SELECT to_regclass('alembic_version')")
    version_table = await cursor.fetchone()
    if version_table is None or version_table[0] is None:
        return None
    cursor = await connection.execute("SELECT version_num FROM alembic_version")
    row = await cursor.fetchone()
    if row is None:
        return None
    check_revision(str(row[0]), f"the database {where}", "set AGENT_DATABASE_URL to another database")
    return str(row[0])


async def _upgrade_tables(connection: Connection, url: str) -> None:
    """Creates the tables of an empty database, or brings those of an earlier version to `HEAD`. One process at a time
    does it; the others wait.
    """
    from agent.storage.migrate import create_postgres_engine, create_tables, upgrade  # noqa: PLC0415 - 0.3 s, once

    await connection.execute("SELECT pg_advisory_lock(%s)", (MIGRATION_LOCK,))
    try:
        revision = await _read_revision(connection, "")  # read again: another process may have done it meanwhile
        if revision is None:
            await asyncio.to_thread(create_tables, create_postgres_engine(url))
            return
        if revision == SQUASHED:
            await connection.execute(STAMP)
            revision = FIRST
        if revision != HEAD:
            await asyncio.to_thread(upgrade, create_postgres_engine(url))
    finally:
        await connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))


def to_store_error(error: Exception, where: str) -> StoreError:
    """Converts a database error to a `StoreError` that says what to do."""
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreFullError(
            f"the disk of {where} is full; free space; nothing was lost and unfinished runs continue", agent_id="store"
        )
    if isinstance(error, psycopg.OperationalError | PoolTimeout):
        return StoreError(
            f"the database {where} cannot be used: {_format_error(error)}; check AGENT_DATABASE_URL and the server",
            agent_id="store",
        )
    return StoreError(f"the database {where} reported an error: {_format_error(error)}", agent_id="store")


def add_options(url: str, **options: object) -> str:
    """The connection string with further options of the server for its connections."""
    given = str(conninfo_to_dict(url).get("options") or "") if url else ""
    return make_conninfo(url, options=" ".join([given, *(f"-c {name}={value}" for name, value in options.items())]))


def has_database_name(url: str) -> bool:
    """Whether a connection string names a database. Without one, libpq would use the user's name."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return True  # connecting reports what is wrong with it
    return bool(parts.get("dbname") or parts.get("service"))


def strip_nul(text: str) -> str:
    """Removes what PostgreSQL cannot store: replaces lone surrogates and drops NUL."""
    return replace_surrogates(text).replace("\x00", "")


def redact_password(url: str) -> str:
    """A connection string that may be logged."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "postgresql"
    parts.pop("password", None)
    return make_conninfo("", **parts)


def _format_error(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
