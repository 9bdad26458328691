"""The door of `make eval-peers` in a world: the gateway's tools over MCP, and its questions before calls."""

from typing import Literal

import pytest
from aiohttp import ClientSession

from gateway.features.evaluation import world
from gateway.features.evaluation.conversation import ToolUse
from gateway.features.evaluation.task_files import EvalTask, load_tasks
from gateway.features.evaluation.world import compare_snapshots, open_world
from tests.bench.endpoint import Endpoint
from tests.bench.native_loops.loop_door import LoopDoor, SimulatedUser, choose_toolsets, open_door
from tests.support import warm

NO_MODEL = Endpoint("http://127.0.0.1:9/v1", "m")


@pytest.fixture(autouse=True)
def warm_gateways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways of worlds begin with their imports done."""
    monkeypatch.setattr(world, "GATEWAY_COMMAND", warm.LazyCommand("gateway.cli", "serve"))


def find_task() -> EvalTask:
    """A task whose solution is one call of a tool that a person must allow."""
    for task in load_tasks():
        steps = task.solution.steps
        if len(steps) == 1 and steps[0].tool in task.world.approve_tools:
            return task
    raise AssertionError("no task asks for an approval")


@pytest.mark.parametrize("reply", ["approve", "reject"])
async def test_a_call_that_needs_an_approval_is_asked_about_and_obeys_the_answer(
    reply: Literal["approve", "reject"],
) -> None:
    task = find_task()
    [step] = task.solution.steps
    user = SimulatedUser(reply)
    async with open_world(task, {}) as place:
        before = place.take_snapshot()
        async with open_door(place.url, choose_toolsets(task.world), NO_MODEL, user) as door:
            offered = {tool["name"]: tool for tool in await door.list_tools()}
            done = await call(door, step.tool, dict(step.inputs))
            sum_of = await call(door, "calculator", {"expression": "6*7"})
        changes = compare_snapshots(before, place.take_snapshot())
    assert {"calculator", "current_time", "read_file", step.tool} <= offered.keys()
    assert not {"agent_run", "tools_find", "room_create"} & offered.keys()
    assert offered[step.tool]["schema"]["properties"].keys() >= step.inputs.keys()
    assert "42" in sum_of
    assert user.questions == 1, "the calculator changes nothing"
    assert door.uses == [ToolUse(tool=step.tool, ok=reply == "approve"), ToolUse(tool="calculator", ok=True)]
    assert bool(changes) is (reply == "approve"), done


async def call(door: LoopDoor, name: str, arguments: dict[str, object]) -> str:
    """The text of a call's result, by the route that a framework's process uses."""
    async with (
        ClientSession() as http,
        http.post(f"{door.url}/call", json={"name": name, "arguments": arguments}) as it,
    ):
        return str((await it.json())["text"])
