"""`ThrottledLog`: logs a problem that lasts when it starts, now and then with a count, and when it is over."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from agent.core.errors import AgentError

REMIND_SECONDS = 300.0
"""How long a problem lasts before it is logged again."""


class ThrottledLog:
    """Logs the failures of one loop that retries, without filling the log with a line for each. Not thread-safe."""

    def __init__(self, log: logging.Logger, what: str, clock: Callable[[], float] = monotonic) -> None:
        self._log = log
        self._what = what
        self._clock = clock
        self._kind: str | None = None
        self._times = 0
        self._began = self._told = 0.0

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Logs what the body raises, and lets the loop go on: its task would end without a word. A defect is logged
        with its trace.
        """
        try:
            yield
        except AgentError as error:
            self.record_failure(error.message, error.code)
        except Exception as error:  # noqa: BLE001 - the border of a loop: a defect ends one turn of it
            self.record_failure(f"an internal error: {error!r}", type(error).__name__, defect=error)
        else:
            self.record_recovery()

    def record_failure(self, why: str, kind: str = "", *, defect: Exception | None = None) -> None:
        """Records one more failure. Logs at once if its `kind` (an error code) differs from the last one."""
        now = self._clock()
        if self._kind is None:
            self._began, self._times = now, 0
        self._times += 1
        if self._kind != kind:
            self._log.error("%s: %s", self._what, why, exc_info=defect)
        elif now - self._told >= REMIND_SECONDS:
            self._log.error("%s for %d s, %d times so far: %s", self._what, now - self._began, self._times, why)
        else:
            return
        self._kind, self._told = kind, now

    def record_recovery(self) -> None:
        """Records a success. Logs if it follows a failure."""
        if self._kind is None:
            return
        self._kind = None
        lasted = self._clock() - self._began
        self._log.warning("recovered after %.0f s and %d failures: %s", lasted, self._times, self._what)
