"""Rate limits by named entries: each entry has an amount and counts for some seconds.

Used for requests and tokens a minute and for parallel runs. In this process by default; in Redis
(`rate_limiter_redis.py`) for several gateways together.
"""

import heapq
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agent.core.errors import StoreError

log = logging.getLogger(__name__)

LOCAL_FALLBACK_SECONDS = 5.0
"""How long a process counts for itself after the shared rate limiter failed, before it tries that again."""


@dataclass(frozen=True, slots=True)
class MeterReading:
    """The state of a meter. `reset_seconds` is the time until more is free: until there is room for a refused entry,
    else until the first entry expires.
    """

    is_allowed: bool
    remaining: int
    reset_seconds: float


class RateLimiter(Protocol):
    """The interface; `tests/contract/rate_limiter_contract.py` tests every implementation."""

    async def acquire(self, meter: str, name: str, amount: int, *, limit: int, seconds: float) -> MeterReading:
        """Adds an entry that counts for `seconds` if the limit allows it. Checks and adds in one step. An entry of the
        same name and amount is renewed: it counts once."""
        ...

    async def read(self, meter: str, limit: int) -> MeterReading:
        """The meter's current state."""
        ...

    async def replace(self, meter: str, name: str, amount: int, by: int, *, seconds: float = 0.0) -> None:
        """Replaces an entry's amount, whatever the limit is, also if the entry has expired; `by=0` removes it."""
        ...

    async def aclose(self) -> None:
        """Closes connections."""
        ...


@dataclass(slots=True)
class _Window:
    total: int = 0
    entries: dict[str, tuple[float, int]] = field(default_factory=dict)
    ends: list[tuple[float, str]] = field(default_factory=list)
    """A heap of expiry times; a replaced entry leaves its old one until that is popped."""


class LocalRateLimiter:
    """Implements `RateLimiter` in this process. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    async def acquire(self, meter: str, name: str, amount: int, *, limit: int, seconds: float) -> MeterReading:
        """See `RateLimiter.acquire`."""
        window = self._expire_entries(meter)
        former = window.entries.get(name)
        added = amount if former is None else amount - former[1]
        if window.total + added > limit:
            return MeterReading(
                False, max(0, limit - window.total), self._compute_wait(window, window.total + added - limit)
            )
        self._add_entry(meter, window, name, amount, seconds)
        return MeterReading(True, limit - window.total, self._compute_wait(window, 1))

    async def read(self, meter: str, limit: int) -> MeterReading:
        """See `RateLimiter.read`."""
        window = self._expire_entries(meter)
        return MeterReading(True, max(0, limit - window.total), self._compute_wait(window, 1))

    async def replace(self, meter: str, name: str, amount: int, by: int, *, seconds: float = 0.0) -> None:
        """See `RateLimiter.replace`."""
        window = self._expire_entries(meter)
        if by:
            self._add_entry(meter, window, name, by, seconds)
            return
        former = window.entries.pop(name, None)
        window.total -= former[1] if former is not None else 0
        if not window.entries:
            self._windows.pop(meter, None)

    async def aclose(self) -> None:
        """See `RateLimiter.aclose`."""
        self._windows.clear()

    def _add_entry(self, meter: str, window: _Window, name: str, amount: int, seconds: float) -> None:
        """Adds an entry, in place of one of the same name."""
        until, former = self._clock() + seconds, window.entries.get(name)
        window.entries[name] = (until, amount)
        window.total += amount if former is None else amount - former[1]
        heapq.heappush(window.ends, (until, name))
        self._windows[meter] = window

    def _expire_entries(self, meter: str) -> _Window:
        """The meter's window without its expired entries."""
        window = self._windows.get(meter) or _Window()
        now = self._clock()
        while window.ends and (window.ends[0][0] <= now or self._is_stale(window, window.ends[0])):
            until, name = heapq.heappop(window.ends)
            if not self._is_stale(window, (until, name)):
                window.total -= window.entries.pop(name)[1]
        return window

    def _compute_wait(self, window: _Window, missing: int) -> float:
        """The seconds until `missing` is free, or until everything is free if that is not enough."""
        now, freed, until = self._clock(), 0, 0.0
        first = window.ends[0] if window.ends else None
        if first is not None and not self._is_stale(window, first) and window.entries[first[1]][1] >= missing:
            return first[0] - now
        for end, amount in sorted(window.entries.values()):
            until, freed = end - now, freed + amount
            if freed >= missing:
                break
        return until

    @staticmethod
    def _is_stale(window: _Window, end: tuple[float, str]) -> bool:
        current = window.entries.get(end[1])
        return current is None or current[0] != end[0]


class FallbackRateLimiter:
    """Implements `RateLimiter` over a shared one, and over a local one while the shared one cannot be reached.

    While Redis is down a key may use its limit once for each gateway; no request is refused because of the outage.
    """

    def __init__(self, shared: RateLimiter, own: RateLimiter, clock: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._local = own
        self._clock = clock
        self._local_until = float("-inf")

    async def acquire(self, meter: str, name: str, amount: int, *, limit: int, seconds: float) -> MeterReading:
        """See `RateLimiter.acquire`."""
        if not self._is_local_only:
            try:
                return await self._shared.acquire(meter, name, amount, limit=limit, seconds=seconds)
            except StoreError as error:
                self._fall_back(error)
        return await self._local.acquire(meter, name, amount, limit=limit, seconds=seconds)

    async def read(self, meter: str, limit: int) -> MeterReading:
        """See `RateLimiter.read`."""
        if not self._is_local_only:
            try:
                return await self._shared.read(meter, limit)
            except StoreError as error:
                self._fall_back(error)
        return await self._local.read(meter, limit)

    async def replace(self, meter: str, name: str, amount: int, by: int, *, seconds: float = 0.0) -> None:
        """See `RateLimiter.replace`. An entry that was acquired locally is removed locally too."""
        if not self._is_local_only:
            try:
                await self._shared.replace(meter, name, amount, by, seconds=seconds)
            except StoreError as error:
                self._fall_back(error)
            else:
                await self._local.replace(meter, name, amount, 0)
                return
        await self._local.replace(meter, name, amount, by, seconds=seconds)

    async def aclose(self) -> None:
        """See `RateLimiter.aclose`."""
        await self._shared.aclose()
        await self._local.aclose()

    @property
    def _is_local_only(self) -> bool:
        return self._clock() < self._local_until

    def _fall_back(self, error: StoreError) -> None:
        log.warning("limits of keys are counted by this process only until Redis is back: %s", error.message)
        self._local_until = self._clock() + LOCAL_FALLBACK_SECONDS
