"""`SharedEvent`: wakes every waiter, before or after it is set, and none after it is cleared."""

import asyncio

from agent.core.event_loop import SharedEvent


async def test_a_flag_that_is_raised_wakes_all_who_wait_beside_something_else() -> None:
    flag, never = SharedEvent(), asyncio.get_running_loop().create_future()

    async def first() -> set[asyncio.Future[None]]:
        return (await asyncio.wait((flag.get_future(), never), return_when=asyncio.FIRST_COMPLETED))[0]

    waiting = [asyncio.create_task(first()) for _ in range(2)]
    await asyncio.sleep(0)
    assert not flag.is_set()
    flag.set()
    assert [len(done) for done in await asyncio.gather(*waiting)] == [1, 1]
    assert not never.done()
    never.cancel()


async def test_a_flag_that_was_raised_before_is_seen_at_once() -> None:
    flag = SharedEvent()
    flag.set()
    flag.set()
    assert flag.is_set()
    assert flag.get_future().done()


async def test_a_flag_that_was_taken_down_waits_to_be_raised_again() -> None:
    flag = SharedEvent()
    before = flag.get_future()
    flag.set()
    flag.clear()
    assert before.done()
    assert not flag.is_set()
    assert not flag.get_future().done()


async def test_who_stops_waiting_takes_it_from_nobody() -> None:
    flag = SharedEvent()
    given_up = asyncio.create_task(asyncio.wait((flag.get_future(),)))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    seen = flag.get_future()
    flag.set()
    assert seen.done()
    assert not seen.cancelled()
