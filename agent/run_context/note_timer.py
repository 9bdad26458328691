"""`NoteTimer`: the time at which what runs have noted is appended to their logs, for all runs of a process."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.run_context.run import Run

NOTE_SECONDS = 0.01
"""The longest time before a note is appended without another event."""
MAX_RUNS = 50
"""Most runs whose notes are appended together: the event loop does nothing else meanwhile."""


class NoteTimer:
    """The runs that have noted something. One timer serves them all, so that those of a moment share a transaction."""

    def __init__(self) -> None:
        self._due: dict[Run, float] = {}
        """When to append the notes of a run, in the loop's time; the earliest first."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, run: "Run") -> None:
        """Has the notes of this run appended within `NOTE_SECONDS`."""
        if run in self._due:
            return
        loop = asyncio.get_running_loop()
        self._due[run] = loop.time() + NOTE_SECONDS
        if self._timer is None:
            self._timer = loop.call_later(NOTE_SECONDS, self._append_due)

    def __contains__(self, run: "Run") -> bool:
        """Whether this run's notes are still to be appended by the timer."""
        return run in self._due

    def discard(self, run: "Run") -> None:
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

    def _append(self, runs: Sequence["Run"]) -> None:
        """Appends what runs have noted: in one transaction if the journal needs not be waited for, else by their
        writers."""
        notes = [(run, append) for run in runs if (append := run.list_notes()) is not None]
        logs = notes[0][0].journal.append_now(*(append for _, append in notes)) if notes else None
        for (run, _), events in zip(notes, logs or (), strict=logs is not None):
            run.take_appended(events)
        for run in runs:
            run.write_pending()
