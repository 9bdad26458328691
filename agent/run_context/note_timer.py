"""`NoteTimer`: the time at which what runs have noted is appended to their logs, for all runs of a process."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

NOTE_SECONDS = 0.01
"""The longest time before a note is appended without another event."""
MAX_RUNS = 50
"""Most runs whose notes are appended together: the event loop does nothing else meanwhile."""

Noting = TypeVar("Noting")


class NoteTimer(Generic[Noting]):
    """The runs that have noted something. One timer serves them all, so that those of a moment share a transaction."""

    def __init__(self, append: Callable[[Sequence[Noting]], None]) -> None:
        self._append = append
        self._due: dict[Noting, float] = {}
        """When the notes of a run are to be appended, in the loop's time; the earliest first."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, run: Noting) -> None:
        """Has the notes of this run appended within `NOTE_SECONDS`."""
        if run in self._due:
            return
        loop = asyncio.get_running_loop()
        self._due[run] = loop.time() + NOTE_SECONDS
        if self._timer is None:
            self._timer = loop.call_later(NOTE_SECONDS, self._append_due)

    def __contains__(self, run: Noting) -> bool:
        """Returns whether this run's notes are still to be appended by the timer."""
        return run in self._due

    def discard(self, run: Noting) -> None:
        """Forgets a run without notes."""
        self._due.pop(run, None)

    def _append_due(self) -> None:
        """Appends what was noted a while ago; what was noted just now waits, since more of it follows."""
        loop = asyncio.get_running_loop()
        self._timer = None
        latest = loop.time() + NOTE_SECONDS / 2
        runs = [run for run, at in self._due.items() if at <= latest][:MAX_RUNS]
        for run in runs:
            del self._due[run]
        if self._due:
            self._timer = loop.call_at(next(iter(self._due.values())), self._append_due)
        if runs:
            self._append(runs)
