"""SQL statements on either database, for the small tables: the same words, each by itself one transaction.

Statements are written with `?`, and with what SQLite and PostgreSQL have in common.
"""

import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agent.core.sqlite import Database

if TYPE_CHECKING:
    from agent.core.postgres import PostgresDatabase

Row = tuple[Any, ...]


class Change(NamedTuple):
    """One of several statements that belong together."""

    statement: str
    values: tuple[object, ...] = ()


class Statements(Protocol):
    """Carries out statements. Methods raise `StoreError`."""

    async def read(self, statement: str, *values: object) -> list[Row]:
        """The rows of a query."""
        ...

    async def write(self, statement: str, *values: object) -> list[Row]:
        """Change something; the rows of its `RETURNING`, if it has one."""
        ...

    async def write_all(self, *changes: Change) -> list[int]:
        """Several changes in one transaction, in this order; how many rows each has touched."""
        ...


class SqliteStatements:
    """Implements `Statements` in the store's file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, statement: str, *values: object) -> list[Row]:
        """See `Statements.read`."""
        return await self._database.read(lambda db: _rows(db, statement, values))

    async def write(self, statement: str, *values: object) -> list[Row]:
        """See `Statements.write`."""
        return await self._database.run(lambda db: _rows(db, statement, values))

    async def write_all(self, *changes: Change) -> list[int]:
        """See `Statements.write_all`."""
        return await self._database.run(lambda db: [db.execute(*change).rowcount for change in changes])


class PostgresStatements:
    """Implements `Statements` on PostgreSQL."""

    def __init__(self, database: "PostgresDatabase") -> None:
        self._database = database

    async def read(self, statement: str, *values: object) -> list[Row]:
        """See `Statements.read`."""
        return await self.write(statement, *values)

    async def write(self, statement: str, *values: object) -> list[Row]:
        """See `Statements.write`."""
        async with self._database.transaction() as db:
            cursor = await db.execute(statement.replace("?", "%s").encode(), values)
            return list(await cursor.fetchall()) if cursor.description is not None else []

    async def write_all(self, *changes: Change) -> list[int]:
        """See `Statements.write_all`."""
        async with self._database.transaction() as db:
            return [(await db.execute(said.replace("?", "%s").encode(), values)).rowcount for said, values in changes]


def _rows(db: sqlite3.Connection, statement: str, values: tuple[Any, ...]) -> list[Row]:
    return db.execute(statement, values).fetchall()
