"""Ends background tasks: cancels them and waits until they have ended."""

import asyncio
from typing import Any, TypeVar

T = TypeVar("T", bound="asyncio.Future[Any]")


async def cancel_and_wait(*tasks: T, timeout_s: float | None = None) -> set[T]:
    """Cancels the tasks and waits until they have ended. Returns those that have not ended within `timeout_s` seconds.

    Results and errors stay in the tasks, and asyncio logs an error that nobody reads. If the caller is cancelled while
    it waits, `CancelledError` is raised at once: the tasks are cancelled, but may not have ended yet.
    """
    for task in tasks:
        task.cancel()
    if not tasks:
        return set()
    _, unfinished = await asyncio.wait(tasks, timeout=timeout_s)
    return unfinished
