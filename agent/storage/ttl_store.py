"""`TtlStore`: values with a time to live, as lists, locks and counters. In this process by default, in Redis by URL.

Nothing here is the only copy: what must not be lost is in the database, and readers can do without a value.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

SWEEP_INTERVAL = 256
"""How many changes of a `LocalTtlStore` lie between two removals of expired values."""


class TtlStore(Protocol):
    """The contract; `tests/contract/ttl_store_contract.py` tests every implementation. Times to live are in seconds.
    Methods raise `StoreError` if the server is unreachable.
    """

    async def append(self, key: str, *values: str, ttl_s: float, most: int) -> None:
        """Appends values to a list and sets its time to live. Removes the oldest values beyond `most`."""
        ...

    async def list_values(self, key: str) -> list[str]:
        """The values of a list, oldest first; none once it has expired."""
        ...

    async def touch(self, key: str, ttl_s: float) -> bool:
        """Resets the time to live of a list. Returns whether it still existed."""
        ...

    async def delete(self, key: str) -> None:
        """Removes a list or counter."""
        ...

    async def acquire(self, key: str, token: str, ttl_s: float) -> bool:
        """Takes a lock with `token`. Returns False while another token holds it. The lock expires after `ttl_s`."""
        ...

    async def release(self, key: str, token: str) -> bool:
        """Releases a lock. Returns False and changes nothing if this token no longer holds it."""
        ...

    async def increment(self, key: str, window_s: float) -> int:
        """Increments a counter and returns its value. The first increment starts the window, after which it expires."""
        ...

    async def get_ttl(self, key: str) -> float:
        """The seconds that a list, lock or counter has left; 0 once it has expired."""
        ...

    async def describe_location(self) -> str:
        """Names the place of the values, in a few words. Raises `StoreError` if that place is unreachable."""
        ...

    async def aclose(self) -> None:
        """Closes connections."""
        ...


@dataclass
class _Entry:
    until: float
    values: list[str] = field(default_factory=list)
    count: int = 0


class LocalTtlStore:
    """Implements `TtlStore` in this process. Other processes do not see the values, and they end with this process."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._changes = 0

    async def append(self, key: str, *values: str, ttl_s: float, most: int) -> None:
        """See `TtlStore.append`."""
        entry = self._get_live(key) or self._create(key, ttl_s)
        entry.values = [*entry.values, *values][-most:]
        entry.until = self._clock() + ttl_s

    async def list_values(self, key: str) -> list[str]:
        """See `TtlStore.list_values`."""
        entry = self._get_live(key)
        return list(entry.values) if entry is not None else []

    async def touch(self, key: str, ttl_s: float) -> bool:
        """See `TtlStore.touch`."""
        entry = self._get_live(key)
        if entry is not None:
            entry.until = self._clock() + ttl_s
        return entry is not None

    async def delete(self, key: str) -> None:
        """See `TtlStore.delete`."""
        self._entries.pop(key, None)

    async def acquire(self, key: str, token: str, ttl_s: float) -> bool:
        """See `TtlStore.acquire`."""
        if self._get_live(key) is not None:
            return False
        self._create(key, ttl_s).values = [token]
        return True

    async def release(self, key: str, token: str) -> bool:
        """See `TtlStore.release`."""
        entry = self._get_live(key)
        if entry is None or entry.values != [token]:
            return False
        del self._entries[key]
        return True

    async def increment(self, key: str, window_s: float) -> int:
        """See `TtlStore.increment`."""
        entry = self._get_live(key) or self._create(key, window_s)
        entry.count += 1
        return entry.count

    async def get_ttl(self, key: str) -> float:
        """See `TtlStore.get_ttl`."""
        entry = self._get_live(key)
        return entry.until - self._clock() if entry is not None else 0.0

    async def describe_location(self) -> str:
        """See `TtlStore.describe_location`."""
        return "in this process"

    async def aclose(self) -> None:
        """See `TtlStore.aclose`."""
        self._entries.clear()

    def _get_live(self, key: str) -> _Entry | None:
        entry = self._entries.get(key)
        return entry if entry is not None and entry.until > self._clock() else None

    def _create(self, key: str, ttl_s: float) -> _Entry:
        self._changes += 1
        if self._changes % SWEEP_INTERVAL == 0:
            now = self._clock()
            self._entries = {name: entry for name, entry in self._entries.items() if entry.until > now}
        entry = self._entries[key] = _Entry(self._clock() + ttl_s)
        return entry
