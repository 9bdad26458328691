"""`ExactIndex`: compares the query with every vector, over rows in a database. Exact, and fast enough for one machine.

The vectors of an owner stay in memory between searches. A small query before each search reads what has changed, so
that several processes can share the database.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agent.core.errors import VectorSpaceError
from agent.core.vector_space import VectorSpace
from agent.storage.vectors.port import Entry, Hit, Item, QueryVector, StoredVectors, compute_query

CACHE_BYTES = 256_000_000
"""Size of the vectors in memory. Beyond it, the least recently searched ones are dropped and read again on use."""
THREAD_THRESHOLD = 1_000_000
"""Comparing or copying more numbers than this takes about a millisecond and runs in a thread."""
MAX_QUICK_VECTORS = 100_000
"""An owner's vectors in one set that are still compared within 10 ms (with 384 numbers each)."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SetVersion:
    """The version of a set. `added` numbers its entries; `removed` counts deletions and replacements. A set that was
    dropped and created again has another `generation`.
    """

    generation: str
    added: int
    removed: int

    def has_only_additions_until(self, later: "SetVersion") -> bool:
        """Whether there are only additions between this version and the later one."""
        return (self.generation, self.removed) == (later.generation, later.removed) and self.added <= later.added


@dataclass(frozen=True, slots=True)
class VectorRow:
    """An entry's vector as stored: little-endian float32, normalized to length 1."""

    id: str
    scope: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class VectorChanges:
    """An owner's rows since a version; all rows (`is_complete`) if something was removed since."""

    version: SetVersion
    rows: Sequence[VectorRow]
    is_complete: bool


class VectorRows(Protocol):
    """The rows of an `ExactIndex`; one driver per database. Each method is one transaction."""

    async def open(self, name: str, space: VectorSpace) -> VectorSpace:
        """The set's space, which is `space` if the set is new."""
        ...

    async def put(self, name: str, dimension: int, entries: Sequence[tuple[Entry, bytes]]) -> None:
        """See `VectorIndex.put`."""
        ...

    async def read_changes(self, name: str, owner: str, since: SetVersion | None) -> VectorChanges | None:
        """The changes since a version, or None for an unknown set."""
        ...

    async def read_items(self, name: str, owner: str, ids: Sequence[str]) -> Mapping[str, Item]:
        """Items by id; leaves out ids that were removed meanwhile."""
        ...

    async def read_vectors(
        self, name: str, owner: str, ids: Sequence[str]
    ) -> tuple[VectorSpace | None, Mapping[str, bytes]]:
        """The set's space, and vectors by id; leaves out unknown ids."""
        ...

    async def list_items(self, name: str, owner: str | None, limit: int, scopes: Sequence[str] | None) -> list[Item]:
        """See `VectorIndex.list_items`."""
        ...

    async def delete(self, name: str, owner: str, ids: Sequence[str]) -> int:
        """See `VectorIndex.delete`."""
        ...

    async def count_larger_than(self, count: int) -> Mapping[str, int]:
        """The sets with more vectors than that of one owner, with their numbers."""
        ...

    async def drop(self, name: str) -> None:
        """See `VectorIndex.drop`."""
        ...


@dataclass(slots=True)
class _Block:
    """The vectors of one owner in one set."""

    version: SetVersion
    ids: list[str]
    scopes: list[str]
    matrix: Vectors


class ExactIndex:
    """Implements `VectorIndex` on `VectorRows`."""

    def __init__(self, rows: VectorRows) -> None:
        self._rows = rows
        self._blocks: OrderedDict[tuple[str, str], _Block] = OrderedDict()
        self._merging: dict[tuple[str, str], asyncio.Lock] = {}

    async def open(self, name: str, space: VectorSpace) -> None:
        """See `VectorIndex.open`."""
        stored = await self._rows.open(name, space)
        if stored != space:
            raise build_space_mismatch_error(name, stored, space)

    async def put(self, name: str, entries: Sequence[Entry]) -> None:
        """See `VectorIndex.put`."""
        if entries:
            packed = [(entry, normalize(entry.vector).tobytes()) for entry in entries]
            dimensions = {len(entry.vector) for entry in entries}
            if len(dimensions) > 1:
                raise VectorSpaceError(
                    f"vectors of different dimensions cannot be mixed: {sorted(dimensions)}", agent_id="memory"
                )
            await self._rows.put(name, dimensions.pop(), packed)

    async def search(
        self, name: str, vector: QueryVector, *, owner: str, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Hit]:
        """See `VectorIndex.search`."""
        block = await self._load_block(name, owner)
        if block is None or not block.ids:
            return []
        query = normalize(compute_query(vector))
        if query.shape[0] != block.matrix.shape[1]:
            raise VectorSpaceError(
                f"the query has {query.shape[0]} numbers, the vectors of {name!r} have {block.matrix.shape[1]}",
                agent_id="memory",
            )
        if block.matrix.size > THREAD_THRESHOLD:
            best = await asyncio.to_thread(_rank, block, query, limit, scopes)
        else:
            best = _rank(block, query, limit, scopes)
        items = await self._rows.read_items(name, owner, [identity for identity, _ in best])
        return [Hit(items[identity], score) for identity, score in best if identity in items]

    async def get_vectors(self, name: str, ids: Sequence[str], *, owner: str) -> StoredVectors:
        """See `VectorIndex.get_vectors`."""
        space, rows = await self._rows.read_vectors(name, owner, ids)
        return StoredVectors(space, {identity: np.frombuffer(row, "<f4") for identity, row in rows.items()})

    async def list_items(
        self, name: str, *, owner: str | None, limit: int, scopes: Sequence[str] | None = None
    ) -> list[Item]:
        """See `VectorIndex.list_items`."""
        return await self._rows.list_items(name, owner, limit, scopes)

    async def delete(self, name: str, ids: Sequence[str], *, owner: str) -> int:
        """See `VectorIndex.delete`."""
        return await self._rows.delete(name, owner, ids)

    async def list_outgrown(self) -> Mapping[str, int]:
        """See `VectorIndex.list_outgrown`."""
        return await self._rows.count_larger_than(MAX_QUICK_VECTORS)

    async def drop(self, name: str) -> None:
        """See `VectorIndex.drop`."""
        for key in [key for key in self._blocks if key[0] == name]:
            del self._blocks[key]
            self._merging.pop(key, None)
        await self._rows.drop(name)

    async def close(self) -> None:
        """Frees the memory. The opener of the database closes it."""
        self._blocks.clear()

    async def _load_block(self, name: str, owner: str) -> _Block | None:
        key = (name, owner)
        block = self._blocks.get(key)
        changes = await self._rows.read_changes(name, owner, block.version if block else None)
        if changes is None:
            return None
        if block is not None and changes.version == block.version:
            return block
        async with self._merging.setdefault(key, asyncio.Lock()):
            block = self._blocks.get(key)  # a concurrent search may have updated it, further even
            if block is None or not changes.version.has_only_additions_until(block.version):
                if _count_numbers(block, changes) > THREAD_THRESHOLD:
                    block = await asyncio.to_thread(_merge_changes, block, changes)
                else:
                    block = _merge_changes(block, changes)
                self._blocks[key] = block
            self._blocks.move_to_end(key)
            self._evict_blocks()
        return block

    def _evict_blocks(self) -> None:
        size = sum(block.matrix.nbytes for block in self._blocks.values())
        while size > CACHE_BYTES and len(self._blocks) > 1:
            _, dropped = self._blocks.popitem(last=False)
            size -= dropped.matrix.nbytes


def build_space_mismatch_error(name: str, stored: VectorSpace, wanted: VectorSpace) -> VectorSpaceError:
    """The error for mixing two spaces in one set."""
    return VectorSpaceError(
        f"the vectors of {name!r} were made by {stored}; {wanted} cannot be mixed with them. Restore "
        "AGENT_EMBEDDER_URL and AGENT_EMBEDDER_MODEL, or run `stepgate memory reindex`",
        agent_id="memory",
    )


def _count_numbers(known: _Block | None, changes: VectorChanges) -> int:
    """Counts the numbers that a merge copies: all of them, since a block is never changed in place."""
    added = sum(len(row.vector) for row in changes.rows) // 4
    return added + (known.matrix.size if known is not None and added else 0)


def _merge_changes(known: _Block | None, changes: VectorChanges) -> _Block:
    """A new block with the changes. Never changes a block in place: a thread may be reading it."""
    ids = [row.id for row in changes.rows]
    scopes = [row.scope for row in changes.rows]
    if known is not None and known.ids and not changes.is_complete:  # an empty block has no dimension to append to
        if not ids:
            return _Block(changes.version, known.ids, known.scopes, known.matrix)
        seen = set(known.ids)
        fresh = [index for index, identity in enumerate(ids) if identity not in seen]
        if not fresh:
            return _Block(changes.version, known.ids, known.scopes, known.matrix)
        matrix = np.vstack([known.matrix, _build_matrix([changes.rows[index] for index in fresh])])
        return _Block(
            changes.version,
            known.ids + [ids[index] for index in fresh],
            known.scopes + [scopes[index] for index in fresh],
            matrix,
        )
    return _Block(changes.version, ids, scopes, _build_matrix(changes.rows))


def _build_matrix(rows: Sequence[VectorRow]) -> Vectors:
    if not rows:
        return np.zeros((0, 0), dtype=np.float32)
    return np.frombuffer(b"".join(row.vector for row in rows), dtype="<f4").reshape(len(rows), -1)


def _rank(block: _Block, query: Vectors, limit: int, scopes: Sequence[str] | None) -> list[tuple[str, float]]:
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


def normalize(vector: Sequence[float]) -> Vectors:
    """The vector with length 1, as it is stored. A zero vector stays unchanged and is similar to nothing."""
    array = np.asarray(vector, dtype="<f4")
    length = float(np.linalg.norm(array))
    if not np.isfinite(length):
        raise VectorSpaceError("a vector contains NaN or infinity", agent_id="memory")
    return np.asarray(array / length, dtype="<f4") if length > 0 else array
