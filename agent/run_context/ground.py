"""What planners are told without asking: the sources of the `<ground>` block. The composition root connects them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

FILES_SECONDS = 5.0
"""How long a listing of the readable folders is used again: a walk for every request would cost more than its use."""


@dataclass(frozen=True, slots=True)
class GroundFile:
    """A readable file: its path as the file tools take it, and when it was changed (UTC seconds since 1970)."""

    path: str
    modified: float


async def _no_collections(_: str) -> Mapping[str, int]:
    return {}


@dataclass(slots=True)
class GroundSources:
    """Where the ground of a run comes from. `walk_files` blocks; collections are an owner's, with document counts;
    instructions are those of foreign MCP servers, by name.
    """

    walk_files: Callable[[], Sequence[GroundFile]] = tuple
    list_collections: Callable[[str], Awaitable[Mapping[str, int]]] = _no_collections
    list_instructions: Callable[[], Mapping[str, str]] = dict
    _files: Sequence[GroundFile] = ()
    _walked: float = field(default=float("-inf"))

    async def list_files(self) -> Sequence[GroundFile]:
        """Returns the readable files, at most some seconds old. Raises `OSError`."""
        if monotonic() - self._walked > FILES_SECONDS:
            self._files = await asyncio.to_thread(self.walk_files)
            self._walked = monotonic()
        return self._files
