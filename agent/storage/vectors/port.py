"""`VectorIndex`: the contract of vector stores. Named sets of vectors, each of one space, every vector with an owner.

`tests/contract/vector_contract.py` tests every driver.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agent.core.models import JsonObject
from agent.core.vector_space import VectorSpace

QueryVector = Sequence[float] | Callable[[], Sequence[float]]
"""The vector of a search, or the function that computes it, which is called only if there are vectors to compare."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A vector with its payload. `at` is UTC seconds since 1970; `scope` narrows searches within an owner."""

    id: str
    owner: str
    vector: Sequence[float]
    payload: JsonObject = field(default_factory=dict)
    scope: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Item:
    """An entry without its vector."""

    id: str
    owner: str
    payload: JsonObject
    scope: str
    at: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A found item. `score` is the cosine similarity, from -1 to 1."""

    item: Item
    score: float


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Stored vectors by id, normalized to length 1. `space` is None for a set that was not opened."""

    space: VectorSpace | None
    vectors: Mapping[str, NDArray[np.float32]]


class VectorIndex(Protocol):
    """`open` creates sets. Their names are lower-case words joined by hyphens. All methods raise `StoreError`."""

    async def open(self, name: str, space: VectorSpace) -> None:
        """Creates the set, or checks that it has this space. Raises `VectorSpaceError` if it has another."""
        ...

    async def put(self, name: str, entries: Sequence[Entry]) -> None:
        """Adds entries and replaces those with the same id, all or none. Raises `NotFoundError` for a set that was not
        opened.

        Raises `VectorSpaceError` for a vector of another dimension, and `ConflictError` if another owner has an entry
        of the same id, which stays unchanged.
        """
        ...

    async def search(
        self, name: str, vector: QueryVector, *, owner: str, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Hit]:
        """The owner's entries nearest to `vector`, best first; only those in `scopes`, if given.

        Finds what any process has put before. Finds nothing in an unknown set.
        """
        ...

    async def get_vectors(self, name: str, ids: Sequence[str], *, owner: str) -> StoredVectors:
        """The vectors of this owner's entries with these ids; leaves out unknown ids."""
        ...

    async def list_items(
        self, name: str, *, owner: str | None, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Item]:
        """The newest items of an owner (None: of every owner), newest first. Empty for an unknown set."""
        ...

    async def delete(self, name: str, ids: Sequence[str], *, owner: str) -> int:
        """Deletes entries of this owner and returns how many there were."""
        ...

    async def drop(self, name: str) -> None:
        """Deletes a whole set with its space. Does nothing if there is none."""
        ...

    async def list_outgrown(self) -> Mapping[str, int]:
        """The sets with more vectors of one owner than this driver searches quickly, with their numbers."""
        ...

    async def close(self) -> None:
        """Releases resources."""
        ...


def compute_query(vector: QueryVector) -> Sequence[float]:
    """The numbers of a search's vector."""
    return vector() if callable(vector) else vector
