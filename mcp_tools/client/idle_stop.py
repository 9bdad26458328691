"""Tracks calls of an external MCP server, so that it is started on demand and not stopped during a call."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic


class UsageTracker:
    """The calls in progress of one server. It may stop after `patience` seconds without any; None: never."""

    def __init__(self, patience: float | None) -> None:
        self._idle_limit = patience
        self._active_calls = 0
        self._idle_since = monotonic()
        self._in_use = asyncio.Event()

    @contextmanager
    def track_call(self) -> Iterator[None]:
        """Counts a call while the context is open."""
        self._active_calls += 1
        self._in_use.set()
        try:
            yield
        finally:
            self._active_calls -= 1
            if not self._active_calls:
                self._in_use.clear()
                self.restart_idle_timer()

    def restart_idle_timer(self) -> None:
        """Starts to count the idle time from now."""
        self._idle_since = monotonic()

    @property
    def is_idle_too_long(self) -> bool:
        """Whether there was no call for the whole idle limit."""
        return (
            self._idle_limit is not None
            and not self._active_calls
            and monotonic() - self._idle_since >= self._idle_limit
        )

    async def wait_for_call(self, seconds: float) -> bool:
        """Whether a call is in progress, or starts within `seconds`."""
        if seconds > 0 and not self._active_calls:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._in_use.wait()
        return self._active_calls > 0
