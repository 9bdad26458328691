"""`compute_beside_loop`: what takes as long as a text is long runs in a thread if the text is long."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

INLINE_CHARS: Final = 20_000
"""Longer texts are worked on in a thread: a megabyte of addresses, each with a placeholder, took half a second."""
Result = TypeVar("Result")


async def compute_beside_loop(chars: int, compute: Callable[[], Result]) -> Result:
    """The result of a computation over a text of this length, made without holding up the event loop."""
    return await asyncio.to_thread(compute) if chars > INLINE_CHARS else compute()
