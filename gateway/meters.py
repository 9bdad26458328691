"""Meters: how much of something a key has used within a while, and whether there is room for more.

Requests and tokens a minute, and runs at the same time, are all this: named entries of an amount, each of which counts
for some seconds. In this process by default; in Redis (`meters_redis.py`) for several gateways together.
"""

import heapq
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agent.core.errors import StoreError

log = logging.getLogger(__name__)

ALONE_SECONDS = 5.0
"""How long each process counts for itself after the shared meters could not be reached, until it tries them again."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a meter says: whether the entry was taken, what is left of the limit, and seconds until more is: until there
    is room for an entry that was not taken, else until the first one ends."""

    taken: bool
    left: int
    seconds: float


class Meters(Protocol):
    """The interface; `tests/contract/meters_contract.py` holds every implementation to it."""

    async def take(self, meter: str, name: str, amount: int, *, limit: int, seconds: float) -> Reading:
        """Add an entry that counts for so long, if the limit has room for it: looked at and added in one step."""
        ...

    async def look(self, meter: str, limit: int) -> Reading:
        """The meter as it stands."""
        ...

    async def replace(self, meter: str, name: str, amount: int, by: int, *, seconds: float = 0.0) -> None:
        """Put another amount in an entry's place, whatever the limit is, also where the entry is not there any more;
        0 takes it away."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


@dataclass(slots=True)
class _Meter:
    total: int = 0
    entries: dict[str, tuple[float, int]] = field(default_factory=dict)
    ends: list[tuple[float, str]] = field(default_factory=list)
    """A heap; entries that were replaced leave theirs behind until it comes up."""


class LocalMeters:
    """Implements `Meters` in this process. `clock` gives seconds that only go forwards."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._meters: dict[str, _Meter] = {}

    async def take(self, meter: str, name: str, amount: int, *, limit: int, seconds: float) -> Reading:
        """See `Meters.take`."""
        found = self._slid(meter)
        if found.total + amount > limit:
            return Reading(False, max(0, limit - found.total), self._until(found, found.total + amount - limit))
        self._put(meter, found, name, amount, seconds)
        return Reading(True, limit - found.total, self._until(found, 1))

    async def look(self, meter: str, limit: int) -> Reading:
        """See `Meters.look`."""
        found = self._slid(meter)
        return Reading(True, max(0, limit - found.total), self._until(found, 1))

    async def replace(self, meter: str, name: str, amount: int, by: int, *, seconds: float = 0.0) -> None:
        """See `Meters.replace`."""
        found = self._slid(meter)
        known = found.entries.pop(name, None)
        found.total -= known[1] if known is not None else 0
        if by:
            self._put(meter, found, name, by, seconds)
        elif not found.entries:
            self._meters.pop(meter, None)

    async def aclose(self) -> None:
        """See `Meters.aclose`."""
        self._meters.clear()

    def _put(self, meter: str, found: _Meter, name: str, amount: int, seconds: float) -> None:
        until = self._clock() + seconds
        found.entries[name] = (until, amount)
        found.total += amount
        heapq.heappush(found.ends, (until, name))
        self._meters[meter] = found

    def _slid(self, meter: str) -> _Meter:
        """The meter without what has ended."""
        found = self._meters.get(meter) or _Meter()
        now = self._clock()
        while found.ends and (found.ends[0][0] <= now or self._left_behind(found, found.ends[0])):
            until, name = heapq.heappop(found.ends)
            if not self._left_behind(found, (until, name)):
                found.total -= found.entries.pop(name)[1]
        return found

    def _until(self, found: _Meter, missing: int) -> float:
        """Seconds until so much more is free; all of it, where that is not enough."""
        now, freed, until = self._clock(), 0, 0.0
        first = found.ends[0] if found.ends else None
        if first is not None and found.entries[first[1]][1] >= missing:
            return first[0] - now
        for end, amount in sorted(found.entries.values()):
            until, freed = end - now, freed + amount
            if freed >= missing:
                break
        return until

    @staticmethod
    def _left_behind(found: _Meter, end: tuple[float, str]) -> bool:
        known = found.entries.get(end[1])
        return known is None or known[0] != end[0]


class SharedMeters:
    """Implements `Meters` over those that processes share, and over those of this process while they cannot be reached:
    a Redis that is down lets a key pass its limits once for each gateway, and stops nobody."""

    def __init__(self, shared: Meters, own: Meters, clock: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._own = own
        self._clock = clock
        self._alone_until = float("-inf")

    async def take(self, meter: str, name: str, amount: int, *, limit: int, seconds: float) -> Reading:
        """See `Meters.take`."""
        if not self._alone:
            try:
                return await self._shared.take(meter, name, amount, limit=limit, seconds=seconds)
            except StoreError as error:
                self._left_alone(error)
        return await self._own.take(meter, name, amount, limit=limit, seconds=seconds)

    async def look(self, meter: str, limit: int) -> Reading:
        """See `Meters.look`."""
        if not self._alone:
            try:
                return await self._shared.look(meter, limit)
            except StoreError as error:
                self._left_alone(error)
        return await self._own.look(meter, limit)

    async def replace(self, meter: str, name: str, amount: int, by: int, *, seconds: float = 0.0) -> None:
        """See `Meters.replace`. What was taken alone is given back alone too."""
        if not self._alone:
            try:
                await self._shared.replace(meter, name, amount, by, seconds=seconds)
            except StoreError as error:
                self._left_alone(error)
            else:
                await self._own.replace(meter, name, amount, 0)
                return
        await self._own.replace(meter, name, amount, by, seconds=seconds)

    async def aclose(self) -> None:
        """See `Meters.aclose`."""
        await self._shared.aclose()
        await self._own.aclose()

    @property
    def _alone(self) -> bool:
        return self._clock() < self._alone_until

    def _left_alone(self, error: StoreError) -> None:
        log.warning("limits of keys are counted by this process alone until Redis is back: %s", error.message)
        self._alone_until = self._clock() + ALONE_SECONDS
