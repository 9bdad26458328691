"""`LexicalRows`: what a database driver provides for a `TantivyIndex`: the stored passages, which are the truth.

Implemented by `lexical_sqlite.py` and `lexical_postgres.py`. The rows of passages are the same in both.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent.core.surrogates import replace_surrogates
from gateway.features.documents.engine.search.lexical import IndexedPassage, Passage

PASSAGE_COLUMNS = "chunk_id, document_id, title, text, metadata, title_terms, text_terms"
COUNTED_CHANGES = 1 << 32
"""`changes` counts below this; above it stands a random number, by which a recreated collection is told apart."""


@dataclass(frozen=True, slots=True)
class CollectionVersion:
    """A collection's id, its change counter, and the number of its latest passage (0 without passages).

    Later passages have higher numbers, and no number is given twice.
    """

    id: int
    changes: int
    last: int

    @property
    def name(self) -> str:
        """A name that no other collection has, also of another database with the same ids."""
        return f"{self.id}-{self.changes // COUNTED_CHANGES:08x}"


@dataclass(frozen=True, slots=True)
class PassageChange:
    """A committed write: the numbers of removed and replaced passages, and how many passages it stored."""

    version: CollectionVersion
    removed: Sequence[int]
    stored: int = 0


class LexicalRows(Protocol):
    """The database of a `TantivyIndex`. Each method is one transaction."""

    async def put(self, owner: str, collection: str, passages: Sequence[IndexedPassage]) -> PassageChange:
        """See `LexicalIndex.put`."""
        ...

    async def get_version(self, owner: str, collection: str) -> CollectionVersion | None:
        """The version of a collection, or None if it does not exist."""
        ...

    async def list_names(self) -> frozenset[str]:
        """The names (`CollectionVersion.name`) of all collections of all owners."""
        ...

    async def read_after(self, collection_id: int, number: int, limit: int) -> Mapping[int, IndexedPassage]:
        """The first passages with higher numbers, ascending."""
        ...

    async def get_by_number(self, collection_id: int, numbers: Sequence[int]) -> Mapping[int, IndexedPassage]:
        """Passages by number; removed ones are left out."""
        ...

    async def get_by_chunk_id(self, collection_id: int, chunk_ids: Sequence[str]) -> Mapping[str, IndexedPassage]:
        """Passages by chunk id."""
        ...

    async def get_documents(self, collection_id: int, numbers: Sequence[int]) -> Mapping[str, str]:
        """Chunk ids and document ids of passages by number; removed ones are left out."""
        ...

    async def sample(self, collection_id: int, limit: int) -> list[Passage]:
        """See `LexicalIndex.sample`."""
        ...

    async def delete(self, owner: str, collection: str, document_ids: Sequence[str]) -> PassageChange | None:
        """See `LexicalIndex.delete`; None if the collection does not exist."""
        ...

    async def drop(self, owner: str, collection: str) -> None:
        """See `LexicalIndex.drop`."""
        ...


def generate_initial_changes() -> int:
    """The start of a change counter."""
    return secrets.randbits(30) * COUNTED_CHANGES


def to_row(held: IndexedPassage) -> tuple[str, ...]:
    """The values of `PASSAGE_COLUMNS`."""
    p = held.passage
    metadata = replace_surrogates(json.dumps(p.metadata, ensure_ascii=False))
    terms = " ".join(held.title_terms), " ".join(held.text_terms)
    return (p.chunk_id, p.document_id, p.title, p.text, metadata, *terms)


def from_row(row: Sequence[Any]) -> IndexedPassage:
    """The passage of a row of `PASSAGE_COLUMNS`."""
    passage = Passage(row[0], row[1], row[2], row[3], json.loads(row[4]))
    return IndexedPassage(passage, tuple(row[5].split()), tuple(row[6].split()))


def spread(numbers: Sequence[int], limit: int) -> list[int]:
    """Up to `limit` of the numbers, evenly spread."""
    return list(numbers[:: max(1, len(numbers) // max(1, limit))][:limit])
