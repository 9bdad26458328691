"""Tasks that are ended have ended when the caller goes on."""

import asyncio

import pytest

from agent.core.cancellation import cancel_and_wait


async def _work(log: list[str], cleanup_s: float = 0.0) -> None:
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(cleanup_s)
        log.append("cleaned up")


async def _fail() -> None:
    raise ValueError("broken")


async def _start(*tasks: asyncio.Task[None]) -> None:
    """Lets the tasks run up to where they wait."""
    await asyncio.sleep(0)
    assert not all(task.done() for task in tasks)


async def test_the_tasks_have_cleaned_up_and_errors_stay_in_them() -> None:
    log: list[str] = []
    working, failing = asyncio.create_task(_work(log, 0.01)), asyncio.create_task(_fail())
    await _start(working, failing)
    assert await cancel_and_wait(working, failing) == set()
    assert (log, working.cancelled(), str(failing.exception())) == (["cleaned up"], True, "broken")
    assert await cancel_and_wait() == set()


async def test_a_task_that_does_not_end_in_time_is_returned() -> None:
    log: list[str] = []
    slow, quick = asyncio.create_task(_work(log, 0.2)), asyncio.create_task(_work(log))
    await _start(slow, quick)
    assert await cancel_and_wait(slow, quick, timeout_s=0.05) == {slow}
    assert log == ["cleaned up"]
    assert await cancel_and_wait(slow) == set(), "the second cancellation ends the cleaning up"
    assert log == ["cleaned up"]


async def test_the_cancellation_of_the_caller_is_raised() -> None:
    log: list[str] = []
    working = asyncio.create_task(_work(log, 0.05))
    await _start(working)
    caller = asyncio.create_task(cancel_and_wait(working))
    await asyncio.sleep(0.01)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert (caller.cancelled(), working.done(), log) == (True, False, [])
    with pytest.raises(asyncio.CancelledError):
        await working
    assert log == ["cleaned up"]
