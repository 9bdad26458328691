"""`MeasuredValues`: what was measured of collections, kept for an hour."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

VALID_SECONDS: Final = 3600.0
"""How long a measured value is valid."""
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class MeasuredValues(Generic[_Key, _Value]):
    """One value for each key. Concurrent first readers of a key measure once, and nobody waits for another key: a
    measurement may take as long as a slow embedder.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._values: dict[_Key, tuple[float, _Value]] = {}
        self._locks: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()

    async def get(self, key: _Key, measure: Callable[[], Awaitable[_Value]]) -> _Value:
        """The value of a key, measured if it is missing or too old. Raises what `measure` raises."""
        if self._is_valid(key):
            return self._values[key][1]
        async with self._locks.setdefault(key, asyncio.Lock()):
            if not self._is_valid(key):
                value = await measure()
                self._values[key] = (self._clock(), value)
            return self._values[key][1]

    def _is_valid(self, key: _Key) -> bool:
        measured = self._values.get(key)
        return measured is not None and self._clock() - measured[0] < VALID_SECONDS
