"""The data sources of the planner's `<ground>` block. The composition root connects them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from agent.core.models import Room

FILES_SECONDS = 5.0
"""Seconds for which a listing of the readable folders is reused, because a walk for every request is expensive."""


@dataclass(frozen=True, slots=True)
class GroundFile:
    """A readable file: its path for the file tools, and its modification time (UTC seconds since 1970)."""

    path: str
    modified: float


async def _list_no_collections(_: str) -> Mapping[str, int]:
    return {}


async def _measure_nothing(_: str, __: Room, ___: str, ____: str) -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class GroundCollections:
    """The documents of a ground. `list_collections` returns an owner's collections with document counts.
    `measure_relevance(owner, room, query, collection)` returns the relevance of the best passage for a query, 0 to 1; 0
    if none is relevant enough. An empty collection stands for all of the room's.
    """

    list_collections: Callable[[str], Awaitable[Mapping[str, int]]] = _list_no_collections
    measure_relevance: Callable[[str, Room, str, str], Awaitable[float]] = _measure_nothing


NO_COLLECTIONS = GroundCollections()


@dataclass(slots=True)
class GroundSources:
    """The sources of a run's ground. `walk_files` blocks. `list_instructions` returns the instructions of foreign MCP
    servers by server name.
    """

    walk_files: Callable[[], Sequence[GroundFile]] = tuple
    list_instructions: Callable[[], Mapping[str, str]] = dict
    collections: GroundCollections = NO_COLLECTIONS
    _files: Sequence[GroundFile] = ()
    _walked: float = field(default=float("-inf"))

    async def list_files(self) -> Sequence[GroundFile]:
        """The readable files, at most `FILES_SECONDS` old. Raises `OSError`."""
        if monotonic() - self._walked > FILES_SECONDS:
            self._files = await asyncio.to_thread(self.walk_files)
            self._walked = monotonic()
        return self._files
