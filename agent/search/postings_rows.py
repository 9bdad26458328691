"""`LexicalRows`: what a database driver provides for a `PostingsIndex`.

Implemented by `lexical_sqlite.py` and `lexical_postgres.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agent.search.filters import Filter
from agent.search.lexical import IndexedPassage, Passage, Selection

TermCounts = NDArray[np.float32]
PassageNumbers = NDArray[np.int64]


REMOVAL_INCREMENT = 1 << 32
"""What a change that removed or replaced passages adds to `changes`; one that only added some adds 1."""


@dataclass(frozen=True, slots=True)
class CollectionVersion:
    """A collection's number in the database, and its change counter."""

    id: int
    changes: int

    def only_added_since(self, earlier: "CollectionVersion") -> bool:
        """Returns whether passages were only added since the earlier version."""
        return (
            self.changes // REMOVAL_INCREMENT == earlier.changes // REMOVAL_INCREMENT
            and self.changes >= earlier.changes
        )


@dataclass(frozen=True, slots=True)
class Lengths:
    """The passages of a collection by number, ascending, with the lengths of title and text in terms.

    Later passages have higher numbers.
    """

    numbers: PassageNumbers
    title: TermCounts
    text: TermCounts

    @property
    def last(self) -> int:
        """The highest number, or 0."""
        return int(self.numbers[-1]) if len(self.numbers) else 0

    @property
    def mean_lengths(self) -> tuple[float, float]:
        """The mean lengths of titles and of texts."""
        return (float(self.title.mean()), float(self.text.mean())) if len(self.numbers) else (0.0, 0.0)

    def concatenate(self, more: "Lengths") -> "Lengths":
        """Returns these and later lengths."""
        return Lengths(*(np.concatenate(pair) for pair in _pairs(self, more)))


@dataclass(frozen=True, slots=True)
class Postings:
    """The passages with a term, by number, and its counts in their title and text."""

    numbers: PassageNumbers
    title: TermCounts
    text: TermCounts

    def concatenate(self, more: "Postings") -> "Postings":
        """Returns these and later postings."""
        return Postings(*(np.concatenate(pair) for pair in _pairs(self, more))) if len(more.numbers) else self


class LexicalRows(Protocol):
    """The database of a `PostingsIndex`. Each method is one transaction."""

    async def put(self, owner: str, collection: str, passages: Sequence[IndexedPassage]) -> None:
        """See `LexicalIndex.put`."""
        ...

    async def get_version(self, owner: str, collection: str) -> CollectionVersion | None:
        """Returns the version of a collection, or None if it does not exist."""
        ...

    async def load(
        self, version: CollectionVersion, after: Mapping[str, int], lengths_after: int | None
    ) -> tuple[Lengths | None, dict[str, Postings]] | None:
        """Returns postings and lengths, or None if `version` is no longer current.

        Reads the postings of each term of `after` beyond the number given there, and the lengths beyond `lengths_after`
        unless that is None; both ascending, each passage once.
        """
        ...

    async def find_existing_terms(self, collection_id: int, words: Sequence[str]) -> frozenset[str]:
        """Returns those of `words` that any passage contains."""
        ...

    async def list_filtered_numbers(self, collection_id: int, filters: Sequence[Filter]) -> PassageNumbers:
        """Returns the numbers of the passages that pass every filter. Raises `BadRequestError` for an unknown field."""
        ...

    async def get_by_number(self, collection_id: int, numbers: Sequence[int]) -> dict[int, IndexedPassage]:
        """Returns passages by number; removed ones are left out."""
        ...

    async def get_by_chunk_id(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, IndexedPassage]:
        """Returns passages by chunk id."""
        ...

    async def select_documents(self, collection_id: int, filters: Sequence[Filter]) -> Selection:
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
