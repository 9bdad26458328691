"""The start of external MCP servers: a few at a time, each within its own limit, and visible while it lasts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from mcp_tools.client.idle_stop import UsageTracker

MAX_STARTING = 8
"""Servers of one gateway that start at the same time: a start runs a program, and many at once would slow all."""
_FOREVER_S = 86_400.0


class StartQueue:
    """Lets a few servers start at the same time; the others wait. A server that is called does not wait."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_STARTING)

    @asynccontextmanager
    async def wait_for_turn(self, usage: UsageTracker) -> AsyncIterator[None]:
        """Holds a slot while the context is open; none if a call of the server came before its turn."""
        is_held = await self._acquire(usage)
        try:
            yield
        finally:
            if is_held:
                self._slots.release()

    async def _acquire(self, usage: UsageTracker) -> bool:
        """Whether a slot is held; False once the server is called."""
        turn = asyncio.ensure_future(self._slots.acquire())
        call = asyncio.ensure_future(usage.wait_for_call(_FOREVER_S))
        is_held = False
        try:
            await asyncio.wait((turn, call), return_when=asyncio.FIRST_COMPLETED)
            is_held = turn.done()
            return is_held
        finally:
            call.cancel()
            if not is_held and not turn.cancel():  # it came with the cancellation
                self._slots.release()


class StartClock:
    """How long a server has been starting. It is in one of three states: not starting, waiting its turn, started."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._is_waiting = False
        self._began: float | None = None

    def wait(self) -> None:
        """Marks that the server waits for its turn."""
        self._is_waiting, self._began = True, None

    def start(self) -> None:
        """Marks the beginning of the start."""
        self._is_waiting, self._began = False, monotonic()

    def stop(self) -> None:
        """Marks the end of the start: the server is ready, or the start has failed."""
        self._is_waiting, self._began = False, None

    @property
    def is_running(self) -> bool:
        """Whether the server is starting, or waits for its turn."""
        return self._is_waiting or self._began is not None

    @property
    def is_half_over(self) -> bool:
        """Whether more of the limit has passed than is left, so that a second start as long as the first would be cut
        off."""
        return self._began is not None and monotonic() - self._began > self.limit_s / 2

    def describe(self) -> str:
        """The progress in a few words; empty unless the server is starting."""
        if self._is_waiting:
            return "waiting for other servers to start"
        if self._began is None:
            return ""
        return f"starting for {monotonic() - self._began:.0f} s, at most {self.limit_s:g} s"
