"""What tools say of their progress, for those who wait for the run in this process. Nothing of it is kept: a run is its
log, and how far a call was half a minute ago is no part of it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

Line = Callable[[], str]
"""Makes one line: most are never read."""


class Listener:
    """What is said of one run, for one who listens: the newest line, at most one in `pause_s` seconds."""

    def __init__(self, pause_s: float) -> None:
        self._pause = pause_s
        self._again = 0.0
        self._newest: Line | None = None
        self._said = asyncio.Event()

    def put(self, line: Line) -> None:
        """Let this be the newest; one that was not read by now is forgotten."""
        self._newest = line
        self._said.set()

    async def next(self) -> str:
        """The newest line, once there is one and the pause since the last is over."""
        await asyncio.sleep(max(0.0, self._again - monotonic()))
        await self._said.wait()
        self._said.clear()
        self._again = monotonic() + self._pause
        return self._newest() if self._newest is not None else ""


class RunProgress:
    """Who listens to which run of this process."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener]] = {}

    @contextmanager
    def heard(self, run_id: str, pause_s: float) -> Iterator[Listener]:
        """Listen to what is said of a run from now on, whoever of this process carries it out."""
        listener = Listener(pause_s)
        self._listeners.setdefault(run_id, []).append(listener)
        try:
            yield listener
        finally:
            self._listeners[run_id].remove(listener)
            if not self._listeners[run_id]:
                del self._listeners[run_id]

    def tell(self, run_id: str, line: Line) -> None:
        """Say something of a run to everybody who listens; it waits for nobody."""
        for listener in self._listeners.get(run_id, ()):
            listener.put(line)
