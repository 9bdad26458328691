"""The numbers of progress: they grow with each line, and the total is that of the plan."""

from itertools import pairwise

from mcp_tools.server.progress import StepProgress
from tests.support.builders import completion_step, log, planned, started, tool_step

Line = tuple[float, float | None, str]


async def test_steps_are_counted_against_the_plan_and_a_new_plan_goes_on() -> None:
    lines: list[Line] = []

    async def send(number: float, total: float | None, message: str) -> None:
        lines.append((number, total, message))

    progress = StepProgress(send)
    await progress.send("working")
    first = planned(tool_step("s1"), tool_step("s2"))
    second = planned(tool_step("s3"), completion_step("s9", "s3"), version=1)
    for event in log(first, started("s2"), started("s1"), second, started("s3")):
        await progress.report_event(event, silent=False)
    for _ in range(2_000):  # a tool that says much of its progress
        await progress.send("on it")
    numbers = [number for number, _, _ in lines]
    assert all(before < after for before, after in pairwise(numbers))
    steps = [(number, total) for number, total, message in lines if message.startswith("step ")]
    assert [total for _, total in steps] == [3, 3, 5]
    assert steps[0][0] == 2
    assert 2 < steps[1][0] < 3, "the first step started after the second"
    assert steps[2][0] == 3
    assert numbers[-1] < 4
    assert lines[0] == (0, None, "working")
