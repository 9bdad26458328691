"""Progress messages of tools, for callers that wait for the run in this process. They are not stored: a run is its log,
and past progress is not part of it.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

LineFactory = Callable[[], str]
"""Formats one line when it is read. Most lines never are."""


class ProgressListener:
    """Receives the newest progress line of one run, at most one per `pause_s` seconds."""

    def __init__(self, pause_s: float) -> None:
        self._pause = pause_s
        self._again = 0.0
        self._newest: LineFactory | None = None
        self._said = asyncio.Event()

    def put(self, line: LineFactory) -> None:
        """Makes this the newest line. Replaces one that was not read yet."""
        self._newest = line
        self._said.set()

    async def wait_for_next(self) -> str:
        """Waits for a line and for the pause since the last one, and returns the newest line."""
        await asyncio.sleep(max(0.0, self._again - monotonic()))
        await self._said.wait()
        self._said.clear()
        self._again = monotonic() + self._pause
        return self._newest() if self._newest is not None else ""

    def take_unread(self) -> str | None:
        """The newest line if it was not read yet and the pause since the last one is over."""
        if not self._said.is_set() or self._newest is None or monotonic() < self._again:
            return None
        self._said.clear()
        return self._newest()


class RunProgress:
    """The listeners of this process, by run."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[ProgressListener]] = {}

    @contextmanager
    def listen(self, run_id: str, pause_s: float) -> Iterator[ProgressListener]:
        """Listens to a run from now on, whichever part of this process executes it."""
        listener = ProgressListener(pause_s)
        self._listeners.setdefault(run_id, []).append(listener)
        try:
            yield listener
        finally:
            self._listeners[run_id].remove(listener)
            if not self._listeners[run_id]:
                del self._listeners[run_id]

    def publish(self, run_id: str, line: LineFactory) -> None:
        """Sends a line to all listeners of a run without waiting."""
        for listener in self._listeners.get(run_id, ()):
            listener.put(line)
