"""`NoteTimer`: appends the notes of all runs of a process that no emitted event has followed in time.

A note (`Run.note`) is usually appended with the next event that its run emits. The timer is for the others.
"""

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
    """The runs that have notes to append. One timer serves all of them, so that their notes share a transaction."""

    def __init__(self) -> None:
        self._due: dict[Run, float] = {}
        """When to append the notes of a run, in the loop's time; the earliest first."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, run: "Run") -> None:
        """Appends the notes of this run after `NOTE_SECONDS`, unless the run appends them before."""
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
        """Forgets a run whose notes were appended."""
        self._due.pop(run, None)

    def _append_due(self) -> None:
        """Appends the notes that are due. Newer ones wait for the next time, because more of them usually follow."""
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
        """Appends the notes of these runs in one transaction, if the journal can do so without waiting. Otherwise, and
        for notes that `Run.list_notes` leaves to them, the writer tasks of the runs append them.
        """
        notes = [(run, append) for run in runs if (append := run.list_notes()) is not None]
        logs = notes[0][0].journal.append_now(*(append for _, append in notes)) if notes else None
        for (run, _), events in zip(notes, logs or (), strict=logs is not None):
            run.take_appended(events)
        for run in runs:
            run.write_pending()
