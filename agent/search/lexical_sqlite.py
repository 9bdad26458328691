"""The rows of a `PostingsIndex` in the SQLite file of the store: one FTS5 index per collection.

FTS5 gets our stemmed terms and stores no text. With a table per collection, no search pays for the size of another
collection, and no idf reveals the documents of another owner.
"""

import json
import secrets
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from agent.core.surrogates import replace_surrogates
from agent.search.filters import Filter, list_facets, make_unknown_field_error
from agent.search.lexical import IndexedPassage, Passage, Selection
from agent.search.postings import PostingsIndex
from agent.search.postings_rows import (
    REMOVAL_INCREMENT,
    CollectionVersion,
    Lengths,
    LexicalRows,
    PassageNumbers,
    Postings,
)
from agent.storage.sqlite import SqliteDatabase

PASSAGE_COLUMNS = "chunk_id, document_id, title, text, metadata, title_terms, text_terms"
_BATCH_SIZE = 500
"""Parameters of one statement; older SQLite versions allow a thousand."""


def create_sqlite_index(database: SqliteDatabase) -> PostingsIndex:
    """Returns a `LexicalIndex` in the SQLite file of the store."""
    rows: LexicalRows = SqliteLexicalRows(database)
    return PostingsIndex(rows)


class SqliteLexicalRows:
    """Implements `LexicalRows`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def put(self, owner: str, collection: str, passages: Sequence[IndexedPassage]) -> None:
        """See `LexicalRows.put`."""

        def unit(db: sqlite3.Connection) -> None:
            version = _read_version(db, owner, collection)
            identity = version.id if version is not None else _create_collection(db, owner, collection)
            removed = _remove(db, identity, "chunk_id", [held.passage.chunk_id for held in passages])
            _record_change(db, identity, removed)
            first = db.execute("SELECT coalesce(max(seq), 0) + 1 FROM chunks").fetchone()[0]
            _insert(db, identity, list(enumerate(passages, first)))

        await self._database.write(unit)

    async def get_version(self, owner: str, collection: str) -> CollectionVersion | None:
        """See `LexicalRows.version`."""
        return await self._database.read(lambda db: _read_version(db, owner, collection))

    async def load(
        self, version: CollectionVersion, after: Mapping[str, int], lengths_after: int | None
    ) -> tuple[Lengths | None, dict[str, Postings]] | None:
        """See `LexicalRows.load`."""

        def unit(db: sqlite3.Connection) -> tuple[Lengths | None, dict[str, Postings]] | None:
            row = db.execute("SELECT changes FROM chunk_sets WHERE id = ?", (version.id,)).fetchone()
            if row is None or row[0] != version.changes:
                return None
            lengths = None if lengths_after is None else _read_lengths(db, version.id, lengths_after)
            return lengths, {word: _read_postings(db, version.id, word, last) for word, last in after.items()}

        return await self._database.read(unit)

    async def find_existing_terms(self, collection_id: int, words: Sequence[str]) -> frozenset[str]:
        """See `LexicalRows.standing`."""
        query = f"SELECT 1 FROM chunk_vocabulary_{collection_id} WHERE term = ? LIMIT 1"  # noqa: S608 - a number

        def unit(db: sqlite3.Connection) -> frozenset[str]:
            if db.execute("SELECT 1 FROM chunk_sets WHERE id = ?", (collection_id,)).fetchone() is None:
                return frozenset()  # dropped by another process, with its tables
            return frozenset(word for word in words if db.execute(query, (word,)).fetchone() is not None)

        return await self._database.read(unit)

    async def list_filtered_numbers(self, collection_id: int, filters: Sequence[Filter]) -> PassageNumbers:
        """See `LexicalRows.filtered`."""
        return await self._database.read(
            lambda db: np.array(sorted(_find_allowed(db, collection_id, filters)), np.int64)
        )

    async def get_by_number(self, collection_id: int, numbers: Sequence[int]) -> dict[int, IndexedPassage]:
        """See `LexicalRows.by_number`."""
        query = f"SELECT seq, {PASSAGE_COLUMNS} FROM chunks WHERE set_id = ? AND seq IN"  # noqa: S608 - constants only
        rows = await self._database.read(lambda db: _select_in_batches(db, query, collection_id, numbers))
        return {row[0]: from_row(row[1:]) for row in rows}

    async def get_by_chunk_id(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, IndexedPassage]:
        """See `LexicalRows.by_chunk`."""
        query = f"SELECT {PASSAGE_COLUMNS} FROM chunks WHERE set_id = ? AND chunk_id IN"  # noqa: S608 - constants only
        rows = await self._database.read(lambda db: _select_in_batches(db, query, collection_id, chunk_ids))
        return {row[0]: from_row(row) for row in rows}

    async def select_documents(self, collection_id: int, filters: Sequence[Filter]) -> Selection:
        """See `LexicalRows.documents`."""

        def unit(db: sqlite3.Connection) -> Selection:
            total = db.execute("SELECT count(*) FROM chunks WHERE set_id = ?", (collection_id,)).fetchone()[0]
            query = "SELECT chunk_id, document_id FROM chunks WHERE set_id = ? AND seq IN"
            rows = _select_in_batches(db, query, collection_id, sorted(_find_allowed(db, collection_id, filters)))
            return Selection(dict(rows), total)

        return await self._database.read(unit)

    async def sample(self, collection_id: int, limit: int) -> list[Passage]:
        """See `LexicalRows.sample`."""

        def unit(db: sqlite3.Connection) -> list[Any]:
            numbers = db.execute("SELECT seq FROM chunks WHERE set_id = ? ORDER BY seq", (collection_id,)).fetchall()
            chosen = [row[0] for row in numbers[:: max(1, len(numbers) // max(1, limit))][:limit]]
            query = f"SELECT {PASSAGE_COLUMNS} FROM chunks WHERE set_id = ? AND seq IN"  # noqa: S608 - constants only
            return _select_in_batches(db, query, collection_id, chosen)

        return [from_row(row).passage for row in await self._database.read(unit)]

    async def delete(self, owner: str, collection: str, document_ids: Sequence[str]) -> int:
        """See `LexicalRows.delete`."""

        def unit(db: sqlite3.Connection) -> int:
            version = _read_version(db, owner, collection)
            if version is None:
                return 0
            count = _remove(db, version.id, "document_id", document_ids)
            if count:
                _record_change(db, version.id, count)
            return count

        return await self._database.write(unit)

    async def drop(self, owner: str, collection: str) -> None:
        """See `LexicalRows.drop`."""

        def unit(db: sqlite3.Connection) -> None:
            version = _read_version(db, owner, collection)
            if version is not None:
                db.execute(f"DROP TABLE chunk_vocabulary_{version.id}")
                db.execute(f"DROP TABLE chunk_words_{version.id}")
                db.execute("DELETE FROM chunk_facets WHERE set_id = ?", (version.id,))
                db.execute("DELETE FROM chunks WHERE set_id = ?", (version.id,))
                db.execute("DELETE FROM chunk_sets WHERE id = ?", (version.id,))

        await self._database.write(unit)


def _read_version(db: sqlite3.Connection, owner: str, collection: str) -> CollectionVersion | None:
    query = "SELECT id, changes FROM chunk_sets WHERE owner = ? AND collection = ?"
    row = db.execute(query, (owner, collection)).fetchone()
    return None if row is None else CollectionVersion(*row)


def _record_change(db: sqlite3.Connection, identity: int, removed: int) -> None:
    db.execute(
        "UPDATE chunk_sets SET changes = changes + ? WHERE id = ?", (REMOVAL_INCREMENT if removed else 1, identity)
    )


def _create_collection(db: sqlite3.Connection, owner: str, collection: str) -> int:
    identity = int(
        db.execute(
            "INSERT INTO chunk_sets (owner, collection, changes) VALUES (?,?,?) RETURNING id",
            (owner, collection, generate_initial_changes()),
        ).fetchone()[0]
    )
    # The ascii tokenizer does not change characters beyond ASCII. The lengths are stored with the chunks instead.
    db.execute(
        f"CREATE VIRTUAL TABLE chunk_words_{identity} USING fts5(title, text, content='', columnsize=0, "
        "tokenize='ascii')"
    )
    db.execute(f"CREATE VIRTUAL TABLE chunk_vocabulary_{identity} USING fts5vocab(chunk_words_{identity}, instance)")
    return identity


def _insert(db: sqlite3.Connection, identity: int, numbered: Sequence[tuple[int, IndexedPassage]]) -> None:
    db.executemany(
        f"INSERT INTO chunks (seq, set_id, title_count, text_count, {PASSAGE_COLUMNS}) "  # noqa: S608 - constants only
        "VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        [(seq, identity, len(held.title_terms), len(held.text_terms), *to_row(held)) for seq, held in numbered],
    )
    db.executemany(
        f"INSERT INTO chunk_words_{identity} (rowid, title, text) VALUES (?,?,?)",  # noqa: S608 - a number
        [(seq, " ".join(held.title_terms), " ".join(held.text_terms)) for seq, held in numbered],
    )
    db.executemany(
        "INSERT INTO chunk_facets (set_id, field, value, seq) VALUES (?,?,?,?)",
        [(identity, name, value, seq) for seq, held in numbered for name, value in list_facets(held.passage)],
    )


def _remove(db: sqlite3.Connection, identity: int, column: str, values: Sequence[str]) -> int:
    """Removes the passages with these values. FTS5 needs the terms it was given to remove them."""
    query = f"SELECT seq, title_terms, text_terms FROM chunks WHERE set_id = ? AND {column} IN"  # noqa: S608
    rows = _select_in_batches(db, query, identity, values)
    words = f"chunk_words_{identity}"
    db.executemany(f"INSERT INTO {words} ({words}, rowid, title, text) VALUES ('delete',?,?,?)", rows)  # noqa: S608
    numbers = [(row[0],) for row in rows]
    db.executemany("DELETE FROM chunk_facets WHERE seq = ?", numbers)
    db.executemany("DELETE FROM chunks WHERE seq = ?", numbers)
    return len(rows)


def _read_lengths(db: sqlite3.Connection, identity: int, after: int) -> Lengths:
    query = "SELECT seq, title_count, text_count FROM chunks WHERE set_id = ? AND seq > ? ORDER BY seq"
    return build_lengths(db.execute(query, (identity, after)).fetchall())


def _read_postings(db: sqlite3.Connection, identity: int, word: str, after: int) -> Postings:
    """Reads the postings of a term: the vocabulary table has a row per occurrence, in the order of the passages."""
    counts = "doc, sum(col = 'title'), sum(col = 'text')"
    query = (
        f"SELECT {counts} FROM chunk_vocabulary_{identity} "  # noqa: S608 - constants and a number
        "WHERE term = ? AND doc > ? GROUP BY doc ORDER BY doc"
    )
    return build_postings(db.execute(query, (word, after)))


def _find_allowed(db: sqlite3.Connection, identity: int, filters: Sequence[Filter]) -> set[int]:
    sets = [_find_by_facet(db, identity, one) for one in filters]
    return set.intersection(*sets) if sets else set()


def _find_by_facet(db: sqlite3.Connection, identity: int, one: Filter) -> set[int]:
    query = "SELECT seq FROM chunk_facets WHERE set_id = ? AND field = ? AND value IN"
    found = {row[0] for row in _select_in_batches(db, query, identity, one.field, one.values)}
    known = "SELECT DISTINCT field FROM chunk_facets WHERE set_id = ?"
    if not found and (fields := [row[0] for row in db.execute(known, (identity,))]) and one.field not in fields:
        raise make_unknown_field_error(one.field, fields)
    return found


def _select_in_batches(db: sqlite3.Connection, query: str, *values: Any) -> list[Any]:
    """Returns the rows of a query that ends in `IN`, for any number of values (the last of `values`)."""
    *fixed, wanted = values
    found: list[Any] = []
    for start in range(0, len(wanted), _BATCH_SIZE):
        part = wanted[start : start + _BATCH_SIZE]
        found += db.execute(f"{query} ({','.join('?' * len(part))})", [*fixed, *part]).fetchall()
    return found


def generate_initial_changes() -> int:
    """Returns a random start for the change counter, so that a recreated collection is not taken for the old one."""
    return secrets.randbits(30) * REMOVAL_INCREMENT


def to_row(held: IndexedPassage) -> tuple[str, ...]:
    """Returns the values of `PASSAGE_COLUMNS`."""
    p = held.passage
    metadata = replace_surrogates(json.dumps(p.metadata, ensure_ascii=False))
    terms = " ".join(held.title_terms), " ".join(held.text_terms)
    return (p.chunk_id, p.document_id, p.title, p.text, metadata, *terms)


def from_row(row: Sequence[Any]) -> IndexedPassage:
    """Returns the passage of a row of `PASSAGE_COLUMNS`."""
    passage = Passage(row[0], row[1], row[2], row[3], json.loads(row[4]))
    return IndexedPassage(passage, tuple(row[5].split()), tuple(row[6].split()))


def build_lengths(rows: Sequence[Any]) -> Lengths:
    """Returns the lengths from rows of (number, title length, text length), ascending."""
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Lengths(table[:, 0].copy(), table[:, 1].astype(np.float32), table[:, 2].astype(np.float32))


def build_postings(rows: Iterable[Any]) -> Postings:
    """Returns the postings from rows of (number, count in title, count in text), ascending."""
    table = np.array(list(rows), np.int64).reshape(-1, 3)
    return Postings(table[:, 0].copy(), table[:, 1].astype(np.float32), table[:, 2].astype(np.float32))
