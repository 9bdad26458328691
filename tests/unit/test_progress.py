"""What tools say of their progress: the newest line, in its time, for those who listen."""

import asyncio

from agent.core.progress import RunProgress


async def test_the_newest_line_is_heard_and_only_that_one_is_made() -> None:
    progress, made = RunProgress(), list[str]()

    def line(text: str) -> str:
        made.append(text)
        return text

    progress.publish("run_1", lambda: line("before anybody listens"))
    with progress.listen("run_1", 0.0) as one, progress.listen("run_1", 0.0) as two:
        for number in range(100):
            progress.publish("run_1", lambda number=number: line(f"{number}"))  # type: ignore[misc]
        progress.publish("run_2", lambda: line("of another run"))
        assert (await one.wait_for_next(), await two.wait_for_next()) == ("99", "99")
        waiting = asyncio.ensure_future(one.wait_for_next())
        await asyncio.sleep(0)
        assert not waiting.done()
        progress.publish("run_1", lambda: line("more"))
        assert await waiting == "more"
    progress.publish("run_1", lambda: line("after they have left"))
    assert made == ["99", "99", "more"]


async def test_a_line_that_comes_too_soon_waits_and_who_stops_waiting_loses_none() -> None:
    progress = RunProgress()
    with progress.listen("run_1", 1_000.0) as listener:
        progress.publish("run_1", lambda: "first")
        assert await listener.wait_for_next() == "first"
        progress.publish("run_1", lambda: "second")
        soon = asyncio.ensure_future(listener.wait_for_next())
        done, _ = await asyncio.wait([soon], timeout=0.05)
        assert not done
        soon.cancel()
    with progress.listen("run_1", 0.0) as listener:
        left = asyncio.ensure_future(listener.wait_for_next())
        await asyncio.sleep(0)
        progress.publish("run_1", lambda: "kept")
        left.cancel()
        await asyncio.wait([left])
        assert await listener.wait_for_next() == "kept"


async def test_a_line_that_nobody_has_read_can_be_taken_at_the_end() -> None:
    progress = RunProgress()
    with progress.listen("run_1", 1_000.0) as listener:
        assert listener.take_unread() is None
        progress.publish("run_1", lambda: "last")
        assert listener.take_unread() == "last"
        assert listener.take_unread() is None
    with progress.listen("run_1", 1_000.0) as listener:
        progress.publish("run_1", lambda: "first")
        assert await listener.wait_for_next() == "first"
        progress.publish("run_1", lambda: "too soon")
        assert listener.take_unread() is None
