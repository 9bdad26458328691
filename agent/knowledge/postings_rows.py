"""The rows of a `PostingsIndex`: what a database driver gives it. `lexical_sqlite.py` and `lexical_postgres.py` do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agent.knowledge.filters import Filter
from agent.knowledge.lexical import Indexed, Passage, Selection

Numbers = NDArray[np.float32]
Places = NDArray[np.int64]


REMOVED = 1 << 32
"""What a change that removed or replaced passages adds to `changes`; one that only added some adds 1."""


@dataclass(frozen=True, slots=True)
class CollectionVersion:
    """A collection's number in the database, and how it has changed."""

    id: int
    changes: int

    def grew_from(self, earlier: "CollectionVersion") -> bool:
        """Whether nothing but additions lies between the earlier version and this one."""
        return self.changes // REMOVED == earlier.changes // REMOVED and self.changes >= earlier.changes


@dataclass(frozen=True, slots=True)
class Lengths:
    """Passages of a collection by number, ascending, with the count of terms of their title and text. Later passages
    have higher numbers."""

    numbers: Places
    title: Numbers
    text: Numbers

    @property
    def last(self) -> int:
        """The highest number; 0 where there is none."""
        return int(self.numbers[-1]) if len(self.numbers) else 0

    @property
    def means(self) -> tuple[float, float]:
        """The mean lengths of titles and of texts."""
        return (float(self.title.mean()), float(self.text.mean())) if len(self.numbers) else (0.0, 0.0)

    def joined(self, more: "Lengths") -> "Lengths":
        """These and those that came after them."""
        return Lengths(*(np.concatenate(pair) for pair in _pairs(self, more)))


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term stands: passages by number, and how often in their title and text."""

    numbers: Places
    title: Numbers
    text: Numbers

    def joined(self, more: "Postings") -> "Postings":
        """These and those that came after them."""
        return Postings(*(np.concatenate(pair) for pair in _pairs(self, more))) if len(more.numbers) else self


class LexicalRows(Protocol):
    """The rows of a `PostingsIndex`; one driver a database. Each method is one transaction."""

    async def put(self, owner: str, collection: str, passages: Sequence[Indexed]) -> None:
        """See `LexicalIndex.put`."""
        ...

    async def version(self, owner: str, collection: str) -> CollectionVersion | None:
        """The collection's version; None for an unknown one."""
        ...

    async def load(
        self, version: CollectionVersion, after: Mapping[str, int], lengths_after: int | None
    ) -> tuple[Lengths | None, dict[str, Postings]] | None:
        """The postings of words beyond a number each, ascending, every passage once, and the lengths beyond a number
        if they are asked for; None when the version has passed."""
        ...

    async def standing(self, collection_id: int, words: Sequence[str]) -> frozenset[str]:
        """Those of some terms that any passage holds."""
        ...

    async def filtered(self, collection_id: int, filters: Sequence[Filter]) -> Places:
        """Numbers of the passages that every filter lets through. `BadRequestError` for an unknown field."""
        ...

    async def by_number(self, collection_id: int, numbers: Sequence[int]) -> dict[int, Indexed]:
        """Passages by number; those removed meanwhile are missing."""
        ...

    async def by_chunk(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, Indexed]:
        """Passages by chunk id."""
        ...

    async def documents(self, collection_id: int, filters: Sequence[Filter]) -> Selection:
        """See `LexicalIndex.select`."""
        ...

    async def sample(self, collection_id: int, limit: int) -> list[Passage]:
        """See `LexicalIndex.sample`."""
        ...

    async def delete(self, owner: str, collection: str, document_ids: Sequence[str]) -> int:
        """See `LexicalIndex.delete`."""
        ...

    async def drop(self, owner: str, collection: str) -> None:
        """See `LexicalIndex.drop`."""
        ...


def _pairs(one: Lengths | Postings, more: Lengths | Postings) -> tuple[tuple[NDArray[Any], NDArray[Any]], ...]:
    return (one.numbers, more.numbers), (one.title, more.title), (one.text, more.text)
