"""Answers that somebody waits for: given up when they hang up. Starlette watches for that only in streams."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import Request

from gateway.errors import ClientGoneError

T = TypeVar("T")


async def while_heard(http: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client goes away: `ClientGoneError`. A run that `work` only
    waits for goes on: it is in its owner's list. The body must have been read.

    A request with an `Idempotency-Key` is carried out to its end: its client comes back for the answer."""
    if "idempotency-key" in http.headers:
        return await work
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(http))
    leaving.add_done_callback(lambda _: working.cancel())
    try:
        return await working
    except asyncio.CancelledError as error:
        if leaving.done() and working.cancelled():
            raise ClientGoneError("the client hung up before the answer was there") from error
        raise
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.wait((working, leaving))


async def _gone(http: Request) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass


async def told_of_end(
    frames: AsyncGenerator[str, None], hung_up: Callable[[], Awaitable[None]]
) -> AsyncGenerator[str, None]:
    """The frames of a stream; `hung_up` is called when its client goes away before the last of them."""
    async with aclosing(frames):
        try:
            async for text in frames:
                yield text
        except (GeneratorExit, asyncio.CancelledError):
            await hung_up()
            raise
