"""`VectorIndex`: named sets of vectors, each of one space, every vector with an owner. The contract of its drivers.

`tests/contract/vector_contract.py` holds every driver to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agent.core.models import JsonObject


@dataclass(frozen=True, slots=True)
class Space:
    """What makes two vectors comparable: who made them, and how many numbers they have."""

    embedder: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.embedder} ({self.dimension} numbers)"


@dataclass(frozen=True, slots=True)
class Entry:
    """A vector and what it stands for. `at` is UTC seconds since 1970; `scope` narrows searches within an owner."""

    id: str
    owner: str
    vector: Sequence[float]
    payload: JsonObject = field(default_factory=dict)
    scope: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Item:
    """What an entry stands for, without its vector."""

    id: str
    owner: str
    payload: JsonObject
    scope: str
    at: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A found item; `score` is the cosine of the two vectors, from -1 to 1."""

    item: Item
    score: float


@dataclass(frozen=True, slots=True)
class Stored:
    """Vectors as they are kept, by id, of length one; the space is None for a set that was not opened."""

    space: Space | None
    vectors: Mapping[str, NDArray[np.float32]]


class VectorIndex(Protocol):
    """Sets are made by `open`; their names are lower-case words joined by hyphens. All methods raise `StoreError`."""

    async def open(self, name: str, space: Space) -> None:
        """Make the set, or find that it is of this space; `VectorSpaceError` when it is of another."""
        ...

    async def put(self, name: str, entries: Sequence[Entry]) -> None:
        """Add entries, replacing those with the same id; all or none. `NotFoundError` for a set that was not opened.

        A vector of another dimension is refused with `VectorSpaceError`; an entry of another owner with the same id
        is left alone, with `ConflictError`."""
        ...

    async def search(
        self, name: str, vector: Sequence[float], *, owner: str, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Hit]:
        """The owner's entries nearest to `vector`, best first; only those of `scopes` when given.

        Whatever any process has put before is found. Nothing is found in an unknown set."""
        ...

    async def stored(self, name: str, ids: Sequence[str], *, owner: str) -> Stored:
        """The vectors of this owner's entries with these ids; those that are not there are missing."""
        ...

    async def items(
        self, name: str, *, owner: str | None, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Item]:
        """The newest items of an owner, newest first; of every owner for None. Empty for an unknown set."""
        ...

    async def delete(self, name: str, ids: Sequence[str], *, owner: str) -> int:
        """Remove entries of this owner; how many there were."""
        ...

    async def drop(self, name: str) -> None:
        """Remove a whole set with its space; dropping what is not there is done already."""
        ...

    async def close(self) -> None:
        """Release what is held."""
        ...
