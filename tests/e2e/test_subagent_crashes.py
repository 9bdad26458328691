"""`kill -9` in the middle of a sub-agent: the resumed run goes on with the turn it was in."""

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.core.events import Event, ModelReturned, SubAgentStarted, ToolCalled, ToolReturned
from agent.runs.response import build_response
from tests.support.postgres import fresh_database
from tests.support.processes import start
from tests.support.subagent_crash_worker import subagent_crash_bench
from tests.support.subagents import ended


def crash(folder: Path, moment: str, number: int, *database_url: str) -> bool:
    """Run the scenario in a process that dies; whether it got to the end instead."""
    words = [str(folder), moment, str(number), *database_url]
    process = start([sys.executable, "-m", "tests.support.subagent_crash_worker", *words])
    code = process.wait(60)
    assert code in (0, -signal.SIGKILL), "\n".join(process.output)
    return code == 0


async def resume(folder: Path, database_url: str | None = None) -> tuple[list[Event], list[str]]:
    """The whole log after a restart, and what the restarted process asked its model for."""
    async with subagent_crash_bench(folder, database_url=database_url) as bench:
        await bench.service.worker.recover_runs()
        (row,) = await bench.service.list_runs()
        await bench.service.wait_until_stopped(row.run_id)
        return list(await bench.service.read_events(row.run_id)), bench.client.purposes()


def check(events: Sequence[Event], when: str) -> None:
    """It ended as if nothing had happened."""
    assert build_response(events).response == "All done.", when
    finished = ended(events)
    assert {one.span: one.result.data["goal"] for one in finished} == {"s1.1.1": "east", "s1.1.2": "west"}, when
    assert [one.result.data["seen"] for one in finished] == [["saw near", "saw far"]] * 2, when
    assert [one.turns for one in finished] == [3, 3], when
    begun = Counter(event.body.span for event in events if isinstance(event.body, SubAgentStarted))
    assert begun == {"s1.1.1": 1, "s1.1.2": 1}, when
    turns = Counter(
        event.body.span for event in events if isinstance(event.body, ModelReturned) and event.body.message is not None
    )
    assert (turns["s1.1.1"], turns["s1.1.2"]) == (3, 3), f"{when}: a turn that stands in the log is not asked again"
    returned = Counter(event.body.call_id for event in events if isinstance(event.body, ToolReturned))
    assert set(returned.values()) == {1}, when
    assert set(returned) == {event.body.call_id for event in events if isinstance(event.body, ToolCalled)}, when
    assert {step.status for step in build_response(events).steps if step.span is not None} == {"done"}, when


@pytest.mark.row("S000-20")
@pytest.mark.parametrize("number", range(4, 13))
def test_killed_at_every_event_boundary_sub_agents_go_on_where_they_were(tmp_path: Path, number: int) -> None:
    """From the skill's first turn to its last; what lies before and after is the business of `test_crashes.py`."""
    assert not crash(tmp_path, "after", number)
    events, _ = asyncio.run(resume(tmp_path))
    check(events, f"killed after append {number}")


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_killed_inside_a_tool_only_that_call_is_repeated(tmp_path: Path, number: int) -> None:
    assert not crash(tmp_path, "tool", number)
    before = len((tmp_path / "look.log").read_text().split())
    events, asked = asyncio.run(resume(tmp_path))
    check(events, f"killed in call {number}")
    after = len((tmp_path / "look.log").read_text().split())
    # Four looks are needed; at most the two that were under way are done twice.
    assert 4 < after <= 6
    assert before == number
    assert asked.count("planner") == 0
    assert asked.count("subagent") < 6


def test_on_postgresql_sub_agents_go_on_where_they_were(tmp_path: Path) -> None:
    with fresh_database() as url:
        assert not crash(tmp_path, "tool", 3, url)
        events, asked = asyncio.run(resume(tmp_path, database_url=url))
        check(events, "killed in call 3 on PostgreSQL")
    assert not (tmp_path / "data" / "stepgate.db").exists()
    assert asked.count("planner") == 0
    assert asked.count("subagent") < 6, "turns that stand in the log are not asked again"
