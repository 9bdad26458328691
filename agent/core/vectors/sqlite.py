"""The rows of an `ExactIndex` in the store's SQLite file. Several processes may share it."""

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.sqlite import Database
from agent.core.vectors.exact import Changes, VectorRow, Version
from agent.core.vectors.port import Entry, Item, Space
from agent.core.vectors.rows import ITEM, as_item, as_text, check_dimension, check_owners


class SqliteVectorRows:
    """Implements `VectorRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, name: str, space: Space) -> Space:
        """See `VectorRows.open`."""

        def look(db: sqlite3.Connection) -> Space | None:
            return _space(db, name)

        def make(db: sqlite3.Connection) -> Space:
            db.execute(
                "INSERT OR IGNORE INTO vector_sets (name, embedder, dimension, generation) VALUES (?,?,?,?)",
                (name, space.embedder, space.dimension, secrets.token_hex(8)),
            )
            return _space(db, name) or space

        stored: Space | None = await self._database.read(look)
        return stored if stored is not None else await self._database.run(make)

    async def put(self, name: str, dimension: int, entries: Sequence[tuple[Entry, bytes]]) -> None:
        """See `VectorRows.put`."""

        def unit(db: sqlite3.Connection) -> None:
            check_dimension(name, _space(db, name), dimension)
            ids = [entry.id for entry, _ in entries]
            owners = _chosen(db, "SELECT id, owner FROM vectors WHERE name = ? AND id IN", name, ids)
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
                    (name, e.id, e.owner, e.scope, first + index, e.at, vector, as_text(e))
                    for index, (e, vector) in enumerate(entries)
                ],
            )

        await self._database.run(unit)

    async def changes(self, name: str, owner: str, since: Version | None) -> Changes | None:
        """See `VectorRows.changes`."""

        def unit(db: sqlite3.Connection) -> Changes | None:
            row = db.execute("SELECT generation, added, removed FROM vector_sets WHERE name = ?", (name,)).fetchone()
            if row is None:
                return None
            version = Version(row[0], row[1], row[2])
            if since == version:
                return Changes(version, (), whole=False)
            after = since.added if since is not None and since.grew_to(version) else 0
            rows = db.execute(
                "SELECT id, scope, vector FROM vectors WHERE name = ? AND owner = ? AND seq > ? ORDER BY seq",
                (name, owner, after),
            ).fetchall()
            return Changes(version, [VectorRow(*row) for row in rows], whole=after == 0)

        return await self._database.read(unit)

    async def payloads(self, name: str, owner: str, ids: Sequence[str]) -> Mapping[str, Item]:
        """See `VectorRows.payloads`."""

        def unit(db: sqlite3.Connection) -> list[Item]:
            # The plus keeps SQLite from walking through all of the owner's rows, which it does for forty ids.
            query = f"SELECT {ITEM} FROM vectors WHERE +owner = ? AND name = ? AND id IN"  # noqa: S608 - constants only
            return [as_item(row) for row in _chosen(db, query, owner, name, ids)]

        return {item.id: item for item in await self._database.read(unit)}

    async def stored(self, name: str, owner: str, ids: Sequence[str]) -> tuple[Space | None, Mapping[str, bytes]]:
        """See `VectorRows.stored`."""

        def unit(db: sqlite3.Connection) -> tuple[Space | None, Mapping[str, bytes]]:
            query = "SELECT id, vector FROM vectors WHERE +owner = ? AND name = ? AND id IN"
            return _space(db, name), dict(_chosen(db, query, owner, name, ids))

        return await self._database.read(unit)

    async def items(self, name: str, owner: str | None, limit: int, scopes: Sequence[str] | None) -> list[Item]:
        """See `VectorRows.items`."""

        def unit(db: sqlite3.Connection) -> list[Item]:
            query = f"SELECT {ITEM} FROM vectors WHERE name = ?"  # noqa: S608 - constants only
            values: list[Any] = [name]
            if owner is not None:
                query += " AND owner = ?"
                values.append(owner)
            if scopes is not None:
                query += f" AND scope IN ({','.join('?' * len(scopes))})"
                values += scopes
            query += " ORDER BY seq DESC LIMIT ?"
            return [as_item(row) for row in db.execute(query, [*values, limit]).fetchall()]

        return await self._database.read(unit)

    async def delete(self, name: str, owner: str, ids: Sequence[str]) -> int:
        """See `VectorRows.delete`."""

        def unit(db: sqlite3.Connection) -> int:
            found = _chosen(db, "SELECT id FROM vectors WHERE name = ? AND owner = ? AND id IN", name, owner, ids)
            db.executemany("DELETE FROM vectors WHERE name = ? AND id = ?", [(name, row[0]) for row in found])
            if found:
                db.execute("UPDATE vector_sets SET removed = removed + ? WHERE name = ?", (len(found), name))
            return len(found)

        return await self._database.run(unit)

    async def drop(self, name: str) -> None:
        """See `VectorRows.drop`."""

        def unit(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM vectors WHERE name = ?", (name,))
            db.execute("DELETE FROM vector_sets WHERE name = ?", (name,))

        await self._database.run(unit)


def _space(db: sqlite3.Connection, name: str) -> Space | None:
    row = db.execute("SELECT embedder, dimension FROM vector_sets WHERE name = ?", (name,)).fetchone()
    return None if row is None else Space(row[0], row[1])


def _chosen(db: sqlite3.Connection, query: str, *values: Any) -> list[Any]:
    """The rows of a query that ends in `IN`, for any number of ids: the last of `values`."""
    *fixed, ids = values
    found: list[Any] = []
    for start in range(0, len(ids), 500):  # SQLite takes a limited number of parameters
        part = ids[start : start + 500]
        found += db.execute(f"{query} ({','.join('?' * len(part))})", [*fixed, *part]).fetchall()
    return found
