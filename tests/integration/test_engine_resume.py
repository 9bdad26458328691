"""What the next process makes of an interrupted run: nothing is repeated, and nothing stale is taken for new."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agent.core import events as ev
from agent.core.errors import StoreError
from agent.core.models import AgentRequest, AgentResponse, JsonObject, Room
from agent.tools import Tool, ToolContext, ToolResult
from tests.integration.test_engine import ALWAYS, write_skill
from tests.support.engine import Bench
from tests.support.faulty import Gate, at_event, bounded_bench, disturbed, failing
from tests.support.script import Call, Script, judges, plans, says, script
from tests.support.tools import EFFECT, IDEMPOTENT, FunctionTool, returning

UNKNOWN = "may or may not have happened"
RETRIED = '<output step="s1" tool="ground">\nground number 1'
"""What the judge is shown of the first output of step `s1`."""


async def run_interrupted(
    folder: Path, model: Script, prompt: str, gate: Gate, tools: Sequence[Tool], **bench: Any
) -> str:
    """A run whose gateway was stopped while a tool was at the gate; its id."""
    async with bounded_bench(folder, model, tools=tools, **bench) as first:
        run_id = await first.service.start_run(AgentRequest(prompt=prompt))
        await gate.reached.wait()
    return run_id


async def drop_run(bench: Bench, prompt: str) -> str:
    """A run that was let go of because the store failed; its id."""
    run_id = await bench.service.start_run(AgentRequest(prompt=prompt))
    await asyncio.wait([bench.service.worker._tasks[run_id]])
    return run_id


async def resume_run(bench: Bench, run_id: str) -> AgentResponse:
    """What becomes of the run here."""
    assert await bench.service.worker.recover_runs() == 1
    return await bench.service.wait_for_response(run_id)


async def event_types(bench: Bench, run_id: str) -> list[str]:
    return [event.type for event in await bench.service.read_events(run_id)]


async def test_a_side_effect_whose_tool_is_gone_is_of_unknown_outcome_and_not_planned_again(tmp_path: Path) -> None:
    gate = Gate()
    send = FunctionTool("send", gate.work, annotations=EFFECT)
    model = script(plans({"tool": "send", "inputs": {"x": "mail"}}, {"tool": "completion"}))
    run_id = await run_interrupted(tmp_path, model, "send the mail and search", gate, [send])
    async with bounded_bench(tmp_path, model) as bench:
        response = await resume_run(bench, run_id)
        assert (await event_types(bench, run_id)).count("step.unknown") == 1
    assert UNKNOWN in response.response
    assert response.metadata["uncertainties"][0]["level"] == "blocking"
    assert bench.client.purposes() == [], "a planner that saw it as refused would send the mail again"


async def test_a_skill_whose_side_effect_lost_its_tool_is_not_told_that_it_was_refused(tmp_path: Path) -> None:
    gate, roots = Gate(), [write_skill(tmp_path / "skills", "mailer", "send")]
    send = FunctionTool("send", gate.work, annotations=EFFECT)
    model = script(
        says("It was not sent.", to="skill", about="Refused"),
        says("", to="skill", calls=(Call("send", {"x": "mail"}),)),
    )
    run_id = await run_interrupted(tmp_path / "d", model, "/mailer send the mail", gate, [send], skill_roots=roots)
    async with bounded_bench(tmp_path / "d", model, skill_roots=roots) as bench:
        response = await resume_run(bench, run_id)
        assert (await event_types(bench, run_id)).count("step.unknown") == 1
    assert UNKNOWN in response.response
    assert bench.client.purposes() == []


async def test_a_side_effect_whose_tool_fails_to_reconcile_is_of_unknown_outcome(tmp_path: Path) -> None:
    class Forgetful(FunctionTool):
        async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
            raise KeyError("the ledger")

    gate = Gate()
    model = script(plans({"tool": "send", "inputs": {"x": "mail"}}, {"tool": "completion"}))
    tools = [Forgetful("send", gate.work, annotations=EFFECT) for _ in range(2)]
    run_id = await run_interrupted(tmp_path, model, "send the mail and search", gate, tools[:1])
    async with bounded_bench(tmp_path, model, tools=tools[1:]) as bench:
        response = await resume_run(bench, run_id)
        assert (await event_types(bench, run_id)).count("step.unknown") == 1
    assert UNKNOWN in response.response
    assert [len(tool.calls) for tool in tools] == [1, 0]


async def test_a_call_of_the_model_does_not_take_up_the_result_of_a_call_by_rule(tmp_path: Path) -> None:
    roots = [write_skill(tmp_path / "skills", "inquire", "calculator current_time lookup")]
    prompt = "/inquire what is 17 * 3 and what time is it?"
    down = script(says("", to="skill", fault="status_401"))
    async with bounded_bench(tmp_path / "d", down, skill_roots=roots) as first:
        lost = at_event(ev.ToolCalled, failing(StoreError("out of reach")), tool="current_time")
        with disturbed(first.store.journal, "append", before=lost):
            run_id = await drop_run(first, prompt)
        called = [e.body for e in await first.service.read_events(run_id) if isinstance(e.body, ev.ToolCalled)]
    assert [call.tool for call in called] == ["calculator"], "the rules were in the middle of their calls"
    lookup = returning("lookup", "the CEO is Ada")
    up = script(
        says("Ada it is.", to="skill", about="the CEO is Ada"),
        says("", to="skill", calls=(Call("lookup", {"x": "CEO"}),)),
    )
    async with bounded_bench(tmp_path / "d", up, skill_roots=roots, tools=[lookup]) as bench:
        response = await resume_run(bench, run_id)
        told = [m["content"] for m in bench.client.requests[1]["body"]["messages"] if m["role"] == "tool"]
    assert told == ["the CEO is Ada"], "not what the calculator said"
    assert response.response == "Ada it is."
    assert lookup.calls == [{"x": "CEO"}]


async def test_a_call_that_is_repeated_under_its_key_is_the_call_that_was_begun(tmp_path: Path) -> None:
    """The next process may fill in references otherwise: an upgrade, or another schema of the tool."""
    book, gate = returning("look", {"text": "page 7", "n": 7}), Gate()
    first = FunctionTool("file_it", gate.work, annotations=IDEMPOTENT)
    then = returning("file_it", "filed", annotations=IDEMPOTENT, properties={"x": {}})
    model = script(
        plans({"tool": "look", "inputs": {"x": "u"}}, {"tool": "file_it", "inputs": {"x": "$s1"}}),
        says("It is filed.", to="completion"),
    )
    run_id = await run_interrupted(tmp_path, model, "look it up and file it", gate, [book, first])
    async with bounded_bench(tmp_path, model, tools=[book, then]) as bench:
        await resume_run(bench, run_id)
    assert (then.keys, then.calls) == (first.keys, first.calls)


async def finish(_: object) -> JsonValue:
    return "done"


class Applier(FunctionTool):
    """Uses a text that is stored elsewhere, once a person has seen it."""

    stored = "the menu"

    async def explain(self, args: JsonObject, context: ToolContext) -> str:
        return f"   {args['x']} gets {self.stored}"


@pytest.mark.parametrize("approval", ["never", "always"])
@pytest.mark.parametrize("stored", ["the menu", "the payroll"])
async def test_a_call_that_is_repeated_does_what_the_person_saw(tmp_path: Path, approval: Any, stored: str) -> None:
    """Asked about by itself, or with the whole plan."""
    gate = Gate()
    first, then = (
        Applier("apply_it", work, annotations=IDEMPOTENT, requires_approval=True) for work in (gate.work, finish)
    )
    model = script(plans({"tool": "apply_it", "inputs": {"x": "the desk"}}), says("It is done.", to="completion"))
    room = Room(id="test", approval=approval)
    async with bounded_bench(tmp_path, model, tools=[first], room=room) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="apply it to the desk"))
        asked = await bench.service.wait_for_response(run_id)
        assert "the desk gets the menu" in asked.response
        await bench.service.submit_decision(run_id, "approve")
        await gate.reached.wait()
    then.stored = stored
    async with bounded_bench(tmp_path, model, tools=[then], room=room) as bench:
        response = await resume_run(bench, run_id)
    assert len(then.calls) == (stored == "the menu"), response


async def test_calls_that_were_not_made_are_recorded_once_over_resumes(tmp_path: Path) -> None:
    roots = [write_skill(tmp_path / "skills", "clumsy", "slow")]
    calls = (Call("rm_rf", {}, id="c1"), Call("slow", {"x": 5}, id="c2"), Call("slow", {"x": "1"}, id="c3"))
    model = script(says("done now", to="skill", about="let through"), says("", to="skill", calls=calls))
    gate = Gate()
    tools = [FunctionTool("slow", gate.work)]
    run_id = await run_interrupted(tmp_path / "d", model, "/clumsy go", gate, tools, skill_roots=roots)
    for _ in range(2):
        gate.reached.clear()
        async with bounded_bench(tmp_path / "d", model, tools=tools, skill_roots=roots) as bench:
            await bench.service.worker.recover_runs()
            await gate.reached.wait()
    gate.open()
    async with bounded_bench(tmp_path / "d", model, tools=tools, skill_roots=roots) as bench:
        response = await resume_run(bench, run_id)
        log = await bench.service.read_events(run_id)
    assert response.response == "done now"
    assert [e.body.tool for e in log if isinstance(e.body, ev.ToolRefused)] == ["rm_rf"]
    returned = [e.body for e in log if isinstance(e.body, ev.ToolReturned)]
    assert [body.error_code for body in returned] == ["ERR_TOOL_INPUT", None]


def rests_on_ground(dependent: str, *more: dict[str, Any], **inputs: str) -> Script:
    """`s2` calls `dependent` with what `s1` found, of which the first is judged RETRY."""
    needed = [*(step["id"] for step in more), "s1"]
    return script(
        plans(
            *more,
            {"tool": "ground", "id": "s1"},
            {"tool": dependent, "id": "s2", "inputs": inputs, "depends_on": needed},
            {"tool": "completion", "id": "s3", "depends_on": ["s2"]},
        ),
        judges("RETRY", "once more", about=RETRIED),
        judges("SUCCESS"),
        says("Looked up.", to="skill", about="tool_call_id"),
        says("", to="skill", about="ground number 1", calls=(Call("lookup", {"x": "stale"}),)),
        says("", to="skill", about="ground number 2", calls=(Call("lookup", {"x": "fresh"}),)),
        says("the end", to="completion"),
    )


def ground(number: int) -> str:
    return f"ground number {number} " + "of the matter at hand " * 3


async def test_what_began_on_an_output_that_is_repeated_is_begun_again_on_the_new_one(tmp_path: Path) -> None:
    """The dependent is still collecting its inputs when the judge rejects one of them: no event of it stands in the
    log yet."""
    inputs, stored, used = Gate(), asyncio.Event(), asyncio.Event()
    grounds: list[str] = []

    async def give_ground(_: object) -> JsonValue:
        grounds.append(ground(len(grounds) + 1))
        if len(grounds) == 1:
            await stored.wait()
        else:
            inputs.open()
            await used.wait()
        return grounds[-1]

    async def use(args: dict[str, JsonValue]) -> JsonValue:
        used.set()
        return f"rests on {args['x']}"

    async def keep(*_: Any) -> None:
        stored.set()

    async def load(_: str) -> None:
        task = asyncio.current_task()
        if task is not None and task.get_name().endswith(" s2.1"):
            await inputs.arrive()

    dependent = FunctionTool("dependent", use, properties={"x": {"type": "string"}, "y": {"type": "string"}})
    tools = [FunctionTool("ground", give_ground), returning("big", "big " * 6000), dependent]
    model = rests_on_ground("dependent", {"tool": "big", "id": "s0"}, x="$s1.output", y="$s0.output")
    async with bounded_bench(tmp_path, model, tools=tools, room=ALWAYS) as bench:
        judged = at_event(ev.StepJudged, keep, step="s0")
        with (
            disturbed(bench.store.journal, "append", after=judged),
            disturbed(bench.store.journal, "get_blob", before=load),
        ):
            events = await bench.events("search the ground, the big one and the dependent")
    assert isinstance(events[-1].body, ev.RunSucceeded)
    assert ("step.discarded", "s2", 1) in [(e.type, e.step_id, e.attempt) for e in events]
    assert str(dependent.calls[-1]["x"]).startswith("ground number 2")


async def test_what_rests_on_an_output_that_is_repeated_is_done_again_after_a_crash(tmp_path: Path) -> None:
    """The process dies before it can record that the speculative attempt, a skill in the middle, is dropped."""
    roots, gate = [write_skill(tmp_path / "skills", "inquire", "lookup")], Gate()
    model = rests_on_ground("inquire", task="look up $s1.output")

    async def judge(request: Any) -> None:
        if request.purpose == "supervisor" and RETRIED in request.messages[-1]["content"]:
            await gate.reached.wait()

    tools = [returning("ground", ground(1), ground(2)), FunctionTool("lookup", gate.work)]
    async with bounded_bench(tmp_path / "d", model, tools=tools, skill_roots=roots, room=ALWAYS) as first:
        died = at_event(ev.StepDiscarded, failing(StoreError("gone"), times=100))
        with disturbed(first.client, "complete", before=judge), disturbed(first.store.journal, "append", before=died):
            run_id = await drop_run(first, "search the ground and inquire")
        log = await first.service.read_events(run_id)
    assert [e.step_id for e in log if isinstance(e.body, ev.StepSpeculative)] == ["s2"]
    assert "step.discarded" not in [e.type for e in log]
    lookup = returning("lookup", "found it")
    tools = [returning("ground", ground(2)), lookup]
    async with bounded_bench(tmp_path / "d", model, tools=tools, skill_roots=roots, room=ALWAYS) as bench:
        response = await resume_run(bench, run_id)
    assert response.metadata["status"] == "complete"
    assert lookup.calls == [{"x": "fresh"}]
