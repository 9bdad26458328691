"""Ends background tasks: cancels them and waits until they have ended."""

import asyncio
from time import monotonic
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


async def cancel_until_ended(*tasks: T, timeout_s: float, again_s: float = 1.0) -> set[T]:
    """Cancels the tasks every `again_s` seconds until they have ended. Returns those that have not ended within
    `timeout_s` seconds.

    For tasks in foreign code that can lose a cancellation, for example one that coincides with an anyio cancel scope's.
    """
    unfinished = set(tasks)
    deadline = monotonic() + timeout_s
    while unfinished and (left := deadline - monotonic()) > 0:
        unfinished = await cancel_and_wait(*unfinished, timeout_s=min(left, again_s))
    return unfinished
