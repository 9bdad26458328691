"""The two drivers of the workflow, our loop and LangGraph's graph, held equal on the trace of the same requests."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.core.models import AgentRequest, AgentResponse, Budgets, Room
from agent.execution import workflow
from agent.execution.graph import build_langgraph_driver, compile_graph
from agent.execution.workflow import ROUTES, STAGES, StageName, drive, render_mermaid
from agent.run_context.run import Run
from tests.support.engine import engine_bench
from tests.support.script import Script, judges, plans, says, script
from tests.support.tools import FunctionTool, returning

Driver = Callable[[Run], Awaitable[None]]
DRIVERS: dict[str, Callable[[], Driver]] = {"loop": lambda: drive, "langgraph": build_langgraph_driver}


@dataclass(frozen=True)
class Scenario:
    """A request, and what the model and the tools do about it."""

    prompt: str
    model: Callable[[], Script] | None = None
    tools: Callable[[], list[FunctionTool]] = list
    room: Room = field(default_factory=lambda: Room(id="test"))
    status: str = "complete"
    request: dict[str, Any] = field(default_factory=dict)


def failing_then_good() -> Script:
    return script(
        plans({"tool": "bad"}, times=1),
        plans({"tool": "good"}, {"tool": "completion", "depends_on": ["s1"]}),
        says("All is well.", to="completion"),
    )


SCENARIOS = {
    "rules": Scenario("What is 17.5 * 240, and what time is it in Stockholm?"),
    "greeting": Scenario("hello", lambda: script(says("Hi!", to="completion"))),
    "plan": Scenario(
        "search and compute it",
        lambda: script(
            plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
            says("It is 42.", to="completion"),
        ),
    ),
    "replan": Scenario(
        "search the good thing",
        failing_then_good,
        lambda: [returning("bad", {"error": "it is broken"}), returning("good", "all is well here")],
    ),
    "judged away": Scenario(
        "search the thing",
        lambda: script(plans({"tool": "thing"}), judges("ABORT", "it is hopeless")),
        lambda: [returning("thing", "something else altogether")],
        Room(id="test", supervision="always"),
        "aborted",
    ),
    "budget": Scenario(
        "search the thing",
        lambda: script(plans({"tool": "thing"}), judges("SUCCESS")),
        lambda: [returning("thing", "something else altogether")],
        Room(id="test", supervision="always", budgets=Budgets(max_model_calls=1)),
        "aborted",
    ),
    "no other way": Scenario(
        "",
        None,
        lambda: [returning("thing", {"error": "it is broken"})],
        status="partial",
        request={"metadata": {"tool_calls": [{"tool": "thing"}]}},
    ),
    "swedish": Scenario(
        "Jämför de två anbuden och säg vilket som är billigast",
        lambda: script(
            says("Compare the two offers.", to="translator", about="<request>"),
            says("Anbud A är billigare.", to="translator"),
            plans({"tool": "thing"}, {"tool": "completion", "depends_on": ["s1"]}),
            says("Offer A is cheaper.", to="completion"),
        ),
        lambda: [returning("thing", "A costs 10, B costs 20")],
    ),
}


def shape(response: AgentResponse) -> list[tuple[object, ...]]:
    """The trace without times, step by step: which of two steps side by side ends first is nobody's promise."""
    entries = [
        (s.type, s.title, s.status, s.step_id, s.attempt, s.detail.get("outcome"), s.detail.get("reason"))
        for s in response.steps
    ]
    return sorted(entries, key=lambda entry: str(entry[3]))


@pytest.mark.parametrize("name", SCENARIOS)
async def test_both_drivers_leave_the_same_trace(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = SCENARIOS[name]
    passed: list[StageName] = []

    def noted(stage: StageName, work: Callable[[Run], Awaitable[None]]) -> Callable[[Run], Awaitable[None]]:
        async def stage_of(run: Run) -> None:
            passed.append(stage)
            await work(run)

        return stage_of

    monkeypatch.setattr(workflow, "STAGES", {stage: noted(stage, work) for stage, work in STAGES.items()})
    shapes, walks = [], []
    for driver, make in DRIVERS.items():
        passed.clear()
        model = scenario.model() if scenario.model else None
        async with engine_bench(
            tmp_path / driver, model, tools=scenario.tools(), room=scenario.room, driver=make()
        ) as bench:
            response = await bench.run(scenario.prompt, **scenario.request)
        assert response.metadata["status"] == scenario.status, response.response
        shapes.append(shape(response))
        walks.append(list(passed))
    assert walks[0] == walks[1]
    assert shapes[0] == shapes[1]
    taken = zip(walks[0], [*walks[0][1:], None], strict=True)
    assert all(then in ROUTES[stage] for stage, then in taken), "every route that is taken is drawn"


@pytest.mark.parametrize("make", DRIVERS.values(), ids=DRIVERS)
async def test_a_run_is_cancelled_drained_and_resumed_under_either_driver(
    make: Callable[[], Driver], tmp_path: Path
) -> None:
    entered = asyncio.Event()

    async def wait(_: dict[str, Any]) -> str:
        entered.set()
        await asyncio.sleep(60)
        return "never"

    calls = {"metadata": {"tool_calls": [{"tool": "wait"}]}}
    async with engine_bench(tmp_path, None, tools=[FunctionTool("wait", wait)], driver=make()) as bench:
        cancelled = await bench.service.start_run(AgentRequest(**calls))
        async with asyncio.timeout(20):
            await entered.wait()
            await bench.service.cancel_run(cancelled)
            assert (await bench.service.wait_for_response(cancelled)).metadata["status"] == "cancelled"
        entered.clear()
        left = await bench.service.start_run(AgentRequest(**calls))
        async with asyncio.timeout(20):
            await entered.wait()
            assert await bench.service.worker.begin_drain(0) == 1
    async with engine_bench(tmp_path, None, tools=[returning("wait", "done now")], driver=make()) as bench:
        await bench.service.worker.recover_runs()
        async with asyncio.timeout(20):
            assert (await bench.service.wait_for_response(left)).response == "done now"


def test_the_workflow_can_be_drawn() -> None:
    drawn = render_mermaid()
    assert drawn.startswith("flowchart TD")
    assert "    execute --> plan" in drawn
    graph = compile_graph().get_graph()
    edges = {(edge.source, edge.target) for edge in graph.edges if edge.source != "__start__"}
    assert edges == {(stage, then or "__end__") for stage, follow in ROUTES.items() for then in follow}
