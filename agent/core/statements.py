"""Single SQL statements on either database, for the small tables: the same words, each one transaction.

Statements are written with `?`, and with what SQLite and PostgreSQL have in common.
"""

import sqlite3
from typing import TYPE_CHECKING, Any, Protocol

from agent.core.sqlite import Database

if TYPE_CHECKING:
    from agent.core.postgres import PostgresDatabase

Row = tuple[Any, ...]


class Statements(Protocol):
    """Carries out statements. Methods raise `StoreError`."""

    async def read(self, statement: str, *values: object) -> list[Row]:
        """The rows of a query."""
        ...

    async def write(self, statement: str, *values: object) -> list[Row]:
        """Change something; the rows of its `RETURNING`, if it has one."""
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


def _rows(db: sqlite3.Connection, statement: str, values: tuple[Any, ...]) -> list[Row]:
    return db.execute(statement, values).fetchall()
