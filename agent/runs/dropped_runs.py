"""Runs that this process had to drop because the store failed, and when to resume each."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True, slots=True)
class _Drop:
    at: float
    delay_s: float
    waits: bool = True


class DroppedRuns:
    """Has a run that is dropped again and again wait longer each time: resumed, it repeats what was not stored, such as
    model calls, and a full disk stays full for a while.

    A run that is dropped for the first time is due at once, then after `first_s`, twice that, and so on up to
    `longest_s`. `clock` gives seconds of any origin.
    """

    def __init__(self, *, first_s: float, longest_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._clock = clock
        self._drops: dict[str, _Drop] = {}

    def add(self, run_id: str) -> None:
        """Records that a run was dropped now."""
        now = self._clock()
        self._drops = {
            dropped_id: drop for dropped_id, drop in self._drops.items() if drop.waits or not self._is_old(drop, now)
        }
        before = self._drops.get(run_id)
        delay_s = 0.0 if before is None else min(self._longest_s, max(self._first_s, 2 * before.delay_s))
        self._drops[run_id] = _Drop(now, delay_s)

    def list_due(self) -> list[str]:
        """The runs that may be resumed now."""
        now = self._clock()
        return [run_id for run_id, drop in self._drops.items() if drop.waits and drop.at + drop.delay_s <= now]

    def is_early(self, run_id: str) -> bool:
        """Whether to leave the run alone for now."""
        drop = self._drops.get(run_id)
        return drop is not None and drop.waits and self._clock() < drop.at + drop.delay_s

    def record_resumed(self, run_id: str) -> None:
        """Records that a run waits no longer: it was resumed, or another process has it."""
        drop = self._drops.get(run_id)
        if drop is not None:
            self._drops[run_id] = _Drop(drop.at, drop.delay_s, waits=False)

    def _is_old(self, drop: _Drop, now: float) -> bool:
        """Whether a resumed run has lasted so long that its next failure is another one."""
        return now - drop.at > 2 * self._longest_s
