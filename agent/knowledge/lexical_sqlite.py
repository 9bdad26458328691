"""The rows of a `PostingsIndex` in the store's SQLite file: an FTS5 index a collection.

FTS5 gets our own terms, already stemmed, and keeps them as they are; it holds no text. A table each keeps collections
apart: none pays for another's size, and no rarity of a word tells of another owner's documents.
"""

import json
import secrets
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from agent.core.codec import whole
from agent.core.sqlite import Database
from agent.knowledge.filters import Filter, facets, unknown_field
from agent.knowledge.lexical import Indexed, Passage, Selection
from agent.knowledge.postings import PostingsIndex
from agent.knowledge.postings_rows import REMOVED, CollectionVersion, Lengths, LexicalRows, Places, Postings

PASSAGE = "chunk_id, document_id, title, text, metadata, title_terms, text_terms"
_AT_ONCE = 500
"""Parameters of one statement; old SQLite takes a thousand."""


def sqlite_index(database: Database) -> PostingsIndex:
    """A `LexicalIndex` in the store's file."""
    rows: LexicalRows = SqliteLexicalRows(database)
    return PostingsIndex(rows)


class SqliteLexicalRows:
    """Implements `LexicalRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, owner: str, collection: str, passages: Sequence[Indexed]) -> None:
        """See `LexicalRows.put`."""

        def unit(db: sqlite3.Connection) -> None:
            version = _version(db, owner, collection)
            identity = version.id if version is not None else _made(db, owner, collection)
            removed = _remove(db, identity, "chunk_id", [held.passage.chunk_id for held in passages])
            _changed(db, identity, removed)
            first = db.execute("SELECT coalesce(max(seq), 0) + 1 FROM chunks").fetchone()[0]
            _insert(db, identity, list(enumerate(passages, first)))

        await self._database.run(unit)

    async def version(self, owner: str, collection: str) -> CollectionVersion | None:
        """See `LexicalRows.version`."""
        return await self._database.read(lambda db: _version(db, owner, collection))

    async def load(
        self, version: CollectionVersion, after: Mapping[str, int], lengths_after: int | None
    ) -> tuple[Lengths | None, dict[str, Postings]] | None:
        """See `LexicalRows.load`."""

        def unit(db: sqlite3.Connection) -> tuple[Lengths | None, dict[str, Postings]] | None:
            row = db.execute("SELECT changes FROM chunk_sets WHERE id = ?", (version.id,)).fetchone()
            if row is None or row[0] != version.changes:
                return None
            lengths = None if lengths_after is None else _lengths(db, version.id, lengths_after)
            return lengths, {word: _postings(db, version.id, word, last) for word, last in after.items()}

        return await self._database.read(unit)

    async def standing(self, collection_id: int, words: Sequence[str]) -> frozenset[str]:
        """See `LexicalRows.standing`."""
        query = f"SELECT 1 FROM chunk_vocabulary_{collection_id} WHERE term = ? LIMIT 1"  # noqa: S608 - a number

        def unit(db: sqlite3.Connection) -> frozenset[str]:
            if db.execute("SELECT 1 FROM chunk_sets WHERE id = ?", (collection_id,)).fetchone() is None:
                return frozenset()  # dropped meanwhile, with its tables
            return frozenset(word for word in words if db.execute(query, (word,)).fetchone() is not None)

        return await self._database.read(unit)

    async def filtered(self, collection_id: int, filters: Sequence[Filter]) -> Places:
        """See `LexicalRows.filtered`."""
        return await self._database.read(lambda db: np.array(sorted(_allowed(db, collection_id, filters)), np.int64))

    async def by_number(self, collection_id: int, numbers: Sequence[int]) -> dict[int, Indexed]:
        """See `LexicalRows.by_number`."""
        query = f"SELECT seq, {PASSAGE} FROM chunks WHERE set_id = ? AND seq IN"  # noqa: S608 - constants only
        rows = await self._database.read(lambda db: _chosen(db, query, collection_id, numbers))
        return {row[0]: as_indexed(row[1:]) for row in rows}

    async def by_chunk(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, Indexed]:
        """See `LexicalRows.by_chunk`."""
        query = f"SELECT {PASSAGE} FROM chunks WHERE set_id = ? AND chunk_id IN"  # noqa: S608 - constants only
        rows = await self._database.read(lambda db: _chosen(db, query, collection_id, chunk_ids))
        return {row[0]: as_indexed(row) for row in rows}

    async def documents(self, collection_id: int, filters: Sequence[Filter]) -> Selection:
        """See `LexicalRows.documents`."""

        def unit(db: sqlite3.Connection) -> Selection:
            total = db.execute("SELECT count(*) FROM chunks WHERE set_id = ?", (collection_id,)).fetchone()[0]
            query = "SELECT chunk_id, document_id FROM chunks WHERE set_id = ? AND seq IN"
            rows = _chosen(db, query, collection_id, sorted(_allowed(db, collection_id, filters)))
            return Selection(dict(rows), total)

        return await self._database.read(unit)

    async def sample(self, collection_id: int, limit: int) -> list[Passage]:
        """See `LexicalRows.sample`."""

        def unit(db: sqlite3.Connection) -> list[Any]:
            numbers = db.execute("SELECT seq FROM chunks WHERE set_id = ? ORDER BY seq", (collection_id,)).fetchall()
            chosen = [row[0] for row in numbers[:: max(1, len(numbers) // max(1, limit))][:limit]]
            query = f"SELECT {PASSAGE} FROM chunks WHERE set_id = ? AND seq IN"  # noqa: S608 - constants only
            return _chosen(db, query, collection_id, chosen)

        return [as_indexed(row).passage for row in await self._database.read(unit)]

    async def delete(self, owner: str, collection: str, document_ids: Sequence[str]) -> int:
        """See `LexicalRows.delete`."""

        def unit(db: sqlite3.Connection) -> int:
            version = _version(db, owner, collection)
            if version is None:
                return 0
            count = _remove(db, version.id, "document_id", document_ids)
            if count:
                _changed(db, version.id, count)
            return count

        return await self._database.run(unit)

    async def drop(self, owner: str, collection: str) -> None:
        """See `LexicalRows.drop`."""

        def unit(db: sqlite3.Connection) -> None:
            version = _version(db, owner, collection)
            if version is not None:
                db.execute(f"DROP TABLE chunk_vocabulary_{version.id}")
                db.execute(f"DROP TABLE chunk_words_{version.id}")
                db.execute("DELETE FROM chunk_facets WHERE set_id = ?", (version.id,))
                db.execute("DELETE FROM chunks WHERE set_id = ?", (version.id,))
                db.execute("DELETE FROM chunk_sets WHERE id = ?", (version.id,))

        await self._database.run(unit)


def _version(db: sqlite3.Connection, owner: str, collection: str) -> CollectionVersion | None:
    query = "SELECT id, changes FROM chunk_sets WHERE owner = ? AND collection = ?"
    row = db.execute(query, (owner, collection)).fetchone()
    return None if row is None else CollectionVersion(*row)


def _changed(db: sqlite3.Connection, identity: int, removed: int) -> None:
    db.execute("UPDATE chunk_sets SET changes = changes + ? WHERE id = ?", (REMOVED if removed else 1, identity))


def _made(db: sqlite3.Connection, owner: str, collection: str) -> int:
    identity = int(
        db.execute(
            "INSERT INTO chunk_sets (owner, collection, changes) VALUES (?,?,?) RETURNING id",
            (owner, collection, first_change()),
        ).fetchone()[0]
    )
    # The ascii tokenizer leaves everything beyond ASCII as it is. Lengths of rows are kept with the chunks.
    db.execute(
        f"CREATE VIRTUAL TABLE chunk_words_{identity} USING fts5(title, text, content='', columnsize=0, "
        "tokenize='ascii')"
    )
    db.execute(f"CREATE VIRTUAL TABLE chunk_vocabulary_{identity} USING fts5vocab(chunk_words_{identity}, instance)")
    return identity


def _insert(db: sqlite3.Connection, identity: int, numbered: Sequence[tuple[int, Indexed]]) -> None:
    db.executemany(
        f"INSERT INTO chunks (seq, set_id, title_count, text_count, {PASSAGE}) "  # noqa: S608 - constants only
        "VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        [(seq, identity, len(held.title_terms), len(held.text_terms), *as_row(held)) for seq, held in numbered],
    )
    db.executemany(
        f"INSERT INTO chunk_words_{identity} (rowid, title, text) VALUES (?,?,?)",  # noqa: S608 - a number
        [(seq, " ".join(held.title_terms), " ".join(held.text_terms)) for seq, held in numbered],
    )
    db.executemany(
        "INSERT INTO chunk_facets (set_id, field, value, seq) VALUES (?,?,?,?)",
        [(identity, name, value, seq) for seq, held in numbered for name, value in facets(held.passage)],
    )


def _remove(db: sqlite3.Connection, identity: int, column: str, values: Sequence[str]) -> int:
    """Remove the passages with these values; FTS5 must be told what it was given."""
    query = f"SELECT seq, title_terms, text_terms FROM chunks WHERE set_id = ? AND {column} IN"  # noqa: S608
    rows = _chosen(db, query, identity, values)
    words = f"chunk_words_{identity}"
    db.executemany(f"INSERT INTO {words} ({words}, rowid, title, text) VALUES ('delete',?,?,?)", rows)  # noqa: S608
    numbers = [(row[0],) for row in rows]
    db.executemany("DELETE FROM chunk_facets WHERE seq = ?", numbers)
    db.executemany("DELETE FROM chunks WHERE seq = ?", numbers)
    return len(rows)


def _lengths(db: sqlite3.Connection, identity: int, after: int) -> Lengths:
    query = "SELECT seq, title_count, text_count FROM chunks WHERE set_id = ? AND seq > ? ORDER BY seq"
    return as_lengths(db.execute(query, (identity, after)).fetchall())


def _postings(db: sqlite3.Connection, identity: int, word: str, after: int) -> Postings:
    """The index says each place a word stands in, in the order of the passages."""
    counts = "doc, sum(col = 'title'), sum(col = 'text')"
    query = (
        f"SELECT {counts} FROM chunk_vocabulary_{identity} "  # noqa: S608 - constants and a number
        "WHERE term = ? AND doc > ? GROUP BY doc ORDER BY doc"
    )
    return as_postings(db.execute(query, (word, after)))


def _allowed(db: sqlite3.Connection, identity: int, filters: Sequence[Filter]) -> set[int]:
    sets = [_holding(db, identity, one) for one in filters]
    return set.intersection(*sets) if sets else set()


def _holding(db: sqlite3.Connection, identity: int, one: Filter) -> set[int]:
    query = "SELECT seq FROM chunk_facets WHERE set_id = ? AND field = ? AND value IN"
    found = {row[0] for row in _chosen(db, query, identity, one.field, one.values)}
    known = "SELECT DISTINCT field FROM chunk_facets WHERE set_id = ?"
    if not found and (fields := [row[0] for row in db.execute(known, (identity,))]) and one.field not in fields:
        raise unknown_field(one.field, fields)
    return found


def _chosen(db: sqlite3.Connection, query: str, *values: Any) -> list[Any]:
    """The rows of a query that ends in `IN`, for any number of values: the last of `values`."""
    *fixed, wanted = values
    found: list[Any] = []
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        found += db.execute(f"{query} ({','.join('?' * len(part))})", [*fixed, *part]).fetchall()
    return found


def first_change() -> int:
    """Where a collection's changes begin: one made anew under an old number is not taken for the old one."""
    return secrets.randbits(30) * REMOVED


def as_row(held: Indexed) -> tuple[str, ...]:
    """The values of `PASSAGE`."""
    p = held.passage
    metadata = whole(json.dumps(p.metadata, ensure_ascii=False))
    terms = " ".join(held.title_terms), " ".join(held.text_terms)
    return (p.chunk_id, p.document_id, p.title, p.text, metadata, *terms)


def as_indexed(row: Sequence[Any]) -> Indexed:
    """A row of `PASSAGE`."""
    passage = Passage(row[0], row[1], row[2], row[3], json.loads(row[4]))
    return Indexed(passage, tuple(row[5].split()), tuple(row[6].split()))


def as_lengths(rows: Sequence[Any]) -> Lengths:
    """Rows of number, title's and text's count, ascending."""
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Lengths(table[:, 0].copy(), table[:, 1].astype(np.float32), table[:, 2].astype(np.float32))


def as_postings(rows: Iterable[Any]) -> Postings:
    """Rows of number, ascending, and how often in title and text."""
    table = np.array(list(rows), np.int64).reshape(-1, 3)
    return Postings(table[:, 0].copy(), table[:, 1].astype(np.float32), table[:, 2].astype(np.float32))
