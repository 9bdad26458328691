"""Runs SQL statements for the small tables on either database, each in its own transaction.

Statements use `?` for parameters and only what SQLite and PostgreSQL have in common.
"""

import sqlite3
from collections.abc import AsyncIterator, Sized
from math import inf
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agent.core.errors import AgentError
from agent.storage.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from agent.storage.postgres import PostgresDatabase

Row = tuple[Any, ...]


class SqlStatement(NamedTuple):
    """One of several statements that belong together. With `must_change`, all are undone if it changes no row."""

    statement: str
    values: tuple[object, ...] = ()
    must_change: bool = False


class UnchangedError(AgentError):
    """Raised when a statement that must change a row found none: another process was there first."""

    def __init__(self) -> None:
        super().__init__("another process has changed the row first", agent_id="store")


class SqlClient(Protocol):
    """Runs statements. Methods raise `StoreError`."""

    async def read(self, statement: str, *values: object) -> list[Row]:
        """The rows of a query."""
        ...

    async def write(self, statement: str, *values: object) -> list[Row]:
        """Runs a statement that changes something and returns the rows of its `RETURNING`, if any."""
        ...

    async def write_all(self, *changes: SqlStatement) -> list[int]:
        """Runs several statements in one transaction, in order, and returns how many rows each has changed.

        Raises `UnchangedError` if one of them must change a row and does not; nothing is changed then.
        """
        ...


PAGE: Final = 500
"""Rows that one query of many looks at."""
BRIEF_SECONDS: Final = 0.001
"""Average CPU time of a statement that may run on the caller's thread."""
SMOOTHING: Final = 1 / 8
"""The weight of a statement's last time in its average. One that took long by accident, as on a busy machine, stays
where it is; one that takes a hundred times as long changes to the thread at once."""
MAX_STATEMENTS: Final = 1000
"""How many statements' times are remembered. Lists of values make new statements."""


def format_marks(values: Sized) -> str:
    """The marks of an `IN (...)` for these values."""
    return ",".join("?" * len(values))


async def iter_pages(statements: SqlClient, query: str, *values: object) -> AsyncIterator[list[Row]]:
    """Yields pages of a query whose first column orders its rows. Its last two marks are the value of that column after
    which a page begins, a text, and the number of rows. Raises `StoreError`."""
    last = ""
    while rows := await statements.read(query, *values, last, PAGE):
        last = str(rows[-1][0])
        yield rows


class SqliteClient:
    """Implements `SqlClient` on SQLite. It measures each statement, and runs those that were brief on the caller's
    thread: the rows of a table are few in one installation and many in another.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._seconds: dict[str, float] = {}
        """The average CPU time of each statement, in seconds."""

    async def read(self, statement: str, *values: object) -> list[Row]:
        """See `SqlClient.read`."""
        return await self._database.read(
            lambda db: self._execute(db, statement, values)[0], brief=self._is_brief(statement)
        )

    async def write(self, statement: str, *values: object) -> list[Row]:
        """See `SqlClient.write`."""
        return await self._database.write(
            lambda db: self._execute(db, statement, values)[0], brief=self._is_brief(statement)
        )

    async def write_all(self, *changes: SqlStatement) -> list[int]:
        """See `SqlClient.write_all`."""
        return await self._database.write(
            lambda db: [_check(one, self._execute(db, one.statement, one.values)[1]) for one in changes],
            brief=all(self._is_brief(one.statement) for one in changes),
        )

    def _is_brief(self, statement: str) -> bool:
        return self._seconds.get(statement, inf) <= BRIEF_SECONDS

    def _execute(self, db: sqlite3.Connection, statement: str, values: tuple[Any, ...]) -> tuple[list[Row], int]:
        """The rows of a statement and how many it has changed. Measures its CPU time, because on a busy machine
        every statement takes long."""
        started = thread_time()
        cursor = db.execute(statement, values)
        rows = cursor.fetchall()
        seconds = thread_time() - started
        if len(self._seconds) >= MAX_STATEMENTS and statement not in self._seconds:
            self._seconds.clear()
        average = self._seconds.get(statement, seconds)
        self._seconds[statement] = average + SMOOTHING * (seconds - average)
        return rows, cursor.rowcount


class PostgresClient:
    """Implements `SqlClient` on PostgreSQL."""

    def __init__(self, database: "PostgresDatabase") -> None:
        self._database = database

    async def read(self, statement: str, *values: object) -> list[Row]:
        """See `SqlClient.read`."""
        return await self.write(statement, *values)

    async def write(self, statement: str, *values: object) -> list[Row]:
        """See `SqlClient.write`."""
        async with self._database.begin_single_query() as db:
            cursor = await db.execute(statement.replace("?", "%s").encode(), values)
            return list(await cursor.fetchall()) if cursor.description is not None else []

    async def write_all(self, *changes: SqlStatement) -> list[int]:
        """See `SqlClient.write_all`."""
        async with self._database.transaction() as db:
            return [
                _check(one, (await db.execute(one.statement.replace("?", "%s").encode(), one.values)).rowcount)
                for one in changes
            ]


def _check(change: SqlStatement, count: int) -> int:
    """The number of rows that a statement has changed. Raises `UnchangedError` if it had to change one."""
    if change.must_change and count == 0:
        raise UnchangedError
    return count


MAX_CACHED_OWNERS: Final = 1_000


class OwnedRows:
    """The rows of one statement about an owner, declared by a feature and read by the engine in runs.

    The feature's code runs only if there are rows. With `cache_seconds`, the same list is returned for so long: a
    process may miss for that time what another one changed."""

    def __init__(self, statements: SqlClient, statement: str, *, cache_seconds: float = 0.0) -> None:
        """Every `?` of `statement` stands for the owner."""
        self._statements = statements
        self._statement = statement
        self._owner_marks = statement.count("?")
        self._cache_seconds = cache_seconds
        self._cached: dict[str, tuple[float, list[Row]]] = {}

    async def read(self, owner: str) -> list[Row]:
        """The owner's rows. Raises `StoreError`."""
        cached = self._cached.get(owner)
        if cached is not None and monotonic() - cached[0] < self._cache_seconds:
            return cached[1]
        rows = await self._statements.read(self._statement, *[owner] * self._owner_marks)
        if self._cache_seconds:
            if len(self._cached) >= MAX_CACHED_OWNERS:
                self._cached.clear()
            self._cached[owner] = (monotonic(), rows)
        return rows

    async def read_counts(self, owner: str) -> dict[str, int]:
        """Rows of a name and a number as a dictionary in order of name. Raises `StoreError`."""
        return {str(name): int(count) for name, count in sorted(await self.read(owner))}

    def forget(self, owner: str) -> None:
        """Makes the next `read` see what this process has changed."""
        self._cached.pop(owner, None)
