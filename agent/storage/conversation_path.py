"""The branches of a conversation: each run follows another one of it, or begins it.

A run that names no parent follows the one before it in time that names none either: conversations without branches are
one line.
"""

from collections.abc import Mapping, Sequence
from typing import Final

ROOT: Final = "root"
"""The parent of a run that begins a conversation, or another branch of it from its beginning."""
SELECT_PARENTS: Final = (
    "SELECT run_id, parent FROM runs WHERE owner = ? AND conversation_id = ? ORDER BY created_at, run_id"
)


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
