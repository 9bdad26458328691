"""Shared by the MCP servers of the evaluation's worlds: `StateFile`, hints about tools, and how they fail."""

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

READ = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
EFFECT = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
DELETE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

UNAVAILABLE = "temporarily unavailable, try again"
"""The error of a call that succeeds when it is repeated."""

State = dict[str, Any]


class StateFile:
    """The state of all servers of a world, shared by their processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "state.json"

    def load(self) -> State:
        """The current state."""
        state: State = json.loads(self._path.read_text("utf-8"))
        return state

    @contextmanager
    def change(self) -> Iterator[State]:
        """Yields the state and stores it afterwards; nothing is stored after an exception."""
        with (self.folder / "state.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.load()
            yield state
            draft = self._path.with_suffix(".tmp")
            draft.write_text(json.dumps(state, ensure_ascii=False), "utf-8")
            draft.replace(self._path)

    def count_call(self, name: str) -> int:
        """Counts the calls of this name, this one included. Calls are not part of the state."""
        with (self.folder / f"calls-{name}").open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write("x")
            return file.tell()

    def fail_first_calls(self, name: str, count: int) -> None:
        """Raises `ToolError` for the first `count` calls with this name."""
        if self.count_call(name) <= count:
            raise ToolError(UNAVAILABLE)


BuildServer = Callable[[StateFile], MCPServer]
"""Builds a server on the state of a world."""


def find_record(records: Mapping[str, Any], key: str, kind: str) -> Any:
    """A record. Raises `ToolError` that names the known keys."""
    if key not in records:
        raise ToolError(f"there is no {kind} {key!r}; known: {', '.join(records) or 'none'}")
    return records[key]
