"""The passages of a `TantivyIndex` on PostgreSQL. Every machine has an index of its own in its data folder."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from agent.core.event_loop import LoopTurns
from agent.storage.postgres import PostgresDatabase
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
from gateway.features.documents.engine.search.tantivy_index import INDEX_FOLDER, INLINE_PASSAGES, TantivyIndex

Db = AsyncConnection[TupleRow]

_COPY = f"COPY chunks (set_id, {PASSAGE_COLUMNS}) FROM STDIN"
_LAST = "(SELECT coalesce(max(seq), 0) FROM chunks WHERE set_id = chunk_sets.id)"


def create_postgres_index(database: PostgresDatabase, data_dir: Path) -> TantivyIndex:
    """A `LexicalIndex` on PostgreSQL, with its index in the data folder."""
    rows: LexicalRows = PostgresLexicalRows(database)
    return TantivyIndex(rows, data_dir / INDEX_FOLDER)


class PostgresLexicalRows:
    """Implements `LexicalRows`.

    A writer locks the row of the collection until its commit, so that passages become visible in the order of their
    numbers.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._turns = LoopTurns()

    async def put(self, owner: str, collection: str, passages: Sequence[IndexedPassage]) -> PassageChange:
        """See `LexicalRows.put`."""
        async with self._database.transaction() as db:
            row = await _fetch_one(
                db,
                "INSERT INTO chunk_sets (owner, collection, changes) VALUES (%s,%s,%s) "
                "ON CONFLICT (owner, collection) DO UPDATE SET changes = chunk_sets.changes + 1 RETURNING id",
                (owner, collection, generate_initial_changes()),
            )
            assert row is not None
            removed = await _remove(
                db, int(row[0]), "chunk_id", [stored_passage.passage.chunk_id for stored_passage in passages]
            )
            async with db.cursor() as cursor, cursor.copy(_COPY) as copy:
                for stored_passage in passages:
                    await copy.write_row((row[0], *to_row(stored_passage)))
            version = await _read_version(db, owner, collection)
            assert version is not None
            return PassageChange(version, removed, len(passages))

    async def get_version(self, owner: str, collection: str) -> CollectionVersion | None:
        """See `LexicalRows.get_version`."""
        async with self._database.begin_single_query() as db:
            return await _read_version(db, owner, collection)

    async def list_names(self) -> frozenset[str]:
        """See `LexicalRows.list_names`."""
        async with self._database.begin_single_query() as db:
            rows = await _fetch_all(db, "SELECT id, changes FROM chunk_sets", ())
        return frozenset(CollectionVersion(int(row[0]), int(row[1]), 0).name for row in rows)

    async def read_after(self, collection_id: int, number: int, limit: int) -> Mapping[int, IndexedPassage]:
        """See `LexicalRows.read_after`."""
        query = f"SELECT seq, {PASSAGE_COLUMNS} FROM chunks WHERE set_id = %s AND seq > %s ORDER BY seq LIMIT %s"  # noqa: S608 - constants
        async with self._database.begin_single_query() as db:
            rows = await _fetch_all(db, query, (collection_id, number, limit))
        return await asyncio.to_thread(_by_number, rows)

    async def get_by_number(self, collection_id: int, numbers: Sequence[int]) -> Mapping[int, IndexedPassage]:
        """See `LexicalRows.get_by_number`."""
        query = f"SELECT seq, {PASSAGE_COLUMNS} FROM chunks WHERE set_id = %s AND seq = ANY(%s)"  # noqa: S608 - constants
        async with self._database.begin_single_query() as db:
            rows = await _fetch_all(db, query, (collection_id, list(numbers)))
        if len(rows) <= INLINE_PASSAGES:
            async with self._turns.take():
                return _by_number(rows)
        return await asyncio.to_thread(_by_number, rows)

    async def get_by_chunk_id(self, collection_id: int, chunk_ids: Sequence[str]) -> Mapping[str, IndexedPassage]:
        """See `LexicalRows.get_by_chunk_id`."""
        query = f"SELECT {PASSAGE_COLUMNS} FROM chunks WHERE set_id = %s AND chunk_id = ANY(%s)"  # noqa: S608 - constants
        async with self._database.begin_single_query() as db:
            rows = await _fetch_all(db, query, (collection_id, list(chunk_ids)))
        return {str(row[0]): from_row(row) for row in rows}

    async def get_documents(self, collection_id: int, numbers: Sequence[int]) -> Mapping[str, str]:
        """See `LexicalRows.get_documents`."""
        query = "SELECT chunk_id, document_id FROM chunks WHERE set_id = %s AND seq = ANY(%s)"
        async with self._database.begin_single_query() as db:
            rows = await _fetch_all(db, query, (collection_id, list(numbers)))
        return {str(row[0]): str(row[1]) for row in rows}

    async def sample(self, collection_id: int, limit: int) -> list[Passage]:
        """See `LexicalRows.sample`."""
        async with self._database.transaction() as db:
            rows = await _fetch_all(db, "SELECT seq FROM chunks WHERE set_id = %s ORDER BY seq", (collection_id,))
            query = f"SELECT {PASSAGE_COLUMNS} FROM chunks WHERE seq = ANY(%s) ORDER BY seq"  # noqa: S608 - constants
            samples = await _fetch_all(db, query, (spread([row[0] for row in rows], limit),))
        return [from_row(row).passage for row in samples]

    async def delete(self, owner: str, collection: str, document_ids: Sequence[str]) -> PassageChange | None:
        """See `LexicalRows.delete`."""
        async with self._database.transaction() as db:
            row = await _fetch_one(
                db,
                "UPDATE chunk_sets SET changes = changes + 1 WHERE owner = %s AND collection = %s RETURNING id",
                (owner, collection),
            )
            removed = [] if row is None else await _remove(db, int(row[0]), "document_id", document_ids)
            version = await _read_version(db, owner, collection)
        return None if version is None else PassageChange(version, removed)

    async def drop(self, owner: str, collection: str) -> None:
        """See `LexicalRows.drop`."""
        async with self._database.transaction() as db:
            row = await _fetch_one(
                db, "DELETE FROM chunk_sets WHERE owner = %s AND collection = %s RETURNING id", (owner, collection)
            )
            if row is not None:
                await db.execute("DELETE FROM chunks WHERE set_id = %s", (row[0],))


async def _read_version(db: Db, owner: str, collection: str) -> CollectionVersion | None:
    query = f"SELECT id, changes, {_LAST} FROM chunk_sets WHERE owner = %s AND collection = %s"  # noqa: S608 - constants
    row = await _fetch_one(db, query, (owner, collection))
    return None if row is None else CollectionVersion(int(row[0]), int(row[1]), int(row[2]))


async def _remove(db: Db, identity: int, column: str, values: Sequence[str]) -> list[int]:
    query = f"DELETE FROM chunks WHERE set_id = %s AND {column} = ANY(%s) RETURNING seq"  # noqa: S608 - constants
    return [int(row[0]) for row in await _fetch_all(db, query, (identity, list(values)))]


def _by_number(rows: Sequence[TupleRow]) -> dict[int, IndexedPassage]:
    return {int(row[0]): from_row(row[1:]) for row in rows}


async def _fetch_one(db: Db, query: str, values: Sequence[object]) -> TupleRow | None:
    return await (await db.execute(query.encode(), values)).fetchone()


async def _fetch_all(db: Db, query: str, values: Sequence[object]) -> list[TupleRow]:
    return await (await db.execute(query.encode(), values)).fetchall()
