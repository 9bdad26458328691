"""The rows of a `PostingsIndex` on PostgreSQL: the terms as tsvectors behind one GIN index.

The tsvectors contain our stemmed terms and one lexeme that names the collection, so that the index keeps collections
apart.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from agent.core.errors import StoreError
from agent.search.filters import Filter, list_facets, make_unknown_field_error
from agent.search.lexical import IndexedPassage, Passage, Selection
from agent.search.lexical_sqlite import (
    PASSAGE_COLUMNS,
    build_lengths,
    build_postings,
    from_row,
    generate_initial_changes,
    to_row,
)
from agent.search.postings import PostingsIndex
from agent.search.postings_rows import (
    REMOVAL_INCREMENT,
    CollectionVersion,
    Lengths,
    LexicalRows,
    PassageNumbers,
    Postings,
)
from agent.storage.postgres import PostgresDatabase

log = logging.getLogger(__name__)

Db = AsyncConnection[TupleRow]

_SELECT_BY_TERMS = """
SELECT seq, title_terms, text_terms FROM chunks
WHERE set_id = %(set)s AND words @@ %(query)s::tsquery AND seq > %(after)s ORDER BY seq
"""


_SELECT_EXISTING_TERMS = """
SELECT word FROM unnest(%s::text[], %s::text[]) AS asked(word, query)
WHERE EXISTS (SELECT 1 FROM chunks WHERE words @@ asked.query::tsquery)
"""


def create_postgres_index(database: PostgresDatabase) -> PostingsIndex:
    """Returns a `LexicalIndex` on PostgreSQL."""
    rows: LexicalRows = PostgresLexicalRows(database)
    return PostingsIndex(rows)


class PostgresLexicalRows:
    """Implements `LexicalRows`. A writer locks the row of the collection until its commit."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def put(self, owner: str, collection: str, passages: Sequence[IndexedPassage]) -> None:
        """See `LexicalRows.put`."""
        async with self._database.transaction() as db:
            row = await _fetch_one(
                db,
                "INSERT INTO chunk_sets (owner, collection, changes) VALUES (%s,%s,%s) "
                "ON CONFLICT (owner, collection) DO UPDATE SET changes = chunk_sets.changes + 1 RETURNING id",
                (owner, collection, generate_initial_changes()),
            )
            assert row is not None
            identity = int(row[0])
            if await _remove(db, identity, "chunk_id", [held.passage.chunk_id for held in passages]):
                await db.execute(
                    "UPDATE chunk_sets SET changes = changes + %s WHERE id = %s", (REMOVAL_INCREMENT, identity)
                )
            numbers = await _insert(db, identity, passages)
            async with db.cursor() as batch:
                await batch.executemany(
                    "INSERT INTO chunk_facets (set_id, field, value, seq) VALUES (%s,%s,%s,%s)",
                    [
                        (identity, name, value, numbers[held.passage.chunk_id])
                        for held in passages
                        for name, value in list_facets(held.passage)
                    ],
                )

    async def get_version(self, owner: str, collection: str) -> CollectionVersion | None:
        """See `LexicalRows.version`."""
        async with self._database.transaction() as db:
            return await _read_version(db, owner, collection)

    async def load(
        self, version: CollectionVersion, after: Mapping[str, int], lengths_after: int | None
    ) -> tuple[Lengths | None, dict[str, Postings]] | None:
        """See `LexicalRows.load`."""
        if 0 in after.values():
            await self._flush_pending_list()
        async with self._database.transaction() as db:
            # One snapshot for all queries, so that counts and rows agree.
            await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            row = await _fetch_one(db, "SELECT changes FROM chunk_sets WHERE id = %s", (version.id,))
            if row is None or row[0] != version.changes:
                return None
            lengths = None if lengths_after is None else await _read_lengths(db, version.id, lengths_after)
            found: dict[str, Postings] = {}
            for last in set(after.values()):
                found |= await _read_postings(db, version.id, [word for word in after if after[word] == last], last)
            return lengths, found

    async def _flush_pending_list(self) -> None:
        """Merges recently added rows into the GIN index.

        PostgreSQL leaves that to vacuum and scans the pending list until then: a first search among 10,000 new passages
        took 1 s, and takes 0.1 s after this.
        """
        try:
            async with self._database.transaction() as db:
                await db.execute("SELECT gin_clean_pending_list('chunks_words')")
        except StoreError as error:  # the role does not own the index, or the server is read-only
            log.info("searches are slower until PostgreSQL has run vacuum: %s", error.message)

    async def find_existing_terms(self, collection_id: int, words: Sequence[str]) -> frozenset[str]:
        """See `LexicalRows.standing`."""
        asked = [(word, f"'{_make_collection_lexeme(collection_id)}' & '{word}'") for word in words]
        async with self._database.transaction() as db:
            rows = await _fetch_all(
                db, _SELECT_EXISTING_TERMS, ([word for word, _ in asked], [query for _, query in asked])
            )
        return frozenset(str(row[0]) for row in rows)

    async def list_filtered_numbers(self, collection_id: int, filters: Sequence[Filter]) -> PassageNumbers:
        """See `LexicalRows.filtered`."""
        async with self._database.transaction() as db:
            return np.array(sorted(await _find_allowed(db, collection_id, filters)), np.int64)

    async def get_by_number(self, collection_id: int, numbers: Sequence[int]) -> dict[int, IndexedPassage]:
        """See `LexicalRows.by_number`."""
        query = f"SELECT seq, {PASSAGE_COLUMNS} FROM chunks WHERE set_id = %s AND seq = ANY(%s)"  # noqa: S608 - constants
        async with self._database.transaction() as db:
            rows = await _fetch_all(db, query, (collection_id, list(numbers)))
        return {int(row[0]): from_row(row[1:]) for row in rows}

    async def get_by_chunk_id(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, IndexedPassage]:
        """See `LexicalRows.by_chunk`."""
        query = f"SELECT {PASSAGE_COLUMNS} FROM chunks WHERE set_id = %s AND chunk_id = ANY(%s)"  # noqa: S608 - constants
        async with self._database.transaction() as db:
            rows = await _fetch_all(db, query, (collection_id, list(chunk_ids)))
        return {str(row[0]): from_row(row) for row in rows}

    async def select_documents(self, collection_id: int, filters: Sequence[Filter]) -> Selection:
        """See `LexicalRows.documents`."""
        async with self._database.transaction() as db:
            total = await _fetch_one(db, "SELECT count(*) FROM chunks WHERE set_id = %s", (collection_id,))
            allowed = sorted(await _find_allowed(db, collection_id, filters))
            rows = await _fetch_all(db, "SELECT chunk_id, document_id FROM chunks WHERE seq = ANY(%s)", (allowed,))
        return Selection({str(row[0]): str(row[1]) for row in rows}, int(total[0]) if total else 0)

    async def sample(self, collection_id: int, limit: int) -> list[Passage]:
        """See `LexicalRows.sample`."""
        async with self._database.transaction() as db:
            rows = await _fetch_all(db, "SELECT seq FROM chunks WHERE set_id = %s ORDER BY seq", (collection_id,))
            chosen = [row[0] for row in rows[:: max(1, len(rows) // max(1, limit))][:limit]]
            query = f"SELECT {PASSAGE_COLUMNS} FROM chunks WHERE seq = ANY(%s) ORDER BY seq"  # noqa: S608 - constants
            found = await _fetch_all(db, query, (chosen,))
        return [from_row(row).passage for row in found]

    async def delete(self, owner: str, collection: str, document_ids: Sequence[str]) -> int:
        """See `LexicalRows.delete`."""
        async with self._database.transaction() as db:
            row = await _fetch_one(
                db,
                "UPDATE chunk_sets SET changes = changes + %s WHERE owner = %s AND collection = %s RETURNING id",
                (REMOVAL_INCREMENT, owner, collection),
            )
            return 0 if row is None else await _remove(db, int(row[0]), "document_id", document_ids)

    async def drop(self, owner: str, collection: str) -> None:
        """See `LexicalRows.drop`."""
        async with self._database.transaction() as db:
            row = await _fetch_one(
                db, "DELETE FROM chunk_sets WHERE owner = %s AND collection = %s RETURNING id", (owner, collection)
            )
            if row is not None:
                await db.execute("DELETE FROM chunk_facets WHERE set_id = %s", (row[0],))
                await db.execute("DELETE FROM chunks WHERE set_id = %s", (row[0],))


async def _read_version(db: Db, owner: str, collection: str) -> CollectionVersion | None:
    query = "SELECT id, changes FROM chunk_sets WHERE owner = %s AND collection = %s"
    row = await _fetch_one(db, query, (owner, collection))
    return None if row is None else CollectionVersion(int(row[0]), int(row[1]))


async def _insert(db: Db, identity: int, passages: Sequence[IndexedPassage]) -> dict[str, int]:
    """Inserts passages and returns their row numbers by chunk id."""
    async with db.cursor() as batch:
        await batch.executemany(
            f"INSERT INTO chunks (set_id, title_count, text_count, {PASSAGE_COLUMNS}, words) "  # noqa: S608 - constants
            "VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,array_to_tsvector(%s))",
            [
                (identity, len(held.title_terms), len(held.text_terms), *to_row(held), _list_lexemes(identity, held))
                for held in passages
            ],
        )
    ids = [held.passage.chunk_id for held in passages]
    rows = await _fetch_all(
        db, "SELECT chunk_id, seq FROM chunks WHERE set_id = %s AND chunk_id = ANY(%s)", (identity, ids)
    )
    return {str(row[0]): int(row[1]) for row in rows}


def _list_lexemes(identity: int, held: IndexedPassage) -> list[str]:
    """Returns the lexemes of a passage. A lexeme can have 2 kB, and no term is that long."""
    return sorted({_make_collection_lexeme(identity), *held.title_terms, *held.text_terms})


def _make_collection_lexeme(identity: int) -> str:
    """Returns the lexeme of a collection. It has a colon, which no term has."""
    return f"set:{identity}"


async def _remove(db: Db, identity: int, column: str, values: Sequence[str]) -> int:
    removed = await _fetch_all(
        db,
        f"DELETE FROM chunks WHERE set_id = %s AND {column} = ANY(%s) RETURNING seq",  # noqa: S608 - constants
        (identity, list(values)),
    )
    await db.execute("DELETE FROM chunk_facets WHERE seq = ANY(%s)", ([row[0] for row in removed],))
    return len(removed)


async def _read_lengths(db: Db, identity: int, after: int) -> Lengths:
    query = "SELECT seq, title_count, text_count FROM chunks WHERE set_id = %s AND seq > %s ORDER BY seq"
    return build_lengths(await _fetch_all(db, query, (identity, after)))


async def _read_postings(db: Db, identity: int, words: Sequence[str], after: int) -> dict[str, Postings]:
    """Reads each matching passage once and counts its terms in Python.

    The index has no counts, and counting in SQL would scan the texts once per term.
    """
    held = " | ".join(f"'{word}'" for word in words)  # terms consist of letters and digits only
    values: dict[str, object] = {
        "set": identity,
        "query": f"'{_make_collection_lexeme(identity)}' & ({held})",
        "after": after,
    }
    return await asyncio.to_thread(_count_terms, words, await _fetch_all(db, _SELECT_BY_TERMS, values))


def _count_terms(words: Sequence[str], rows: Sequence[TupleRow]) -> dict[str, Postings]:
    wanted = frozenset(words)
    counts: dict[str, list[tuple[int, int, int]]] = {word: [] for word in words}
    for number, title, text in rows:
        titles = Counter(filter(wanted.__contains__, title.split()))
        texts = Counter(filter(wanted.__contains__, text.split()))
        for word in titles.keys() | texts.keys():
            counts[word].append((number, titles[word], texts[word]))
    return {word: build_postings(held) for word, held in counts.items()}


async def _find_allowed(db: Db, identity: int, filters: Sequence[Filter]) -> set[int]:
    sets = [await _find_by_facet(db, identity, one) for one in filters]
    return set.intersection(*sets) if sets else set()


async def _find_by_facet(db: Db, identity: int, one: Filter) -> set[int]:
    query = "SELECT seq FROM chunk_facets WHERE set_id = %s AND field = %s AND value = ANY(%s)"
    found = {int(row[0]) for row in await _fetch_all(db, query, (identity, one.field, list(one.values)))}
    if not found:
        rows = await _fetch_all(db, "SELECT DISTINCT field FROM chunk_facets WHERE set_id = %s", (identity,))
        fields = [str(row[0]) for row in rows]
        if fields and one.field not in fields:
            raise make_unknown_field_error(one.field, fields)
    return found


async def _fetch_one(db: Db, query: str, values: Sequence[object]) -> TupleRow | None:
    return await (await db.execute(query.encode(), values)).fetchone()


async def _fetch_all(db: Db, query: str, values: Sequence[object] | dict[str, object]) -> list[TupleRow]:
    return await (await db.execute(query.encode(), values)).fetchall()
