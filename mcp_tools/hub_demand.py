"""Who needs a foreign MCP server at the moment: it is started for them, and not stopped while they are there."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic


class Demand:
    """The callers of one server. `patience`: seconds it runs on without any; None for ever."""

    def __init__(self, patience: float | None) -> None:
        self._patience = patience
        self._callers = 0
        self._since = monotonic()
        self._there = asyncio.Event()

    @contextmanager
    def caller(self) -> Iterator[None]:
        """Somebody who needs it."""
        self._callers += 1
        self._there.set()
        try:
            yield
        finally:
            self._callers -= 1
            if not self._callers:
                self._there.clear()
                self.begin()

    def begin(self) -> None:
        """Count the time without callers from now on."""
        self._since = monotonic()

    @property
    def over(self) -> bool:
        """Whether nobody has needed it for long enough."""
        return self._patience is not None and not self._callers and monotonic() - self._since >= self._patience

    async def comes(self, seconds: float) -> bool:
        """Whether there is a caller, at once or within so many seconds."""
        if seconds > 0 and not self._callers:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._there.wait()
        return self._callers > 0
