"""`ExactIndex`: every vector compared with the query, over rows in a database. Exact, and fast enough for a house.

The vectors of an owner stay in memory between searches. Before each search one small query says what has changed
since, so that several processes may share the database.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agent.core.errors import VectorSpaceError
from agent.core.vectors.port import Entry, Hit, Item, Space, Stored

CACHE_BYTES = 256_000_000
"""Vectors kept in memory; beyond it the owners that searched least recently are read again when they come back."""
THREAD_NUMBERS = 4_000_000
"""Comparing more numbers than this takes longer than a millisecond or two and leaves the event loop."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Version:
    """How far a set has come. `added` numbers its entries; `removed` counts what was taken out or replaced. A set that
    was dropped and made anew is of another `generation`."""

    generation: str
    added: int
    removed: int

    def grew_to(self, later: "Version") -> bool:
        """Whether nothing but additions lies between this version and the later one."""
        return (self.generation, self.removed) == (later.generation, later.removed) and self.added <= later.added


@dataclass(frozen=True, slots=True)
class VectorRow:
    """An entry's vector as it is stored: little-endian float32, of length one."""

    id: str
    scope: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Changes:
    """An owner's rows since a version; all of them where something was removed since."""

    version: Version
    rows: Sequence[VectorRow]
    whole: bool


class VectorRows(Protocol):
    """The rows of an `ExactIndex`; one driver a database. Each method is one transaction."""

    async def open(self, name: str, space: Space) -> Space:
        """The set's space, which is `space` when the set is new."""
        ...

    async def put(self, name: str, dimension: int, entries: Sequence[tuple[Entry, bytes]]) -> None:
        """See `VectorIndex.put`."""
        ...

    async def changes(self, name: str, owner: str, since: Version | None) -> Changes | None:
        """What has changed; None for an unknown set."""
        ...

    async def payloads(self, name: str, owner: str, ids: Sequence[str]) -> Mapping[str, Item]:
        """Items by id; those removed meanwhile are missing."""
        ...

    async def stored(self, name: str, owner: str, ids: Sequence[str]) -> tuple[Space | None, Mapping[str, bytes]]:
        """The set's space, and vectors by id; those that are not there are missing."""
        ...

    async def items(self, name: str, owner: str | None, limit: int, scopes: Sequence[str] | None) -> list[Item]:
        """See `VectorIndex.items`."""
        ...

    async def delete(self, name: str, owner: str, ids: Sequence[str]) -> int:
        """See `VectorIndex.delete`."""
        ...

    async def drop(self, name: str) -> None:
        """See `VectorIndex.drop`."""
        ...


@dataclass(slots=True)
class _Block:
    """The vectors of one owner in one set."""

    version: Version
    ids: list[str]
    scopes: list[str]
    matrix: Vectors


class ExactIndex:
    """Implements `VectorIndex` on `VectorRows`."""

    def __init__(self, rows: VectorRows) -> None:
        self._rows = rows
        self._blocks: OrderedDict[tuple[str, str], _Block] = OrderedDict()

    async def open(self, name: str, space: Space) -> None:
        """See `VectorIndex.open`."""
        stored = await self._rows.open(name, space)
        if stored != space:
            raise mismatch(name, stored, space)

    async def put(self, name: str, entries: Sequence[Entry]) -> None:
        """See `VectorIndex.put`."""
        if entries:
            packed = [(entry, _unit(entry.vector).tobytes()) for entry in entries]
            dimensions = {len(entry.vector) for entry in entries}
            if len(dimensions) > 1:
                raise VectorSpaceError(f"vectors of {sorted(dimensions)} numbers cannot be mixed", agent_id="memory")
            await self._rows.put(name, dimensions.pop(), packed)

    async def search(
        self, name: str, vector: Sequence[float], *, owner: str, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Hit]:
        """See `VectorIndex.search`."""
        block = await self._block(name, owner)
        if block is None or not block.ids:
            return []
        query = _unit(vector)
        if query.shape[0] != block.matrix.shape[1]:
            raise VectorSpaceError(
                f"the query has {query.shape[0]} numbers, the vectors of {name!r} have {block.matrix.shape[1]}",
                agent_id="memory",
            )
        if block.matrix.size > THREAD_NUMBERS:
            best = await asyncio.to_thread(_best, block, query, limit, scopes)
        else:
            best = _best(block, query, limit, scopes)
        items = await self._rows.payloads(name, owner, [identity for identity, _ in best])
        return [Hit(items[identity], score) for identity, score in best if identity in items]

    async def stored(self, name: str, ids: Sequence[str], *, owner: str) -> Stored:
        """See `VectorIndex.stored`."""
        space, rows = await self._rows.stored(name, owner, ids)
        return Stored(space, {identity: np.frombuffer(row, "<f4") for identity, row in rows.items()})

    async def items(
        self, name: str, *, owner: str | None, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Item]:
        """See `VectorIndex.items`."""
        return await self._rows.items(name, owner, limit, scopes)

    async def delete(self, name: str, ids: Sequence[str], *, owner: str) -> int:
        """See `VectorIndex.delete`."""
        return await self._rows.delete(name, owner, ids)

    async def drop(self, name: str) -> None:
        """See `VectorIndex.drop`."""
        for key in [key for key in self._blocks if key[0] == name]:
            del self._blocks[key]
        await self._rows.drop(name)

    async def close(self) -> None:
        """The database is closed by who opened it."""
        self._blocks.clear()

    async def _block(self, name: str, owner: str) -> _Block | None:
        key = (name, owner)
        known = self._blocks.get(key)
        changes = await self._rows.changes(name, owner, known.version if known else None)
        if changes is None:
            return None
        known = self._blocks.get(key)  # a search that ran beside this one may have brought it further
        if known is not None and changes.version.grew_to(known.version):
            return known
        block = _joined(known, changes)
        self._blocks[key] = block
        self._blocks.move_to_end(key)
        self._shrink()
        return block

    def _shrink(self) -> None:
        size = sum(block.matrix.nbytes for block in self._blocks.values())
        while size > CACHE_BYTES and len(self._blocks) > 1:
            _, dropped = self._blocks.popitem(last=False)
            size -= dropped.matrix.nbytes


def mismatch(name: str, stored: Space, wanted: Space) -> VectorSpaceError:
    """The refusal to mix two spaces in one set."""
    return VectorSpaceError(
        f"the vectors of {name!r} were made by {stored}; {wanted} cannot be mixed with them. Set AGENT_EMBEDDER_URL "
        "and AGENT_EMBEDDER_MODEL back, or make them anew with `stepgate memory reindex`",
        agent_id="memory",
    )


def _joined(known: _Block | None, changes: Changes) -> _Block:
    """The block with what is new; a new one where all rows came. Blocks are never changed in place: a thread may be
    reading the old one."""
    ids = [row.id for row in changes.rows]
    scopes = [row.scope for row in changes.rows]
    if known is not None and known.ids and not changes.whole:  # a block of none has no width to add to
        if not ids:
            return _Block(changes.version, known.ids, known.scopes, known.matrix)
        seen = set(known.ids)
        fresh = [index for index, identity in enumerate(ids) if identity not in seen]
        if not fresh:
            return _Block(changes.version, known.ids, known.scopes, known.matrix)
        matrix = np.vstack([known.matrix, _matrix([changes.rows[index] for index in fresh])])
        return _Block(
            changes.version,
            known.ids + [ids[index] for index in fresh],
            known.scopes + [scopes[index] for index in fresh],
            matrix,
        )
    return _Block(changes.version, ids, scopes, _matrix(changes.rows))


def _matrix(rows: Sequence[VectorRow]) -> Vectors:
    if not rows:
        return np.zeros((0, 0), dtype=np.float32)
    return np.frombuffer(b"".join(row.vector for row in rows), dtype="<f4").reshape(len(rows), -1)


def _best(block: _Block, query: Vectors, limit: int, scopes: Sequence[str] | None) -> list[tuple[str, float]]:
    scores = block.matrix @ query
    if scopes is not None:
        wanted = set(scopes)
        chosen = np.fromiter((scope in wanted for scope in block.scopes), dtype=bool, count=len(block.scopes))
        scores = np.where(chosen, scores, -np.inf)
    count = min(limit, len(scores))
    if count <= 0:
        return []
    top = np.argpartition(-scores, count - 1)[:count]
    ranked = sorted(top.tolist(), key=lambda index: (-scores[index], block.ids[index]))
    return [(block.ids[index], float(scores[index])) for index in ranked if np.isfinite(scores[index])]


def _unit(vector: Sequence[float]) -> Vectors:
    """The vector with length one, as it is stored; a vector of zeros stays what it is and is near to nothing."""
    array = np.asarray(vector, dtype="<f4")
    length = float(np.linalg.norm(array))
    if not np.isfinite(length):
        raise VectorSpaceError("a vector holds numbers that are none (NaN or infinity)", agent_id="memory")
    return np.asarray(array / length, dtype="<f4") if length > 0 else array
