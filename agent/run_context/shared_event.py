"""`SharedEvent`: an event that several tasks can await together with other futures."""

import asyncio


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
