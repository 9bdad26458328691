"""The rows of a `PostingsIndex` on PostgreSQL: the same terms as tsvectors behind one GIN index.

The vectors hold our own terms, already stemmed, and one more that names the collection, so that the index itself keeps
collections apart.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from agent.core.errors import StoreError
from agent.core.postgres import PostgresDatabase
from agent.knowledge.filters import Filter, facets, unknown_field
from agent.knowledge.lexical import Indexed, Passage, Selection
from agent.knowledge.lexical_sqlite import PASSAGE, as_indexed, as_lengths, as_postings, as_row, first_change
from agent.knowledge.postings import PostingsIndex
from agent.knowledge.postings_rows import REMOVED, CollectionVersion, Lengths, LexicalRows, Places, Postings

log = logging.getLogger(__name__)

Db = AsyncConnection[TupleRow]

_HOLDING = """
SELECT seq, title_terms, text_terms FROM chunks
WHERE set_id = %(set)s AND words @@ %(query)s::tsquery AND seq > %(after)s ORDER BY seq
"""


_STANDING = """
SELECT word FROM unnest(%s::text[], %s::text[]) AS asked(word, query)
WHERE EXISTS (SELECT 1 FROM chunks WHERE words @@ asked.query::tsquery)
"""


def postgres_index(database: PostgresDatabase) -> PostingsIndex:
    """A `LexicalIndex` on PostgreSQL."""
    rows: LexicalRows = PostgresLexicalRows(database)
    return PostingsIndex(rows)


class PostgresLexicalRows:
    """Implements `LexicalRows`. Whoever changes a collection holds its row until the commit."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def put(self, owner: str, collection: str, passages: Sequence[Indexed]) -> None:
        """See `LexicalRows.put`."""
        async with self._database.transaction() as db:
            row = await _one(
                db,
                "INSERT INTO chunk_sets (owner, collection, changes) VALUES (%s,%s,%s) "
                "ON CONFLICT (owner, collection) DO UPDATE SET changes = chunk_sets.changes + 1 RETURNING id",
                (owner, collection, first_change()),
            )
            assert row is not None
            identity = int(row[0])
            if await _remove(db, identity, "chunk_id", [held.passage.chunk_id for held in passages]):
                await db.execute("UPDATE chunk_sets SET changes = changes + %s WHERE id = %s", (REMOVED, identity))
            numbers = await _inserted(db, identity, passages)
            async with db.cursor() as batch:
                await batch.executemany(
                    "INSERT INTO chunk_facets (set_id, field, value, seq) VALUES (%s,%s,%s,%s)",
                    [
                        (identity, name, value, numbers[held.passage.chunk_id])
                        for held in passages
                        for name, value in facets(held.passage)
                    ],
                )

    async def version(self, owner: str, collection: str) -> CollectionVersion | None:
        """See `LexicalRows.version`."""
        async with self._database.transaction() as db:
            return await _version(db, owner, collection)

    async def load(
        self, version: CollectionVersion, after: Mapping[str, int], lengths_after: int | None
    ) -> tuple[Lengths | None, dict[str, Postings]] | None:
        """See `LexicalRows.load`."""
        if 0 in after.values():
            await self._tidy()
        async with self._database.transaction() as db:
            # One snapshot for all queries: what is counted is what is read.
            await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            row = await _one(db, "SELECT changes FROM chunk_sets WHERE id = %s", (version.id,))
            if row is None or row[0] != version.changes:
                return None
            lengths = None if lengths_after is None else await _lengths(db, version.id, lengths_after)
            found: dict[str, Postings] = {}
            for last in set(after.values()):
                found |= await _postings(db, version.id, [word for word in after if after[word] == last], last)
            return lengths, found

    async def _tidy(self) -> None:
        """Sort what was added lately into the index. PostgreSQL leaves that to its vacuum, and reads through all of it
        until then, or through the whole table: a first search among 10,000 fresh passages took a second, and takes a
        tenth."""
        try:
            async with self._database.transaction() as db:
                await db.execute("SELECT gin_clean_pending_list('chunks_words')")
        except StoreError as error:  # a role that does not own the index, a server that only reads
            log.info("searches are slower until PostgreSQL's vacuum has run: %s", error.message)

    async def standing(self, collection_id: int, words: Sequence[str]) -> frozenset[str]:
        """See `LexicalRows.standing`."""
        asked = [(word, f"'{_mark(collection_id)}' & '{word}'") for word in words]
        async with self._database.transaction() as db:
            rows = await _all(db, _STANDING, ([word for word, _ in asked], [query for _, query in asked]))
        return frozenset(str(row[0]) for row in rows)

    async def filtered(self, collection_id: int, filters: Sequence[Filter]) -> Places:
        """See `LexicalRows.filtered`."""
        async with self._database.transaction() as db:
            return np.array(sorted(await _allowed(db, collection_id, filters)), np.int64)

    async def by_number(self, collection_id: int, numbers: Sequence[int]) -> dict[int, Indexed]:
        """See `LexicalRows.by_number`."""
        query = f"SELECT seq, {PASSAGE} FROM chunks WHERE set_id = %s AND seq = ANY(%s)"  # noqa: S608 - constants
        async with self._database.transaction() as db:
            rows = await _all(db, query, (collection_id, list(numbers)))
        return {int(row[0]): as_indexed(row[1:]) for row in rows}

    async def by_chunk(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, Indexed]:
        """See `LexicalRows.by_chunk`."""
        query = f"SELECT {PASSAGE} FROM chunks WHERE set_id = %s AND chunk_id = ANY(%s)"  # noqa: S608 - constants
        async with self._database.transaction() as db:
            rows = await _all(db, query, (collection_id, list(chunk_ids)))
        return {str(row[0]): as_indexed(row) for row in rows}

    async def documents(self, collection_id: int, filters: Sequence[Filter]) -> Selection:
        """See `LexicalRows.documents`."""
        async with self._database.transaction() as db:
            total = await _one(db, "SELECT count(*) FROM chunks WHERE set_id = %s", (collection_id,))
            allowed = sorted(await _allowed(db, collection_id, filters))
            rows = await _all(db, "SELECT chunk_id, document_id FROM chunks WHERE seq = ANY(%s)", (allowed,))
        return Selection({str(row[0]): str(row[1]) for row in rows}, int(total[0]) if total else 0)

    async def sample(self, collection_id: int, limit: int) -> list[Passage]:
        """See `LexicalRows.sample`."""
        async with self._database.transaction() as db:
            rows = await _all(db, "SELECT seq FROM chunks WHERE set_id = %s ORDER BY seq", (collection_id,))
            chosen = [row[0] for row in rows[:: max(1, len(rows) // max(1, limit))][:limit]]
            query = f"SELECT {PASSAGE} FROM chunks WHERE seq = ANY(%s) ORDER BY seq"  # noqa: S608 - constants
            found = await _all(db, query, (chosen,))
        return [as_indexed(row).passage for row in found]

    async def delete(self, owner: str, collection: str, document_ids: Sequence[str]) -> int:
        """See `LexicalRows.delete`."""
        async with self._database.transaction() as db:
            row = await _one(
                db,
                "UPDATE chunk_sets SET changes = changes + %s WHERE owner = %s AND collection = %s RETURNING id",
                (REMOVED, owner, collection),
            )
            return 0 if row is None else await _remove(db, int(row[0]), "document_id", document_ids)

    async def drop(self, owner: str, collection: str) -> None:
        """See `LexicalRows.drop`."""
        async with self._database.transaction() as db:
            row = await _one(
                db, "DELETE FROM chunk_sets WHERE owner = %s AND collection = %s RETURNING id", (owner, collection)
            )
            if row is not None:
                await db.execute("DELETE FROM chunk_facets WHERE set_id = %s", (row[0],))
                await db.execute("DELETE FROM chunks WHERE set_id = %s", (row[0],))


async def _version(db: Db, owner: str, collection: str) -> CollectionVersion | None:
    query = "SELECT id, changes FROM chunk_sets WHERE owner = %s AND collection = %s"
    row = await _one(db, query, (owner, collection))
    return None if row is None else CollectionVersion(int(row[0]), int(row[1]))


async def _inserted(db: Db, identity: int, passages: Sequence[Indexed]) -> dict[str, int]:
    """Insert them; their numbers by chunk id."""
    async with db.cursor() as batch:
        await batch.executemany(
            f"INSERT INTO chunks (set_id, title_count, text_count, {PASSAGE}, words) "  # noqa: S608 - constants
            "VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,array_to_tsvector(%s))",
            [
                (identity, len(held.title_terms), len(held.text_terms), *as_row(held), _words(identity, held))
                for held in passages
            ],
        )
    ids = [held.passage.chunk_id for held in passages]
    rows = await _all(db, "SELECT chunk_id, seq FROM chunks WHERE set_id = %s AND chunk_id = ANY(%s)", (identity, ids))
    return {str(row[0]): int(row[1]) for row in rows}


def _words(identity: int, held: Indexed) -> list[str]:
    """The lexemes of a passage. PostgreSQL's lexemes end at 2 kB; no term is as long as that."""
    return sorted({_mark(identity), *held.title_terms, *held.text_terms})


def _mark(identity: int) -> str:
    """The lexeme of a collection: no term holds a colon."""
    return f"set:{identity}"


async def _remove(db: Db, identity: int, column: str, values: Sequence[str]) -> int:
    removed = await _all(
        db,
        f"DELETE FROM chunks WHERE set_id = %s AND {column} = ANY(%s) RETURNING seq",  # noqa: S608 - constants
        (identity, list(values)),
    )
    await db.execute("DELETE FROM chunk_facets WHERE seq = ANY(%s)", ([row[0] for row in removed],))
    return len(removed)


async def _lengths(db: Db, identity: int, after: int) -> Lengths:
    query = "SELECT seq, title_count, text_count FROM chunks WHERE set_id = %s AND seq > %s ORDER BY seq"
    return as_lengths(await _all(db, query, (identity, after)))


async def _postings(db: Db, identity: int, words: Sequence[str], after: int) -> dict[str, Postings]:
    """Each passage that holds one of the words is read once, and its words are counted here: the index of PostgreSQL
    knows no counts, and to count in SQL takes a pass through the texts for every word."""
    held = " | ".join(f"'{word}'" for word in words)  # terms hold letters and digits only
    values: dict[str, object] = {"set": identity, "query": f"'{_mark(identity)}' & ({held})", "after": after}
    return await asyncio.to_thread(_counted, words, await _all(db, _HOLDING, values))


def _counted(words: Sequence[str], rows: Sequence[TupleRow]) -> dict[str, Postings]:
    wanted = frozenset(words)
    counts: dict[str, list[tuple[int, int, int]]] = {word: [] for word in words}
    for number, title, text in rows:
        titles = Counter(filter(wanted.__contains__, title.split()))
        texts = Counter(filter(wanted.__contains__, text.split()))
        for word in titles.keys() | texts.keys():
            counts[word].append((number, titles[word], texts[word]))
    return {word: as_postings(held) for word, held in counts.items()}


async def _allowed(db: Db, identity: int, filters: Sequence[Filter]) -> set[int]:
    sets = [await _holding(db, identity, one) for one in filters]
    return set.intersection(*sets) if sets else set()


async def _holding(db: Db, identity: int, one: Filter) -> set[int]:
    query = "SELECT seq FROM chunk_facets WHERE set_id = %s AND field = %s AND value = ANY(%s)"
    found = {int(row[0]) for row in await _all(db, query, (identity, one.field, list(one.values)))}
    if not found:
        rows = await _all(db, "SELECT DISTINCT field FROM chunk_facets WHERE set_id = %s", (identity,))
        fields = [str(row[0]) for row in rows]
        if fields and one.field not in fields:
            raise unknown_field(one.field, fields)
    return found


async def _one(db: Db, query: str, values: Sequence[object]) -> TupleRow | None:
    return await (await db.execute(query.encode(), values)).fetchone()


async def _all(db: Db, query: str, values: Sequence[object] | dict[str, object]) -> list[TupleRow]:
    return await (await db.execute(query.encode(), values)).fetchall()
