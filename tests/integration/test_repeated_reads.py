"""Identical read-only calls of a run are made once; a call that may have changed something ends that."""

import asyncio
from pathlib import Path

import pytest

from agent.core.models import Room
from tests.integration.test_engine import write_skill
from tests.support.engine import engine_bench
from tests.support.script import Call, judges, plans, says, script
from tests.support.tools import EFFECT, FunctionTool, returning

JOIN = {"tool": "completion"}


@pytest.mark.parametrize("depends_on", [[], ["s1"]], ids=["at once", "one after the other"])
async def test_two_steps_that_read_the_same_share_one_call(tmp_path: Path, depends_on: list[str]) -> None:
    orders = returning("orders", "17 orders", "18 orders")
    model = script(
        plans(
            {"tool": "orders", "inputs": {"x": "May"}},
            {"tool": "orders", "inputs": {"x": "May"}, "depends_on": depends_on},
            JOIN,
        ),
        says("17 in both.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[orders]) as bench:
        response = await bench.run("compare the orders of May with those of May")
    results = response.metadata["tool_results"]
    assert response.metadata["status"] == "complete"
    assert len(orders.calls) == 1
    assert [(result["text"], result.get("same_as")) for result in results] == [
        ("17 orders", None),
        ("17 orders", "s1.1.1"),
    ]


async def test_other_arguments_are_another_call(tmp_path: Path) -> None:
    orders = returning("orders", "17 orders")
    model = script(
        plans({"tool": "orders", "inputs": {"x": "May"}}, {"tool": "orders", "inputs": {"x": "June"}}, JOIN),
        says("17 each.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[orders]) as bench:
        await bench.run("how many orders?")
    assert len(orders.calls) == 2


async def test_after_a_change_it_is_read_again(tmp_path: Path) -> None:
    orders = returning("orders", "17 orders", "18 orders")
    add = returning("add_order", "added", annotations=EFFECT)
    model = script(
        plans(
            {"tool": "orders", "inputs": {"x": "May"}},
            {"tool": "add_order", "inputs": {"x": "one"}, "depends_on": ["s1"]},
            {"tool": "orders", "inputs": {"x": "May"}, "depends_on": ["s2"]},
            JOIN,
        ),
        says("17 orders before, 18 orders after.", to="completion"),
    )
    room = Room(id="test", approval="never")
    async with engine_bench(tmp_path, model, tools=[orders, add], room=room) as bench:
        response = await bench.run("add an order and show the numbers before and after")
    assert [result["text"] for result in response.metadata["tool_results"]] == ["17 orders", "added", "18 orders"]
    assert len(orders.calls) == 2


async def test_a_step_that_is_done_again_reads_again(tmp_path: Path) -> None:
    orders = returning("orders", "half a list", "17 orders")
    model = script(
        plans({"tool": "orders", "inputs": {"x": "May"}}, JOIN),
        judges("RETRY", "half of it is missing", about="half a list", times=1),
        judges("SUCCESS"),
        says("17 orders.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[orders], room=Room(id="test", supervision="always")) as bench:
        response = await bench.run("how many orders?")
    assert (len(orders.calls), response.response) == (2, "17 orders.")


async def test_a_call_that_failed_is_made_again_for_the_other_step(tmp_path: Path) -> None:
    orders = returning("orders", ConnectionError("gone"), "17 orders")
    model = script(
        plans({"tool": "orders", "inputs": {"x": "May"}}, {"tool": "orders", "inputs": {"x": "May"}}, JOIN, times=1),
        says("17 orders.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[orders], tool_max_retries=0) as bench:
        response = await bench.run("how many orders?")
    assert response.response == "17 orders."
    assert {result["text"] for result in response.metadata["tool_results"] if result["ok"]} == {"17 orders"}


async def test_a_skill_that_asks_again_gets_a_new_answer_but_not_twice_in_one_turn(tmp_path: Path) -> None:
    """A model that looks again after a while waits for a change; one that asks twice at once stutters."""
    states = ["running", "done"]

    async def look(args: object) -> str:
        await asyncio.sleep(0.5)  # long enough for both calls of the turn to begin
        return states.pop(0)

    job = FunctionTool("job", look)
    write_skill(tmp_path / "skills", "watch", "job")
    model = script(
        plans({"tool": "watch", "inputs": {"task": "wait for job 7"}}),
        says(to="skill", times=1, calls=(Call("job", {"x": "7"}, "a"), Call("job", {"x": "7"}, "b"))),
        says(to="skill", times=1, calls=(Call("job", {"x": "7"}, "c"),)),
        says("Job 7 is done.", to="skill"),
    )
    async with engine_bench(tmp_path / "data", model, tools=[job], skill_roots=[tmp_path / "skills"]) as bench:
        response = await bench.run("wait for job 7")
    assert response.response == "Job 7 is done."
    assert [result["text"] for result in response.metadata["tool_results"]] == ["running", "running", "done"]
    assert len(job.calls) == 2
