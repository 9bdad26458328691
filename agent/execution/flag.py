"""`Flag`: raised by one side of a run, and looked for by the other beside whatever else that waits for."""

import asyncio


class Flag:
    """Raised until it is cleared. An `asyncio.Event` takes a kilobyte of each run, and a task to be waited for beside
    something else; this one takes a future, and only where somebody waits."""

    __slots__ = ("_raised", "_seen")

    def __init__(self) -> None:
        self._raised = False
        self._seen: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        """Whether it is raised."""
        return self._raised

    def set(self) -> None:
        """Raise it, and wake who waits."""
        self._raised = True
        if self._seen is not None and not self._seen.done():
            self._seen.set_result(None)

    def clear(self) -> None:
        """Take it down, for who waits from now on."""
        self._raised = False
        self._seen = None

    def seen(self) -> asyncio.Future[None]:
        """Done once it is raised. The same for all who wait: for `asyncio.wait`, which leaves it as it is, never to be
        awaited or cancelled by itself."""
        if self._seen is None:
            self._seen = asyncio.get_running_loop().create_future()
            if self._raised:
                self._seen.set_result(None)
        return self._seen
