"""Tasks that are ended have ended when the caller goes on."""

import asyncio

import pytest

from agent.core.cancellation import cancel_and_wait


async def _work(log: list[str], may_end: asyncio.Event | None = None) -> None:
    """Works until it is cancelled, and then cleans up, which takes until `may_end`."""
    try:
        await asyncio.sleep(60)
    finally:
        await (asyncio.sleep(0) if may_end is None else may_end.wait())
        log.append("cleaned up")


async def _fail() -> None:
    raise ValueError("broken")


async def _start(*tasks: asyncio.Task[None]) -> None:
    """Lets the tasks run up to where they wait."""
    await asyncio.sleep(0)
    assert not all(task.done() for task in tasks)


async def test_the_tasks_have_cleaned_up_and_errors_stay_in_them() -> None:
    log: list[str] = []
    working, failing = asyncio.create_task(_work(log)), asyncio.create_task(_fail())
    await _start(working, failing)
    assert await cancel_and_wait(working, failing) == set()
    assert (log, working.cancelled(), str(failing.exception())) == (["cleaned up"], True, "broken")
    assert await cancel_and_wait() == set()


async def test_a_task_that_does_not_end_in_time_is_returned() -> None:
    log: list[str] = []
    slow, quick = asyncio.create_task(_work(log, asyncio.Event())), asyncio.create_task(_work(log))
    await _start(slow, quick)
    assert await cancel_and_wait(slow, quick, timeout_s=0.05) == {slow}
    assert log == ["cleaned up"]
    assert await cancel_and_wait(slow) == set(), "the second cancellation ends the cleaning up"
    assert log == ["cleaned up"]


async def test_the_cancellation_of_the_caller_is_raised() -> None:
    log: list[str] = []
    may_end = asyncio.Event()
    working = asyncio.create_task(_work(log, may_end))
    await _start(working)
    caller = asyncio.create_task(cancel_and_wait(working))
    await asyncio.sleep(0)  # it waits
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert (caller.cancelled(), working.done(), log) == (True, False, [])
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert log == ["cleaned up"]
