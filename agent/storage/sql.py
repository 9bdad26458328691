"""Runs SQL statements for the small tables on either database, each in its own transaction.

Statements use `?` for parameters and only what SQLite and PostgreSQL have in common.
"""

import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agent.storage.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from agent.storage.postgres import PostgresDatabase

Row = tuple[Any, ...]


class SqlStatement(NamedTuple):
    """One of several statements that belong together."""

    statement: str
    values: tuple[object, ...] = ()


class SqlClient(Protocol):
    """Runs statements. Methods raise `StoreError`."""

    async def read(self, statement: str, *values: object) -> list[Row]:
        """Returns the rows of a query."""
        ...

    async def write(self, statement: str, *values: object) -> list[Row]:
        """Runs a statement that changes something and returns the rows of its `RETURNING`, if any."""
        ...

    async def write_all(self, *changes: SqlStatement) -> list[int]:
        """Runs several statements in one transaction, in order, and returns how many rows each has changed."""
        ...


class SqliteClient:
    """Implements `SqlClient` on SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def read(self, statement: str, *values: object) -> list[Row]:
        """See `SqlClient.read`."""
        return await self._database.read(lambda db: _execute(db, statement, values))

    async def write(self, statement: str, *values: object) -> list[Row]:
        """See `SqlClient.write`."""
        return await self._database.write(lambda db: _execute(db, statement, values))

    async def write_all(self, *changes: SqlStatement) -> list[int]:
        """See `SqlClient.write_all`."""
        return await self._database.write(lambda db: [db.execute(*change).rowcount for change in changes])


class PostgresClient:
    """Implements `SqlClient` on PostgreSQL."""

    def __init__(self, database: "PostgresDatabase") -> None:
        self._database = database

    async def read(self, statement: str, *values: object) -> list[Row]:
        """See `SqlClient.read`."""
        return await self.write(statement, *values)

    async def write(self, statement: str, *values: object) -> list[Row]:
        """See `SqlClient.write`."""
        async with self._database.transaction() as db:
            cursor = await db.execute(statement.replace("?", "%s").encode(), values)
            return list(await cursor.fetchall()) if cursor.description is not None else []

    async def write_all(self, *changes: SqlStatement) -> list[int]:
        """See `SqlClient.write_all`."""
        async with self._database.transaction() as db:
            return [(await db.execute(said.replace("?", "%s").encode(), values)).rowcount for said, values in changes]


def _execute(db: sqlite3.Connection, statement: str, values: tuple[Any, ...]) -> list[Row]:
    return db.execute(statement, values).fetchall()
