"""What a tool reports just before its call ends reaches the client all the same."""

import asyncio

import pytest

from agent.core.progress import RunProgress
from mcp_tools.server.progress import ProgressRelay, StepProgress


@pytest.mark.parametrize("is_read", [False, True], ids=["not read yet", "read by the relay"])
async def test_the_line_that_comes_with_the_end_of_the_work_is_sent(*, is_read: bool) -> None:
    sent: list[str] = []

    async def send(number: float, total: float | None, message: str) -> None:
        sent.append(message)

    progress, work = RunProgress(), asyncio.get_running_loop().create_future()
    with progress.listen("run_1", 0.0) as listener:
        relay = ProgressRelay(StepProgress(send), listener, "working")
        waiting = asyncio.ensure_future(relay.wait_for(work))
        await asyncio.sleep(0.01 if is_read else 0)
        progress.publish("run_1", lambda: "half")
        work.set_result(7)
        assert await waiting == 7
        assert not sent
        await relay.send_last()
        await relay.send_last()
        relay.close()
    assert sent == ["half"]
