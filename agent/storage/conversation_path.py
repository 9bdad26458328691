"""The branches of a conversation: each run follows another one of it, or begins it.

A run that names no parent follows the one before it in time that names none either: conversations without branches are
one line.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

ROOT: Final = "root"
"""The parent of a run that begins a conversation, or another branch of it from its beginning."""
SELECT_PARENTS: Final = (
    "SELECT run_id, parent FROM runs WHERE owner = ? AND conversation_id = ? ORDER BY created_at, run_id"
)


class ConversationTurns(ABC):
    """What both databases answer from the newest turns of a branch: the reading half of `ConversationStore`."""

    @abstractmethod
    async def _read_turns(
        self, columns: str, owner: str, conversation_id: str, limit: int, parent: str | None
    ) -> list[tuple[Any, ...]]:
        """Two columns of the newest turns, newest first, without those of other branches than `parent`'s."""

    async def list_turns(
        self, owner: str, conversation_id: str, *, limit: int = 40, parent: str | None = None
    ) -> list[tuple[str, str]]:
        """See `ConversationStore.list_turns`."""
        rows = await self._read_turns("role, text", owner, conversation_id, limit, parent)
        return [(str(role), str(text)) for role, text in reversed(rows)]

    async def list_answer_runs(
        self, owner: str, conversation_id: str, *, limit: int = 40, parent: str | None = None
    ) -> list[str]:
        """See `ConversationStore.list_answer_runs`."""
        rows = await self._read_turns("run_id, role", owner, conversation_id, limit, parent)
        return [str(run_id) for run_id, role in reversed(rows) if role == "assistant"]

    async def find_last_run(self, owner: str, conversation_id: str, *, parent: str | None = None) -> str | None:
        """See `ConversationStore.find_last_run`."""
        rows = await self._read_turns("run_id, id", owner, conversation_id, 1, parent)
        return str(rows[0][0]) if rows else None

    async def is_tainted(self, owner: str, conversation_id: str, *, limit: int = 40, parent: str | None = None) -> bool:
        """See `ConversationStore.is_tainted`."""
        rows = await self._read_turns("tainted, id", owner, conversation_id, limit, parent)
        return any(bool(tainted) for tainted, _ in rows)


def resolve_parents(runs: Sequence[tuple[str, str | None]]) -> dict[str, str | None]:
    """The run that each run follows, None for one that begins. `runs` are ids and stored parents by time."""
    parents: dict[str, str | None] = {}
    last: str | None = None
    for run_id, parent in runs:
        parents[run_id] = last if parent is None else None if parent == ROOT else parent
        last = run_id if parent is None else last
    return parents


def find_path(parents: Mapping[str, str | None], end: str) -> list[str]:
    """The runs from the beginning to `end`. It begins later if one of them was deleted."""
    path: list[str] = []
    at: str | None = end
    while at is not None and at in parents and at not in path[-1:]:
        path.append(at)
        at = parents[at]
        if len(path) > len(parents):  # a circle, which no request can make
            break
    return path[::-1]


def find_excluded(runs: Sequence[tuple[str, str | None]], end: str) -> list[str]:
    """The runs of the other branches: all that do not lead to `end`."""
    path_ids = set(find_path(resolve_parents(runs), end))
    return [run_id for run_id, _ in runs if run_id not in path_ids]
