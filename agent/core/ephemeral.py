"""What is kept for a while only: lists of messages, locks and counts. In this process by default, in Redis by URL.

Nothing here is the truth of anything: what must not be lost is in the store, and whoever reads here can do without.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

SWEEP_EVERY = 256
"""In process: how many changes between two looks for what has expired."""


class Ephemeral(Protocol):
    """The interface; `tests/contract/ephemeral_contract.py` holds every implementation to it. Times to live are in
    seconds. Methods raise `StoreError` where the server cannot be reached."""

    async def append(self, key: str, *values: str, ttl_s: float, most: int) -> None:
        """Put values at the end of a list, which lives for `ttl_s` from now on; beyond `most` the oldest go."""
        ...

    async def values(self, key: str) -> list[str]:
        """The values of a list, oldest first; none once it has expired."""
        ...

    async def touch(self, key: str, ttl_s: float) -> bool:
        """Let a list live for `ttl_s` from now on; whether it was still there."""
        ...

    async def forget(self, key: str) -> None:
        """Remove a list or a count."""
        ...

    async def acquire(self, key: str, token: str, ttl_s: float) -> bool:
        """Take a lock for whoever knows `token`; False while another has it. It is free again after `ttl_s`."""
        ...

    async def release(self, key: str, token: str) -> bool:
        """Give a lock back; False when it was no longer held with this token, and then nothing changes."""
        ...

    async def count(self, key: str, window_s: float) -> int:
        """Count one more within the window that the first one opened; how many there are by now."""
        ...

    async def left(self, key: str) -> float:
        """How many seconds a list, lock or count still lives; 0 when it is gone."""
        ...

    async def check(self) -> str:
        """Where things are kept, in a few words."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


@dataclass
class _Entry:
    until: float
    values: list[str] = field(default_factory=list)
    count: int = 0


class LocalEphemeral:
    """Implements `Ephemeral` in this process: other processes see nothing of it, and it ends with this one."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._changes = 0

    async def append(self, key: str, *values: str, ttl_s: float, most: int) -> None:
        """See `Ephemeral.append`."""
        entry = self._alive(key) or self._put(key, ttl_s)
        entry.values = [*entry.values, *values][-most:]
        entry.until = self._clock() + ttl_s

    async def values(self, key: str) -> list[str]:
        """See `Ephemeral.values`."""
        entry = self._alive(key)
        return list(entry.values) if entry is not None else []

    async def touch(self, key: str, ttl_s: float) -> bool:
        """See `Ephemeral.touch`."""
        entry = self._alive(key)
        if entry is not None:
            entry.until = self._clock() + ttl_s
        return entry is not None

    async def forget(self, key: str) -> None:
        """See `Ephemeral.forget`."""
        self._entries.pop(key, None)

    async def acquire(self, key: str, token: str, ttl_s: float) -> bool:
        """See `Ephemeral.acquire`."""
        if self._alive(key) is not None:
            return False
        self._put(key, ttl_s).values = [token]
        return True

    async def release(self, key: str, token: str) -> bool:
        """See `Ephemeral.release`."""
        entry = self._alive(key)
        if entry is None or entry.values != [token]:
            return False
        del self._entries[key]
        return True

    async def count(self, key: str, window_s: float) -> int:
        """See `Ephemeral.count`."""
        entry = self._alive(key) or self._put(key, window_s)
        entry.count += 1
        return entry.count

    async def left(self, key: str) -> float:
        """See `Ephemeral.left`."""
        entry = self._alive(key)
        return entry.until - self._clock() if entry is not None else 0.0

    async def check(self) -> str:
        """See `Ephemeral.check`."""
        return "in this process"

    async def aclose(self) -> None:
        """See `Ephemeral.aclose`."""
        self._entries.clear()

    def _alive(self, key: str) -> _Entry | None:
        entry = self._entries.get(key)
        return entry if entry is not None and entry.until > self._clock() else None

    def _put(self, key: str, ttl_s: float) -> _Entry:
        self._changes += 1
        if self._changes % SWEEP_EVERY == 0:
            now = self._clock()
            self._entries = {name: entry for name, entry in self._entries.items() if entry.until > now}
        entry = self._entries[key] = _Entry(self._clock() + ttl_s)
        return entry
