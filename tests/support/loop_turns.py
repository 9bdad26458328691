"""Measures how long a test holds the event loop, in CPU time of its thread, whatever else the machine does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import thread_time

from tests.support.machine import get_slowness

MAX_TURN_S = 0.25 * get_slowness()
"""CPU seconds of one iteration of the loop after which somebody who asks for `/health` notices, on this machine."""


class LongestTurn:
    """The CPU seconds of the longest iteration so far."""

    seconds = 0.0


@asynccontextmanager
async def measuring_turns() -> AsyncIterator[LongestTurn]:
    """Measures every iteration of the loop that runs the block."""
    longest = LongestTurn()

    async def measure() -> None:
        while True:
            before = thread_time()
            await asyncio.sleep(0)
            longest.seconds = max(longest.seconds, thread_time() - before)

    task = asyncio.create_task(measure())
    try:
        yield longest
    finally:
        task.cancel()
        await asyncio.wait((task,))
