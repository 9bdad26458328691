"""`cancel_on_disconnect`: work that ends when its client disconnects."""

import asyncio

import pytest
from fastapi import Request
from starlette.types import Message

from gateway.doors.http_runs import cancel_on_disconnect
from gateway.render.error_responses import ClientDisconnectedError


def make_request(left: asyncio.Event) -> Request:
    """A request whose client disconnects when `left` is set."""

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http", "headers": []}, receive)


async def test_result_and_error_of_the_work_are_passed_on() -> None:
    async def fail() -> None:
        raise ValueError("of the work")

    request = make_request(asyncio.Event())
    assert await cancel_on_disconnect(request, asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="of the work"):
        await cancel_on_disconnect(request, fail())


async def test_disconnect_cancels_the_work_and_nothing_else() -> None:
    left, was_cancelled = asyncio.Event(), False

    async def work() -> None:
        nonlocal was_cancelled
        left.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled = True
            raise

    with pytest.raises(ClientDisconnectedError):
        await cancel_on_disconnect(make_request(left), work())
    assert was_cancelled
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)  # not cancelled once more


async def test_disconnect_after_the_work_cancels_nothing() -> None:
    left = asyncio.Event()

    async def work() -> str:
        await asyncio.sleep(0)  # the watcher waits
        left.set()
        return "done"

    assert await cancel_on_disconnect(make_request(left), work()) == "done"
    await asyncio.sleep(0.01)


async def test_cancellation_of_the_request_is_no_disconnect() -> None:
    request = make_request(asyncio.Event())
    waiting = asyncio.create_task(cancel_on_disconnect(request, asyncio.Event().wait()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
