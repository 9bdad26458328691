"""The time of a database's server, so that the machines that share it agree on when a lease ends."""

import time
from collections.abc import Awaitable, Callable

SYNCHRONIZE_SECONDS = 60.0
"""How often the server's time is read. Clocks drift by some milliseconds in a minute, unless somebody sets them."""


class ServerClock:
    """Gives the server's time in UTC seconds since 1970: the local time plus the offset last measured.

    Before the first `synchronize` it gives the local time.
    """

    def __init__(self, local: Callable[[], float] = time.time) -> None:
        self._local = local
        self.offset = 0.0
        """Seconds by which the server is ahead of this machine."""

    def __call__(self) -> float:
        """The server's time."""
        return self._local() + self.offset

    async def synchronize(self, read_time: Callable[[], Awaitable[float]]) -> None:
        """Measures the offset to within half the time that `read_time` takes, and raises what it raises.

        `read_time` asks the server for its time in UTC seconds since 1970.
        """
        before = self._local()
        server = await read_time()
        self.offset = server - (before + self._local()) / 2
