"""`gather_all`: awaits several calls at the same time and raises the first failure itself."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def gather_all(calls: Iterable[Awaitable[T]]) -> list[T]:
    """The results of the calls, in order.

    If one fails, the others are cancelled and have ended before its error is raised. It is raised alone: callers that
    handle `StoreError` would miss it in a group.
    """

    async def run(call: Awaitable[T]) -> T:
        return await call

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(call)) for call in calls]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
