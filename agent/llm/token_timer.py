"""`TokenTimer`: ends a stream that sends no token for too long, whatever else it sends."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class TokenTimer:
    """Limits the time until the first token, from now, and the time between tokens, to `limit_s` seconds each.

    Heartbeats and bytes that complete no token do not count. Neither does the time in which the reader of the tokens is
    busy. One timer of the event loop is set again only when it has run out: a token costs no more than a look at the
    clock.
    """

    def __init__(self, limit_s: float) -> None:
        self.has_expired = False
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._since: float | None = self._loop.time()
        self._handle: asyncio.TimerHandle | None = None
        self._expire: Callable[[], None] | None = None
        self._has_token = False

    @contextmanager
    def watch(self, expire: Callable[[], None]) -> Iterator[None]:
        """Calls `expire` when the limit is reached within the block."""
        self._expire = expire
        self._check()
        try:
            yield
        finally:
            if self._handle is not None:
                self._handle.cancel()

    def stop(self, *, is_token: bool = True) -> None:
        """Notes a token, and stops the clock while its reader is busy. Anything else changes nothing."""
        if is_token:
            self._since, self._has_token = None, True

    def restart(self) -> None:
        """Starts the time until the next token, if the clock was stopped."""
        if self._since is None:
            self._since = self._loop.time()

    def shorten(self, limit_s: float) -> None:
        """Sets a shorter limit for what remains."""
        if limit_s < self._limit_s and self._handle is not None:
            self._limit_s = limit_s
            self._handle.cancel()
            self._check()

    @property
    def has_token(self) -> bool:
        """Whether a token came."""
        return self._has_token

    def _check(self) -> None:
        now = self._loop.time()
        since = now if self._since is None else self._since
        if now < since + self._limit_s:
            self._handle = self._loop.call_at(since + self._limit_s, self._check)
            return
        self.has_expired = True
        if self._expire is not None:
            self._expire()
