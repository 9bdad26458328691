"""Beyond asyncio: turns for short computations, an event that is awaited beside futures, long work in a thread."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

INLINE_CHARS: Final = 20_000
"""Longer texts are worked on in a thread: a megabyte of addresses, each with a placeholder, took half a second."""
Result = TypeVar("Result")


async def compute_beside_loop(chars: int, compute: Callable[[], Result]) -> Result:
    """The result of a computation over a text of this length, made without holding up the event loop."""
    return await asyncio.to_thread(compute) if chars > INLINE_CHARS else compute()


class LoopTurns:
    """Lets one task compute in each iteration of the event loop.

    Tasks that wake in the same iteration run one after the other before anything else does: eight searches that compute
    for 3 ms each hold everybody up for 24 ms. In turns, other tasks run in between. For computations too short for a
    thread, which would wait for Python's lock anyway.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Waits for the turn. The context must not await anything."""
        async with self._lock:
            await asyncio.sleep(0)
            yield


class SharedEvent:
    """Like `asyncio.Event`, but smaller: set until it is cleared.

    An `asyncio.Event` takes a kilobyte per run, and needs a task to be awaited together with other futures. This takes
    one future, and only while a task waits.
    """

    __slots__ = ("_is_set", "_waiter")

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        """Whether the event is set."""
        return self._is_set

    def set(self) -> None:
        """Sets the event and wakes the waiting tasks."""
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        """Clears the event for later waiters."""
        self._is_set = False
        self._waiter = None

    def get_future(self) -> asyncio.Future[None]:
        """A future, shared by all waiters, that is done once the event is set.

        Pass it to `asyncio.wait`, which does not change it. Do not await or cancel it directly.
        """
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop().create_future()
            if self._is_set:
                self._waiter.set_result(None)
        return self._waiter
