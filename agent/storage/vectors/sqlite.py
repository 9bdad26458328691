"""The rows of an `ExactIndex` in the store's SQLite file, which several processes may share."""

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.vector_space import VectorSpace
from agent.storage.sqlite import SqliteDatabase
from agent.storage.vectors.exact import SetVersion, VectorChanges, VectorRow
from agent.storage.vectors.port import Entry, Item
from agent.storage.vectors.rows import ITEM_COLUMNS, check_dimension, check_owners, encode_payload, parse_item


class SqliteVectorRows:
    """Implements `VectorRows`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def open(self, name: str, space: VectorSpace) -> VectorSpace:
        """See `VectorRows.open`."""

        def look(db: sqlite3.Connection) -> VectorSpace | None:
            return _read_space(db, name)

        def make(db: sqlite3.Connection) -> VectorSpace:
            db.execute(
                "INSERT OR IGNORE INTO vector_sets (name, embedder, dimension, generation) VALUES (?,?,?,?)",
                (name, space.embedder, space.dimension, secrets.token_hex(8)),
            )
            return _read_space(db, name) or space

        stored: VectorSpace | None = await self._database.read(look)
        return stored if stored is not None else await self._database.write(make)

    async def put(self, name: str, dimension: int, entries: Sequence[tuple[Entry, bytes]]) -> None:
        """See `VectorRows.put`."""

        def unit(db: sqlite3.Connection) -> None:
            check_dimension(name, _read_space(db, name), dimension)
            ids = [entry.id for entry, _ in entries]
            owners = _select_by_ids(db, "SELECT id, owner FROM vectors WHERE name = ? AND id IN", name, ids)
            replaced = check_owners(dict(owners), [entry for entry, _ in entries])
            added = db.execute(
                "UPDATE vector_sets SET added = added + ?, removed = removed + ? WHERE name = ? RETURNING added",
                (len(entries), replaced, name),
            ).fetchone()[0]
            first = added - len(entries) + 1
            db.executemany(
                "INSERT OR REPLACE INTO vectors (name, id, owner, scope, seq, at, vector, payload) "
                "VALUES (?,?,?,?,?,?,?,?)",
                [
                    (name, e.id, e.owner, e.scope, first + index, e.at, vector, encode_payload(e))
                    for index, (e, vector) in enumerate(entries)
                ],
            )

        await self._database.write(unit)

    async def read_changes(self, name: str, owner: str, since: SetVersion | None) -> VectorChanges | None:
        """See `VectorRows.read_changes`."""
        version = await self._database.read(lambda db: _read_version(db, name), brief=True)
        if version is None:
            return None
        if since == version:
            return VectorChanges(version, (), is_complete=False)

        def unit(db: sqlite3.Connection) -> VectorChanges | None:
            if (version := _read_version(db, name)) is None:
                return None
            after = since.added if since is not None and since.has_only_additions_until(version) else 0
            rows = db.execute(
                "SELECT id, scope, vector FROM vectors WHERE name = ? AND owner = ? AND seq > ? ORDER BY seq",
                (name, owner, after),
            ).fetchall()
            return VectorChanges(version, [VectorRow(*row) for row in rows], is_complete=after == 0)

        return await self._database.read(unit)

    async def read_items(self, name: str, owner: str, ids: Sequence[str]) -> Mapping[str, Item]:
        """See `VectorRows.read_items`."""

        def unit(db: sqlite3.Connection) -> list[Item]:
            # The plus keeps SQLite from scanning all rows of the owner, which it does from forty ids on.
            query = f"SELECT {ITEM_COLUMNS} FROM vectors WHERE +owner = ? AND name = ? AND id IN"  # noqa: S608 - constants only
            return [parse_item(row) for row in _select_by_ids(db, query, owner, name, ids)]

        return {item.id: item for item in await self._database.read(unit)}

    async def read_vectors(
        self, name: str, owner: str, ids: Sequence[str]
    ) -> tuple[VectorSpace | None, Mapping[str, bytes]]:
        """See `VectorRows.read_vectors`."""

        def unit(db: sqlite3.Connection) -> tuple[VectorSpace | None, Mapping[str, bytes]]:
            query = "SELECT id, vector FROM vectors WHERE +owner = ? AND name = ? AND id IN"
            return _read_space(db, name), dict(_select_by_ids(db, query, owner, name, ids))

        return await self._database.read(unit)

    async def list_items(self, name: str, owner: str | None, limit: int, scopes: Sequence[str] | None) -> list[Item]:
        """See `VectorRows.list_items`."""

        def unit(db: sqlite3.Connection) -> list[Item]:
            query = f"SELECT {ITEM_COLUMNS} FROM vectors WHERE name = ?"  # noqa: S608 - constants only
            values: list[Any] = [name]
            if owner is not None:
                query += " AND owner = ?"
                values.append(owner)
            if scopes is not None:
                query += f" AND scope IN ({','.join('?' * len(scopes))})"
                values += scopes
            query += " ORDER BY seq DESC LIMIT ?"
            return [parse_item(row) for row in db.execute(query, [*values, limit]).fetchall()]

        return await self._database.read(unit)

    async def delete(self, name: str, owner: str, ids: Sequence[str]) -> int:
        """See `VectorRows.delete`."""

        def unit(db: sqlite3.Connection) -> int:
            rows = _select_by_ids(db, "SELECT id FROM vectors WHERE name = ? AND owner = ? AND id IN", name, owner, ids)
            db.executemany("DELETE FROM vectors WHERE name = ? AND id = ?", [(name, row[0]) for row in rows])
            if rows:
                db.execute("UPDATE vector_sets SET removed = removed + ? WHERE name = ?", (len(rows), name))
            return len(rows)

        return await self._database.write(unit)

    async def count_larger_than(self, count: int) -> Mapping[str, int]:
        """See `VectorRows.count_larger_than`."""
        query = "SELECT name, count(*) FROM vectors GROUP BY name, owner HAVING count(*) > ?"
        return dict(await self._database.read(lambda db: db.execute(query, (count,)).fetchall()))

    async def drop(self, name: str) -> None:
        """See `VectorRows.drop`."""

        def unit(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM vectors WHERE name = ?", (name,))
            db.execute("DELETE FROM vector_sets WHERE name = ?", (name,))

        await self._database.write(unit)


def _read_version(db: sqlite3.Connection, name: str) -> SetVersion | None:
    row = db.execute("SELECT generation, added, removed FROM vector_sets WHERE name = ?", (name,)).fetchone()
    return None if row is None else SetVersion(row[0], row[1], row[2])


def _read_space(db: sqlite3.Connection, name: str) -> VectorSpace | None:
    row = db.execute("SELECT embedder, dimension FROM vector_sets WHERE name = ?", (name,)).fetchone()
    return None if row is None else VectorSpace(row[0], row[1])


def _select_by_ids(db: sqlite3.Connection, query: str, *values: Any) -> list[Any]:
    """The rows of a query that ends in `IN`, for any number of ids: the last of `values`."""
    *fixed, ids = values
    rows: list[Any] = []
    for start in range(0, len(ids), 500):  # SQLite limits the number of parameters
        part = ids[start : start + 500]
        rows += db.execute(f"{query} ({','.join('?' * len(part))})", [*fixed, *part]).fetchall()
    return rows
