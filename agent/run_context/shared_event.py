"""`SharedEvent`: an event that several tasks wait for beside other futures."""

import asyncio


class SharedEvent:
    """Like `asyncio.Event`, but lighter: set until it is cleared.

    An `asyncio.Event` takes a kilobyte per run, and a task to be waited for beside other futures. This takes one
    future, and only while something waits.
    """

    __slots__ = ("_is_set", "_waiter")

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        """Returns whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Sets it and wakes the waiting tasks."""
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        """Clears it for later waiters."""
        self._is_set = False
        self._waiter = None

    def when_set(self) -> asyncio.Future[None]:
        """Returns a future that is done once the event is set, shared by all waiters.

        Pass it to `asyncio.wait`, which leaves it as it is. Never await or cancel it directly.
        """
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop().create_future()
            if self._is_set:
                self._waiter.set_result(None)
        return self._waiter
