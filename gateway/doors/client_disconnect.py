"""Stops work when the client disconnects. Starlette watches for that only in streams."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import Request

from gateway.errors import ClientDisconnectedError

T = TypeVar("T")


async def cancel_on_disconnect(http: Request, work: Coroutine[Any, Any, T]) -> T:
    """Awaits `work`; cancels it and raises `ClientDisconnectedError` if the client disconnects.

    A run that `work` only waits for continues: its owner finds it in the list of runs. The body must have been read. A
    request with an `Idempotency-Key` is carried out to its end: its client comes back for the answer.
    """
    if "idempotency-key" in http.headers:
        return await work
    request_task = asyncio.current_task()
    assert request_task is not None
    cancellations = request_task.cancelling()
    is_disconnected = False

    async def cancel_request() -> None:
        nonlocal is_disconnected
        while (await http.receive())["type"] != "http.disconnect":
            pass
        is_disconnected = True
        request_task.cancel()

    # `work` needs no task of its own: as in `asyncio.timeout`, another task cancels this one.
    watcher = asyncio.create_task(cancel_request())
    try:
        return await work
    except asyncio.CancelledError as error:
        if is_disconnected and request_task.uncancel() <= cancellations:
            raise ClientDisconnectedError("the client disconnected before the answer was ready") from error
        raise
    finally:
        watcher.cancel()


async def notify_on_disconnect(
    frames: AsyncGenerator[str, None], hung_up: Callable[[], Awaitable[None]]
) -> AsyncGenerator[str, None]:
    """Yields the frames of a stream; calls `hung_up` if the client disconnects before the last one."""
    async with aclosing(frames):
        try:
            async for text in frames:
                yield text
        except (GeneratorExit, asyncio.CancelledError):
            await hung_up()
            raise
