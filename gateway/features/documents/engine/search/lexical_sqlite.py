"""The passages of a `TantivyIndex` in the SQLite file of the store. The index itself is in a folder beside the file."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from typing import Any

from agent.storage.sqlite import SqliteDatabase
from gateway.features.documents.engine.search.lexical import IndexedPassage, Passage
from gateway.features.documents.engine.search.lexical_rows import (
    PASSAGE_COLUMNS,
    CollectionVersion,
    LexicalRows,
    PassageChange,
    from_row,
    generate_initial_changes,
    spread,
    to_row,
)
from gateway.features.documents.engine.search.tantivy_index import INDEX_FOLDER, TantivyIndex

_BATCH_SIZE = 500
"""Parameters of one statement; older SQLite versions allow a thousand."""
_ROWS_AS_JSON = f"json_group_array(json_array(seq, {PASSAGE_COLUMNS}))"
"""All rows as one: between two rows SQLite's driver gives up Python's lock, and waits for it while others compute."""
_VERSION = (
    "SELECT id, changes, (SELECT coalesce(max(seq), 0) FROM chunks WHERE set_id = chunk_sets.id) FROM chunk_sets "
    "WHERE owner = ? AND collection = ?"
)


def create_sqlite_index(database: SqliteDatabase) -> TantivyIndex:
    """A `LexicalIndex` beside the SQLite file of the store; in memory if the database is in memory."""
    rows: LexicalRows = SqliteLexicalRows(database)
    in_memory = str(database.path) == ":memory:"
    return TantivyIndex(rows, None if in_memory else database.path.parent / INDEX_FOLDER)


class SqliteLexicalRows:
    """Implements `LexicalRows`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def put(self, owner: str, collection: str, passages: Sequence[IndexedPassage]) -> PassageChange:
        """See `LexicalRows.put`."""

        def unit(db: sqlite3.Connection) -> PassageChange:
            version = _read_version(db, owner, collection)
            identity = version.id if version is not None else _create_collection(db, owner, collection)
            removed = _remove(
                db, identity, "chunk_id", [stored_passage.passage.chunk_id for stored_passage in passages]
            )
            db.executemany(
                f"INSERT INTO chunks (seq, set_id, {PASSAGE_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)",  # noqa: S608 - constants only
                [
                    (seq, identity, *to_row(stored_passage))
                    for seq, stored_passage in enumerate(passages, _reserve_number(db))
                ],
            )
            return _record_change(db, owner, collection, removed, len(passages))

        return await self._database.write(unit)

    async def get_version(self, owner: str, collection: str) -> CollectionVersion | None:
        """See `LexicalRows.get_version`."""
        return await self._database.read(lambda db: _read_version(db, owner, collection))

    async def list_names(self) -> frozenset[str]:
        """See `LexicalRows.list_names`."""
        rows = await self._database.read(lambda db: db.execute("SELECT id, changes, 0 FROM chunk_sets").fetchall())
        return frozenset(CollectionVersion(*row).name for row in rows)

    async def read_after(self, collection_id: int, number: int, limit: int) -> Mapping[int, IndexedPassage]:
        """See `LexicalRows.read_after`."""
        rows = "(SELECT * FROM chunks WHERE set_id = ? AND seq > ? ORDER BY seq LIMIT ?)"
        query = f"SELECT {_ROWS_AS_JSON} FROM {rows}"  # noqa: S608 - constants only
        fetched = await self._database.read(lambda db: db.execute(query, (collection_id, number, limit)).fetchall())
        return await asyncio.to_thread(_parse_rows, fetched)

    async def get_by_number(self, collection_id: int, numbers: Sequence[int]) -> Mapping[int, IndexedPassage]:
        """See `LexicalRows.get_by_number`."""
        query = f"SELECT {_ROWS_AS_JSON} FROM chunks WHERE set_id = ? AND seq IN"  # noqa: S608 - constants only
        # Parsed on the thread of the database, which hands the results of several searches to the event loop at once.
        return await self._database.read(lambda db: _parse_rows(_select_in_batches(db, query, collection_id, numbers)))

    async def get_by_chunk_id(self, collection_id: int, chunk_ids: Sequence[str]) -> Mapping[str, IndexedPassage]:
        """See `LexicalRows.get_by_chunk_id`."""
        query = f"SELECT {PASSAGE_COLUMNS} FROM chunks WHERE set_id = ? AND chunk_id IN"  # noqa: S608 - constants only
        rows = await self._database.read(lambda db: _select_in_batches(db, query, collection_id, chunk_ids))
        return {row[0]: from_row(row) for row in rows}

    async def get_documents(self, collection_id: int, numbers: Sequence[int]) -> Mapping[str, str]:
        """See `LexicalRows.get_documents`."""
        query = "SELECT chunk_id, document_id FROM chunks WHERE set_id = ? AND seq IN"
        return dict(await self._database.read(lambda db: _select_in_batches(db, query, collection_id, numbers)))

    async def sample(self, collection_id: int, limit: int) -> list[Passage]:
        """See `LexicalRows.sample`."""

        def unit(db: sqlite3.Connection) -> list[Any]:
            numbers = db.execute("SELECT seq FROM chunks WHERE set_id = ? ORDER BY seq", (collection_id,)).fetchall()
            query = f"SELECT {PASSAGE_COLUMNS} FROM chunks WHERE set_id = ? AND seq IN"  # noqa: S608 - constants only
            return _select_in_batches(db, query, collection_id, spread([row[0] for row in numbers], limit))

        return [from_row(row).passage for row in await self._database.read(unit)]

    async def delete(self, owner: str, collection: str, document_ids: Sequence[str]) -> PassageChange | None:
        """See `LexicalRows.delete`."""

        def unit(db: sqlite3.Connection) -> PassageChange | None:
            version = _read_version(db, owner, collection)
            if version is None:
                return None
            removed = _remove(db, version.id, "document_id", document_ids)
            return _record_change(db, owner, collection, removed, 0) if removed else PassageChange(version, ())

        return await self._database.write(unit)

    async def drop(self, owner: str, collection: str) -> None:
        """See `LexicalRows.drop`."""

        def unit(db: sqlite3.Connection) -> None:
            version = _read_version(db, owner, collection)
            if version is not None:
                db.execute("DELETE FROM chunks WHERE set_id = ?", (version.id,))
                db.execute("DELETE FROM chunk_sets WHERE id = ?", (version.id,))

        await self._database.write(unit)


def _parse_rows(found: Sequence[Any]) -> dict[int, IndexedPassage]:
    return {row[0]: from_row(row[1:]) for (rows,) in found for row in json.loads(rows)}


def _read_version(db: sqlite3.Connection, owner: str, collection: str) -> CollectionVersion | None:
    row = db.execute(_VERSION, (owner, collection)).fetchone()
    return None if row is None else CollectionVersion(*row)


def _create_collection(db: sqlite3.Connection, owner: str, collection: str) -> int:
    query = "INSERT INTO chunk_sets (owner, collection, changes) VALUES (?,?,?) RETURNING id"
    return int(db.execute(query, (owner, collection, generate_initial_changes())).fetchone()[0])


def _reserve_number(db: sqlite3.Connection) -> int:
    """A number above all that were ever given, also above those of removed passages: the time in microseconds.

    No process stores a passage in less than a microsecond.
    """
    last = int(db.execute("SELECT coalesce(max(seq), 0) FROM chunks").fetchone()[0])
    return max(last + 1, time.time_ns() // 1000)


def _record_change(
    db: sqlite3.Connection, owner: str, collection: str, removed: Sequence[int], stored: int
) -> PassageChange:
    db.execute("UPDATE chunk_sets SET changes = changes + 1 WHERE owner = ? AND collection = ?", (owner, collection))
    version = _read_version(db, owner, collection)
    assert version is not None
    return PassageChange(version, removed, stored)


def _remove(db: sqlite3.Connection, identity: int, column: str, values: Sequence[str]) -> list[int]:
    """Removes the passages with these values and returns their numbers."""
    query = f"SELECT seq FROM chunks WHERE set_id = ? AND {column} IN"  # noqa: S608 - constants only
    rows = _select_in_batches(db, query, identity, values)
    db.executemany("DELETE FROM chunks WHERE seq = ?", rows)
    return [row[0] for row in rows]


def _select_in_batches(db: sqlite3.Connection, query: str, *values: Any) -> list[Any]:
    """The rows of a query that ends in `IN`, for any number of values (the last of `values`)."""
    *fixed, wanted = values
    rows: list[Any] = []
    for start in range(0, len(wanted), _BATCH_SIZE):
        part = wanted[start : start + _BATCH_SIZE]
        rows += db.execute(f"{query} ({','.join('?' * len(part))})", [*fixed, *part]).fetchall()
    return rows
