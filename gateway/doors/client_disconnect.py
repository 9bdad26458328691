"""Stops work when the client disconnects. Starlette watches for that only in streams."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import Request

from agent.core.cancellation import cancel_and_wait
from gateway.errors import ClientDisconnectedError

T = TypeVar("T")


async def cancel_on_disconnect(http: Request, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of `work`; cancels it and raises `ClientDisconnectedError` if the client disconnects.

    A run that `work` only waits for continues: its owner finds it in the list of runs. The body must have been read. A
    request with an `Idempotency-Key` is carried out to its end: its client comes back for the answer.
    """
    if "idempotency-key" in http.headers:
        return await work
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_wait_for_disconnect(http))
    leaving.add_done_callback(lambda _: working.cancel())
    try:
        return await working
    except asyncio.CancelledError as error:
        if leaving.done() and working.cancelled():
            raise ClientDisconnectedError("the client disconnected before the answer was ready") from error
        raise
    finally:
        await cancel_and_wait(working, leaving)


async def _wait_for_disconnect(http: Request) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass


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
