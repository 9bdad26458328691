"""A pool of PostgreSQL connections: opened on the newest schema, failures as ours, wake-ups by NOTIFY."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from agent.core.codec import whole
from agent.core.errors import StoreError, StoreFullError, StoreNewerError
from agent.core.migrations import HEAD, REVISIONS
from agent.core.outage import Outage

log = logging.getLogger(__name__)

POOL_SIZE = 10
WAIT_SECONDS = 10.0
"""How long a unit of work waits for a connection; a server that restarts is back within it."""
CHANNEL = "stepgate_runs"
NOW = "extract(epoch FROM clock_timestamp())"
"""The server's time in UTC seconds, so that several machines agree."""
_RECONNECT_SECONDS = 1.0
_MIGRATION_LOCK = 0x57E96A7E
"""Any fixed number: the advisory lock that lets one process migrate at a time."""

Connection = AsyncConnection[TupleRow]


class PostgresDatabase:
    """The pool, and one connection that listens; of use once it is `open`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=POOL_SIZE,
            timeout=WAIT_SECONDS,
            open=False,
            check=AsyncConnectionPool.check_connection,
        )
        self._listener: asyncio.Task[None] | None = None

    @property
    def where(self) -> str:
        """The server and database, without the password."""
        return without_password(self.url)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection in a transaction. Raises `StoreError` for what the server refuses or cannot do."""
        try:
            async with self._pool.connection() as connection, connection.transaction():
                yield connection
        except (psycopg.Error, PoolTimeout) as error:
            raise translate(error, self.where) from error

    async def open(self, wake: Callable[[str], None], wake_all: Callable[[], None]) -> None:
        """Connect, migrate where needed, and begin to listen: `wake` is called with the id of a run that grew."""
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # its reconnecting is told by the errors above
        try:
            async with await AsyncConnection.connect(self.url, autocommit=True) as connection:
                if await _revision(connection, self.where) != HEAD:
                    await _migrate(connection, self.url)
            await self._pool.open(wait=True, timeout=WAIT_SECONDS)
        except (psycopg.Error, PoolTimeout) as error:
            raise translate(error, self.where) from error
        self._listener = asyncio.create_task(self._listen(wake, wake_all), name="postgres listener")

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
        await self._pool.close()

    async def _listen(self, wake: Callable[[str], None], wake_all: Callable[[], None]) -> None:
        """Listen for ever; a broken connection is made again, and everybody looks for what was missed."""
        trouble = Outage(log, f"listening at {self.where} broke off, and is tried again")
        while True:
            try:
                async with await AsyncConnection.connect(self.url, autocommit=True) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    trouble.over()
                    wake_all()
                    async for notice in connection.notifies():
                        wake(notice.payload)
            except psycopg.Error as error:
                trouble.met(_line(error))
            await asyncio.sleep(_RECONNECT_SECONDS)


async def _revision(connection: Connection, where: str) -> str | None:
    """The schema's revision; None for an empty database. `StoreNewerError` for one this version does not know."""
    cursor = await connection.execute("SELECT to_regclass('alembic_version')")
    known = await cursor.fetchone()
    if known is None or known[0] is None:
        return None
    cursor = await connection.execute("SELECT version_num FROM alembic_version")
    row = await cursor.fetchone()
    if row is not None and row[0] not in REVISIONS:
        raise StoreNewerError(
            f"the database {where} was written by a newer version of Stepgate (schema {row[0]}, this one knows "
            f"{HEAD}); upgrade Stepgate, or set AGENT_DATABASE_URL to another database",
            agent_id="store",
        )
    return None if row is None else str(row[0])


async def _migrate(connection: Connection, url: str) -> None:
    """Migrate, one process at a time."""
    from agent.core.migrate import postgres_engine, upgrade  # noqa: PLC0415 - Alembic: 0.3 s, once a schema

    await connection.execute("SELECT pg_advisory_lock(%s)", (_MIGRATION_LOCK,))
    try:
        if await _revision(connection, "") != HEAD:
            await asyncio.to_thread(upgrade, postgres_engine(url))
    finally:
        await connection.execute("SELECT pg_advisory_unlock(%s)", (_MIGRATION_LOCK,))


def translate(error: Exception, where: str) -> StoreError:
    """A database failure as ours, saying what to do."""
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreFullError(
            f"the disk of {where} is full; free space, nothing was lost and unfinished runs go on", agent_id="store"
        )
    if isinstance(error, psycopg.OperationalError | PoolTimeout):
        return StoreError(
            f"the database {where} cannot be used: {_line(error)}; check AGENT_DATABASE_URL and the server",
            agent_id="store",
        )
    return StoreError(f"the database {where} refused: {_line(error)}", agent_id="store")


def names_database(url: str) -> bool:
    """Whether a connection string says which database is meant. Left to libpq, it would be that of the user's name."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return True  # connecting says what is wrong with it
    return bool(parts.get("dbname") or parts.get("service"))


def without_nul(text: str) -> str:
    """Text as PostgreSQL takes it: whole characters, no NUL."""
    return whole(text).replace("\x00", "")


def without_password(url: str) -> str:
    """A connection string as it may be logged."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "postgresql"
    parts.pop("password", None)
    return make_conninfo("", **parts)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
