"""What is told of a trouble that lasts: that it began, now and then how often it was met, and that it is over."""

import logging
from collections.abc import Callable
from time import monotonic

REMIND_SECONDS = 300.0
"""How long a trouble lasts before it is told again."""


class Outage:
    """The trouble of one loop that tries again and again, told without filling the log: a line a second says no more
    than the first one did. Not for several threads."""

    def __init__(self, log: logging.Logger, what: str, clock: Callable[[], float] = monotonic) -> None:
        self._log = log
        self._what = what
        self._clock = clock
        self._kind: str | None = None
        self._times = 0
        self._began = self._told = 0.0

    def met(self, why: str, kind: str = "") -> None:
        """It failed once more. Another `kind` (an error code) than before is told at once."""
        now = self._clock()
        if self._kind is None:
            self._began, self._times = now, 0
        self._times += 1
        if self._kind != kind:
            self._log.error("%s: %s", self._what, why)
        elif now - self._told >= REMIND_SECONDS:
            self._log.error("%s for %d s, %d times by now: %s", self._what, now - self._began, self._times, why)
        else:
            return
        self._kind, self._told = kind, now

    def over(self) -> None:
        """It went well."""
        if self._kind is None:
            return
        self._kind = None
        lasted = self._clock() - self._began
        self._log.warning("over after %.0f s, met %d times: %s", lasted, self._times, self._what)
