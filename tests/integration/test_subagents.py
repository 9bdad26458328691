"""Sub-agents in a real engine with a scripted model: their limits, their permissions, their place in the log."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import JsonValue

from agent.core.events import Event, ModelReturned, SubAgentStarted, ToolCalled, ToolRefused, ToolReturned
from agent.core.models import AgentRequest, Budgets, JsonObject, Room, Usage
from agent.core.subagent_result import SubAgentResult
from agent.runs.response import build_response
from agent.subagents import SubAgentClass
from agent.tools import Tool
from gateway.features.documents.engine.prompts import PROMPTS
from gateway.features.documents.engine.subagents.researcher import Researcher
from tests.integration.test_approval import ask
from tests.support.engine import Bench, engine_bench
from tests.support.script import Call, Rule, judges, plans, says, script
from tests.support.subagents import ended, ends, looking, looks, room_with, scout, skill_folder, spawns
from tests.support.tools import EFFECT, FunctionTool, Latch, returning

DELEGATE = plans({"tool": "delegate", "inputs": {"task": "look around"}}, {"tool": "completion", "depends_on": ["s1"]})


@asynccontextmanager
async def bench_of(
    tmp_path: Path,
    *rules: Rule,
    kinds: Sequence[SubAgentClass],
    tools: Sequence[Tool] = (),
    allowed: Sequence[str] = (),
    room: Room | None = None,
    **settings: Any,
) -> AsyncIterator[Bench]:
    """An engine whose plan is one skill that delegates; it answers what the skill said."""
    names = (*(f"spawn_{kind.AGENT_ID}" for kind in kinds), *allowed)
    model = script(DELEGATE, *rules, judges("SUCCESS"), says("The answer.", to="completion"))
    async with engine_bench(
        tmp_path / "data",
        model,
        kinds=kinds,
        tools=tools,
        room=room or room_with(*names),
        skill_roots=[skill_folder(tmp_path, *names)],
        **settings,
    ) as bench:
        yield bench


def sent_text(bench: Bench) -> str:
    """What the skill's model was told last."""
    asked = [request["body"]["messages"] for request in bench.client.requests if request["purpose"] == "skill"]
    return str(asked[-1][-1]["content"])


def events_of_type(events: Sequence[Event], kind: type) -> list[Any]:
    return [event.body for event in events if isinstance(event.body, kind)]


@pytest.mark.row("S000-20", "S000-23", "S002-49")
async def test_a_sub_agent_looks_and_hands_back_a_result(tmp_path: Path) -> None:
    rules = (
        spawns("the well"),
        ends(about="water", answer="There is water."),
        looks(),
        says("There is water.", to="skill", about="There is water."),
    )
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("water at 3 m"))]) as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert finished.result == SubAgentResult(
        success=True,
        data={"goal": "the well", "seen": ["water at 3 m"], "answer": "There is water."},
        summary="There is water.",
    )
    assert (finished.outcome, finished.turns, finished.usage) == (
        "done",
        2,
        Usage(model_calls=2, prompt_tokens=20, completion_tokens=10),
    )
    response = build_response(events)
    assert response.metadata["usage"]["model_calls"] == len(bench.client.requests), "its calls are the run's"
    lines = [(step.type, step.title, step.span) for step in response.steps if step.type in ("tool", "subagent")]
    assert lines == [
        ("tool", "spawn_scout", None),
        ("subagent", "scout", "s1.1.1"),
        ("tool", "look", "s1.1.1"),
    ]
    (line,) = [step for step in response.steps if step.type == "subagent"]
    assert line.usage is not None
    assert line.usage.model_calls == 2
    (step,) = [step for step in response.steps if step.type == "step"]
    assert step.usage is not None
    assert step.usage.model_calls == 2, "the skill's own calls, without the sub-agent's"


@pytest.mark.row("S000-20")
async def test_a_sub_agent_knows_nothing_of_its_parents_conversation(tmp_path: Path) -> None:
    rules = (spawns("the well"), ends(answer="Found."), says("Found.", to="skill", about="Found."))
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("x"))]) as bench:
        await bench.events("search around: the SECRET of the parent")
    asked = [request["body"] for request in bench.client.requests if request["purpose"] == "subagent"]
    text = json.dumps(asked)
    assert "SECRET" not in text
    assert "look around" not in text, "the skill's task"
    assert [message["role"] for message in asked[0]["messages"]] == ["system", "user"]
    own = PROMPTS.render("subagent_researcher", system="")
    assert own in asked[0]["messages"][0]["content"], "it works by its own prompt"
    assert [tool["function"]["name"] for tool in asked[0]["tools"]] == ["look"]
    assert asked[0]["model"] == "large", "sub-agents work with the high tier"


@pytest.mark.row("S000-21")
async def test_a_sub_agent_that_loops_stops_after_its_turns_with_what_it_found(tmp_path: Path) -> None:
    rules = (spawns("the well"), looks(), says("It never ended.", to="skill", about="Not finished"))
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("sand"), MAX_TURNS=4)]) as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert (finished.outcome, finished.turns, finished.result.success) == ("turns", 4, False)
    assert finished.result.data == {"goal": "the well", "seen": ["sand", "sand", "sand"]}
    assert "4 turns" in finished.result.summary
    assert "Not finished: It used its 4 turns" in sent_text(bench)
    last = [request["body"] for request in bench.client.requests if request["purpose"] == "subagent"][-1]
    assert "tools" not in last, "in its last turn there is nothing left but to end"
    assert build_response(events).metadata["status"] == "complete", "the parent goes on"


@pytest.mark.row("S000-19", "S000-22")
async def test_a_sub_agent_whose_tool_hangs_times_out_with_what_it_found(tmp_path: Path) -> None:
    hanging = asyncio.Event()

    async def work(args: JsonObject) -> JsonValue:
        if args["x"] == "deep":
            hanging.set()
            await asyncio.Event().wait()
        return "sand"

    rules = (
        spawns("the well"),
        looks(about="sand", x="deep", id="l2"),
        looks(x="near"),
        says("No answer in time.", to="skill", about="Timed out after 0.5 s"),
    )
    async with bench_of(tmp_path, *rules, kinds=[scout(work, TIMEOUT_SECONDS=0.5)]) as bench:
        events = await bench.events("search around, then tell")
    assert hanging.is_set()
    (finished,) = ended(events)
    assert (finished.outcome, finished.result.success) == ("timeout", False)
    assert finished.result.summary == "Timed out after 0.5 s."
    doubts = [(one.severity, one.message) for one in finished.result.uncertainties]
    assert doubts == [("notable", "scout did not finish: Timed out after 0.5 s.")]
    assert finished.result.data == {"goal": "the well", "seen": ["sand"]}
    response = build_response(events)
    looked = [step for step in response.steps if step.title == "look"]
    assert [step.status for step in looked] == ["done", "discarded"]
    assert looked[1].detail["reason"] == "scout ended first"
    assert response.metadata["status"] == "complete"


@pytest.mark.row("S000-22")
async def test_a_model_that_hangs_costs_no_more_than_the_time_limit(tmp_path: Path) -> None:
    slow = says("never", to="subagent", delay_s=60)
    rules = (spawns("the well"), slow, says("No answer in time.", to="skill", about="Timed out after 0.3 s"))
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("x"), TIMEOUT_SECONDS=0.3)]) as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert finished.outcome == "timeout"
    assert finished.usage.model_calls == 1, "the call that was cut short has been begun, and counts"


async def test_a_tool_it_was_not_given_is_refused_recorded_and_told(tmp_path: Path) -> None:
    rules = (
        spawns("the well"),
        ends(about="Refused", answer="I may not."),
        says("", to="subagent", calls=(Call("calculator", {"expression": "1+1"}, id="x"),)),
        says("It may not.", to="skill", about="I may not."),
    )
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("x"))], allowed=["calculator"]) as bench:
        events = await bench.events("search around, then tell")
    (refused,) = events_of_type(events, ToolRefused)
    assert (refused.tool, refused.span, refused.call_id) == ("calculator", "s1.1.1", "s1.1.1/1")
    assert "is not among this sub-agent's tools (look)" in refused.reason
    asked = [request["body"]["messages"] for request in bench.client.requests if request["purpose"] == "subagent"]
    assert asked[-1][-1]["content"].startswith("Refused: 'calculator' is not among")
    assert not [called for called in events_of_type(events, ToolCalled) if called.tool == "calculator"]


@pytest.mark.parametrize("second", ["still no JSON", '{"answer": 7}'])
async def test_a_result_that_cannot_be_read_is_asked_for_again_once(tmp_path: Path, second: str) -> None:
    rules = (
        spawns("the well"),
        looks(times=1),
        says("All is well, no JSON.", to="subagent", times=1),
        says(second, to="subagent"),
        says("It made no sense.", to="skill", about="Not finished"),
    )
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("sand"))]) as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert (finished.outcome, finished.turns, finished.result.success) == ("output", 3, False)
    assert finished.result.data == {"goal": "the well", "seen": ["sand"]}
    asked = [request for request in bench.client.requests if request["purpose"] == "subagent"]
    assert "That was no result: it holds no JSON object" in asked[2]["body"]["messages"][-1]["content"]
    assert asked[2]["schema"]
    assert "tools" not in asked[2]["body"]


@pytest.mark.parametrize(("reason", "doubts"), [("length", 1), ("abort", 1), ("stop", 0)])
async def test_a_result_of_a_reply_that_was_cut_off_says_so(tmp_path: Path, reason: str, doubts: int) -> None:
    cut = says('{"answer": "Water."}\nAnd', to="subagent", finish_reason=reason)
    rules = (spawns("the well"), cut, says("Water.", to="skill", about="Water."))
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("sand"))]) as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert (finished.outcome, finished.result.success) == ("done", True)
    assert ["cut off" in one.message for one in finished.result.uncertainties] == [True] * doubts


async def test_the_second_try_may_be_right(tmp_path: Path) -> None:
    rules = (
        spawns("the well"),
        says("No JSON.", to="subagent", times=1),
        ends(answer="Water."),
        says("Water.", to="skill", about="Water."),
    )
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("sand"))]) as bench:
        events = await bench.events("search around, then tell")
    assert [(one.outcome, one.result.success) for one in ended(events)] == [("done", True)]


@pytest.mark.row("S000-60", "S002-47", "S002-49")
async def test_two_sub_agents_of_one_turn_overlap_and_share_no_id(tmp_path: Path) -> None:
    latch = Latch(2)
    rules = (
        spawns("east", "west"),
        ends(about="all are here", answer="Both looked."),
        looks(about="east", x="east"),  # equal calls would be made once
        looks(about="west", x="west"),
        says("Both looked.", to="skill", about="Both looked."),
    )
    async with bench_of(tmp_path, *rules, kinds=[scout(latch.arrive)]) as bench:
        events = await bench.events("search around, then tell")
    finished = ended(events)
    assert {one.span: one.result.data["goal"] for one in finished} == {"s1.1.1": "east", "s1.1.2": "west"}
    assert all(one.result.success for one in finished)
    ids = [called.call_id for called in events_of_type(events, ToolCalled)]
    assert len(ids) == len(set(ids)) == 4
    assert len({called.key for called in events_of_type(events, ToolCalled)}) == 4
    begun = [event.seq for event in events if isinstance(event.body, SubAgentStarted)]
    over = [event.seq for event in events if event.type == "subagent.finished"]
    assert max(begun) < min(over), "both had begun before one ended"
    for one in finished:  # each bracket holds its own events, and its turns are its own
        inside = [event.body for event in events if getattr(event.body, "span", None) == one.span]
        assert isinstance(inside[0], SubAgentStarted)
        assert inside[-1] is one
        assert sum(isinstance(body, ModelReturned) for body in inside) == one.turns == 2


async def test_one_place_for_calls_is_enough_for_a_sub_agent_and_its_tools(tmp_path: Path) -> None:
    room = room_with("spawn_scout", budgets=Budgets(max_parallel=1))
    rules = (spawns("a", "b"), ends(about="sand", answer="Sand."), looks(), says("Sand.", to="skill", about="Sand."))
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("sand"))], room=room) as bench:
        events = await bench.events("search around, then tell")
    assert [one.outcome for one in ended(events)] == ["done", "done"]


async def test_a_cancelled_parent_takes_its_sub_agent_along(tmp_path: Path) -> None:
    inside, torn = asyncio.Event(), asyncio.Event()

    async def work(_: JsonObject) -> JsonValue:
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            torn.set()
        return None

    async with bench_of(tmp_path, spawns("the well"), looks(), kinds=[scout(work)]) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="search around, then tell"))
        async with asyncio.timeout(20):
            await inside.wait()
            await bench.service.cancel_run(run_id)
            await bench.service.wait_until_stopped(run_id)
            await torn.wait()
        events = await bench.service.read_events(run_id)
    assert events[-1].type == "run.cancelled"
    assert ended(events) == []
    lines = {step.title: step.status for step in build_response(events).steps if step.type in ("tool", "subagent")}
    assert lines == {"spawn_scout": "discarded", "scout": "discarded", "look": "discarded"}


async def test_it_leaves_its_parent_a_tenth_of_every_budget(tmp_path: Path) -> None:
    room = room_with("spawn_scout", budgets=Budgets(max_model_calls=10))
    rules = (spawns("the well"), looks(), says("Out of budget.", to="skill", about="Stopped: the run has used"))
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("sand"))], room=room, supervision="checks") as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert finished.outcome == "budget"
    # The planner, the skill and the sub-agent have made nine; the tenth is the skill's.
    assert finished.turns == 7
    assert "10% that are reserved for the answer" in finished.result.summary
    assert finished.result.data["seen"] == ["sand"] * 7
    assert build_response(events).metadata["usage"]["model_calls"] == 10


async def test_the_room_says_how_many_there_may_be(tmp_path: Path) -> None:
    room = room_with("spawn_scout", budgets=Budgets(max_subagents=1))
    rules = (spawns("a", "b"), ends(answer="Sand."), says("One of them.", to="skill", about="max_subagents"))
    async with bench_of(tmp_path, *rules, kinds=[scout(looking("sand"))], room=room) as bench:
        events = await bench.events("search around, then tell")
    assert len(ended(events)) == 1
    returned = [one.error_code for one in events_of_type(events, ToolReturned)]
    assert sorted(returned, key=str) == ["ERR_TOOL_DENIED", None]


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_sub_agent_starts_others_only_where_the_room_allows_it(tmp_path: Path, depth: int) -> None:
    inner = scout(looking("sand"), AGENT_ID="inner")
    outer = scout(looking("sand"), AGENT_ID="outer", BORROWS=("spawn_inner",))
    room = room_with("spawn_outer", "spawn_inner", subagent_depth=depth)
    start = says("", to="subagent", about="Look for gold", calls=(Call("spawn_inner", {"goal": "silver"}),), times=1)
    rules = (
        spawns("gold", tool="spawn_outer"),
        start,
        ends(answer="Enough."),
        says("Enough.", to="skill", about="Enough."),
    )
    async with bench_of(tmp_path, *rules, kinds=[inner, outer], room=room) as bench:
        events = await bench.events("search around, then tell")
    begun = {body.agent_id: body for body in events_of_type(events, SubAgentStarted)}
    assert begun["outer"].withheld == (() if depth == 2 else ("spawn_inner",))
    if depth == 1:
        assert set(begun) == {"outer"}
        (refused,) = events_of_type(events, ToolRefused)
        assert refused.tool == "spawn_inner"
    else:
        assert (begun["inner"].span, begun["inner"].parent, begun["inner"].depth) == ("s1.1.1/1", "s1.1.1", 2)
        line = next(step for step in build_response(events).steps if step.title == "inner")
        assert (line.span, line.parent_span) == ("s1.1.1/1", "s1.1.1")


async def test_borrowed_are_only_tools_the_parent_has_and_that_change_nothing(tmp_path: Path) -> None:
    send = FunctionTool("send", looking("sent"), annotations=EFFECT)
    read, other = returning("read_it", "read"), returning("other", "x")
    kind = scout(looking("x"), BORROWS=("read_it", "send", "other", "no_such"))
    rules = (
        spawns("the well"),
        ends(about="Refused", answer="Done."),
        says(
            "", to="subagent", calls=(Call("read_it", {}, id="a"), Call("send", {}, id="b"), Call("other", {}, id="c"))
        ),
        says("Done.", to="skill", about="Done."),
    )
    async with bench_of(
        tmp_path,
        *rules,
        kinds=[kind],
        tools=[send, read, other],
        allowed=["read_it", "send"],
        room=Room(id="test", tools=("spawn_scout", "read_it", "send", "other")),
    ) as bench:
        events = await bench.events("search around, then tell")
    (begun,) = events_of_type(events, SubAgentStarted)
    assert begun.tools == ("look", "read_it")
    assert begun.withheld == ("send", "other", "no_such"), "the skill was not given `other`, though the room has it"
    assert [refused.tool for refused in events_of_type(events, ToolRefused)] == ["send", "other"]
    assert (len(read.calls), len(send.calls), len(other.calls)) == (1, 0, 0)


@pytest.mark.parametrize("reads", [True, False])
async def test_who_reads_a_history_from_outside_asks_before_a_change_in_every_room(tmp_path: Path, reads: bool) -> None:
    send = FunctionTool("send", looking("sent"), annotations=EFFECT)
    kind = scout(looking("x"), BORROWS=("send",), CHANGES_THINGS=True, READS_HISTORY=reads)
    model = script(
        plans({"tool": "spawn_scout", "inputs": {"goal": "the well"}}, {"tool": "completion", "depends_on": ["s1"]}),
        says("", to="subagent", calls=(Call("send", {"x": "MALLORY"}, id="a"),), times=1),
        ends(answer="Done."),
        judges("SUCCESS"),
        says("The answer.", to="completion"),
    )
    room = room_with("spawn_scout", "send", approval="never")
    told = ({"role": "user", "content": "hi"}, {"role": "assistant", "content": "As agreed: the well, for MALLORY."})
    async with engine_bench(tmp_path / "data", model, kinds=[kind], tools=[send], room=room) as bench:
        asked = await ask(bench, "look for the well", messages=told)
    assert (asked.metadata["status"] == "awaiting_approval") is reads
    assert len(send.calls) == (0 if reads else 1)


async def test_an_own_tool_that_changes_something_is_a_defect_and_is_never_offered(tmp_path: Path) -> None:
    kind = scout(looking("x"), OPTIONS={"annotations": EFFECT})
    rules = (spawns("the well"), says("It is broken.", to="skill", about="sub-agents only read"))
    async with bench_of(tmp_path, *rules, kinds=[kind]) as bench:
        events = await bench.events("search around, then tell")
    assert events_of_type(events, SubAgentStarted) == []
    assert "subagent" not in bench.client.purposes()


@pytest.mark.row("S000-44")
async def test_what_a_tool_did_wrong_is_told_to_the_model(tmp_path: Path) -> None:
    async def work(_: JsonObject) -> JsonValue:
        raise RuntimeError("the lamp went out")

    rules = (
        spawns("the well"),
        ends(about="the lamp went out", answer="It was dark."),
        looks(),
        says("It was dark.", to="skill", about="It was dark."),
    )
    async with bench_of(tmp_path, *rules, kinds=[scout(work)]) as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert finished.result.success
    (looked,) = [one for one in events_of_type(events, ToolReturned) if one.tool == "look"]
    assert (looked.error_code, looked.span) == ("ERR_TOOL_FAILED", "s1.1.1")


async def test_a_defect_of_a_sub_agent_comes_back_as_a_failure_with_what_it_found(tmp_path: Path) -> None:
    async def conclude(self: Any, final: Any, calls: Any) -> SubAgentResult:
        raise KeyError("oops")

    kind = scout(looking("sand"), conclude=conclude)
    rules = (
        spawns("the well"),
        looks(times=1),
        ends(answer="x"),
        says("It failed.", to="skill", about="the sub-agent scout failed"),
    )
    async with bench_of(tmp_path, *rules, kinds=[kind]) as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert (finished.outcome, finished.result.data) == ("failed", {"goal": "the well", "seen": ["sand"]})
    assert "KeyError" in finished.result.summary
    assert '"seen": ["sand"]' in sent_text(bench)


@pytest.mark.parametrize("script_or_none", ["no model", "model down"])
async def test_without_a_model_the_rules_do_it(tmp_path: Path, script_or_none: str) -> None:
    if script_or_none == "no model":
        async with engine_bench(tmp_path / "data", None, kinds=[scout(looking("sand"))]) as bench:
            call = {"tool": "spawn_scout", "args": {"goal": "the well"}}
            events = await bench.events("go", metadata={"tool_calls": [call]})
    else:
        down = says("", to="subagent", fault="status_503")
        rules = (spawns("the well"), down, says("By rules.", to="skill", about="made by rules"))
        async with bench_of(tmp_path, *rules, kinds=[scout(looking("sand"))]) as bench:
            events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert (finished.effective, finished.result.success) == ("rules", True)
    assert finished.result.data["seen"] == ["sand"]
    assert finished.fallback_reason is not None
    assert finished.result.uncertainties[-1].severity == "info"


async def test_what_came_from_outside_taints_the_result(tmp_path: Path) -> None:
    rules = (spawns("the well"), ends(about="sand", answer="Sand."), looks(), says("Sand.", to="skill", about="Sand."))
    kind = scout(looking("sand"), OPTIONS={"tainted": True})
    async with bench_of(tmp_path, *rules, kinds=[kind]) as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert finished.result.tainted
    (spawned,) = [one for one in events_of_type(events, ToolReturned) if one.tool == "spawn_scout"]
    assert spawned.tainted
    assert sent_text(bench).startswith("<data")


async def test_large_results_lie_beside_the_log_and_come_back_whole(tmp_path: Path) -> None:
    kind = scout(looking("s" * 50_000))
    rules = (spawns("the well"), ends(about="sss", answer="Long."), looks(), says("Long.", to="skill", about="Long."))
    async with bench_of(tmp_path, *rules, kinds=[kind]) as bench:
        events = await bench.events("search around, then tell")
        (finished,) = ended(events)
        assert finished.blob is not None
        assert finished.result.data == {}
        data = json.loads(await bench.engine.journal.get_blob(finished.blob))
    assert data["seen"] == ["s" * 50_000]


async def test_the_researcher_borrows_and_keeps_only_what_its_sources_say(tmp_path: Path) -> None:
    page: JsonObject = {"url": "http://x.test/", "title": "Well", "text": "The well is twelve metres deep and dry."}
    fetch = returning("fetch_page", page)

    class PageResearcher(Researcher):
        BORROWS: ClassVar[tuple[str, ...]] = ("fetch_page",)

    call = Call("spawn_researcher", {"question": "How deep is the well?"})
    findings = [
        {"claim": "It is 12 m deep.", "quote": "The well is twelve  metres deep"},
        {"claim": "It is full.", "quote": "the well is full of water"},
    ]
    rules = (
        says("", to="skill", calls=(call,), times=1),
        ends(about="twelve metres", findings=findings, summary="Twelve metres."),
        says("", to="subagent", calls=(Call("fetch_page", {}),)),
        says("Twelve metres.", to="skill", about="Twelve metres."),
    )
    async with bench_of(tmp_path, *rules, kinds=[PageResearcher], tools=[fetch], allowed=["fetch_page"]) as bench:
        events = await bench.events("search around, then tell")
    (finished,) = ended(events)
    assert finished.result.data["findings"] == [
        {
            "claim": "It is 12 m deep.",
            "quote": "The well is twelve  metres deep",
            "source": "Well",
            "url": "http://x.test/",
        }
    ]
    assert "left out: 1 finding whose words" in finished.result.uncertainties[0].message


async def test_by_rules_the_researcher_quotes_the_users_documents(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "leave.md").write_text("# Leave\n\nEmployees may take thirty days of paid holiday in each calendar year.\n")
    room = Room(id="test", tools=("spawn_researcher", "search_knowledge"))
    async with engine_bench(tmp_path / "data", None, room=room) as bench:
        await bench.library.ingest("local", "policies", docs)
        call = {"tool": "spawn_researcher", "args": {"question": "How many days of paid holiday are there?"}}
        events = await bench.events("research", metadata={"tool_calls": [call]})
    (finished,) = ended(events)
    assert finished.result.tainted
    findings = finished.result.data["findings"]
    assert isinstance(findings, list)
    assert [one["quote"] for one in findings if isinstance(one, dict)] == [
        "# Leave\n\nEmployees may take thirty days of paid holiday in each calendar year."
    ]
    assert [(one.severity, one.message) for one in finished.result.uncertainties][-1] == (
        "info",
        "made by rules, not by a model: no model is configured",
    )


async def test_a_researcher_without_tools_finds_nothing_and_says_so(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None, room=Room(id="test", tools=("spawn_researcher",))) as bench:
        call = {"tool": "spawn_researcher", "args": {"question": "How deep is the well?"}}
        events = await bench.events("research", metadata={"tool_calls": [call]})
    (finished,) = ended(events)
    assert finished.result.data["findings"] == []
    messages = [one.message for one in finished.result.uncertainties]
    assert messages[:2] == [
        "nothing was found that can be cited",
        "search_knowledge is not among this sub-agent's tools",
    ]
