"""What the engine does when its store fails, its gateway stops, or a budget is spent: nothing is lost or done twice."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agent.core import events as ev
from agent.core.errors import (
    AgentError,
    BadRequestError,
    BusyError,
    ConflictError,
    StoreError,
    StoreFullError,
    ToolInputError,
)
from agent.core.models import AgentRequest, Budgets, Room
from agent.execution.tool_turns import MAX_CALLS_A_TURN
from agent.run_context.run import Run
from agent.runs.run_worker import ServiceLimits
from tests.integration.test_engine import ALWAYS, write_skill
from tests.support.builders import RUN_ID, created
from tests.support.engine import Bench
from tests.support.faulty import Gate, Rounds, at_event, bounded_bench, disturbed, failing
from tests.support.script import Call, plans, says, script
from tests.support.tools import EFFECT, FunctionTool, returning

PASSED = ev.GateChecked(gate="g", passed=True, reason="r")


async def start_run(bench: Bench, *tools: str) -> str:
    """Start a run that calls these tools; no model is asked."""
    calls: list[JsonValue] = [{"tool": tool} for tool in tools]
    return await bench.service.start_run(AgentRequest(prompt="", metadata={"tool_calls": calls}))


async def start_blocked_run(bench: Bench, gate: Gate) -> str:
    """A run that is inside its tool `slow`, at the gate."""
    run_id = await start_run(bench, "slow")
    await gate.reached.wait()
    return run_id


def limit_concurrency(bench: Bench, concurrent: int, queued: int = 1000) -> None:
    """Let the gateway carry out so many runs at once."""
    bench.service.worker._limits = ServiceLimits(concurrent, queued)
    bench.service.worker._slots = asyncio.Semaphore(concurrent)


@asynccontextmanager
async def start_watcher(bench: Bench, **options: Any) -> AsyncIterator[Rounds]:
    """The watch at work; its rounds are counted at the end of each, where it looks for abandoned runs."""
    rounds = Rounds()
    with disturbed(bench.store.journal, "list_claimable_runs", after=rounds):
        task = asyncio.create_task(bench.service.worker.maintain_leases(**options))
        try:
            yield rounds
        finally:
            task.cancel()
            await asyncio.wait([task])


def slow_tool(gate: Gate) -> FunctionTool:
    return FunctionTool("slow", gate.work)


async def test_the_watch_survives_a_cancel_of_a_run_that_goes_on_elsewhere(tmp_path: Path) -> None:
    gate = Gate()
    async with bounded_bench(tmp_path, None, tools=[slow_tool(gate)], lease_seconds=0.3) as bench:
        run_id = await start_blocked_run(bench, gate)
        await bench.store.journal.release(run_id, 1)
        assert await bench.store.journal.claim(run_id, worker="elsewhere:1:x", lease_s=60) is not None
        await bench.store.journal.send_signal(run_id, "cancel", {})
        async with start_watcher(bench) as rounds:
            await rounds.more(2)


async def test_the_watch_survives_a_cancel_that_meets_the_end_of_the_run(tmp_path: Path) -> None:
    reply, looked = Gate(), Rounds()
    async with bounded_bench(tmp_path, None, tools=[returning("quick", "done")], lease_seconds=0.3) as bench:
        journal = bench.store.journal
        with disturbed(journal, "append", after=at_event(ev.RunSucceeded, reply.arrive)):
            run_id = await start_run(bench, "quick")
            await reply.reached.wait()
            await journal.send_signal(run_id, "cancel", {})
            with disturbed(journal, "read_signals", after=looked):
                async with start_watcher(bench) as rounds:
                    await looked.more(1)
                    reply.open()
                    await rounds.more(2)
        row = await bench.service.get_run(run_id)
    assert row.status == "succeeded"


async def test_the_watch_survives_a_defect(tmp_path: Path) -> None:
    gate = Gate()
    async with bounded_bench(tmp_path, None, tools=[slow_tool(gate)], lease_seconds=0.3) as bench:
        await start_blocked_run(bench, gate)
        with disturbed(bench.store.journal, "renew_leases", before=failing(RuntimeError("a defect"))):
            async with start_watcher(bench) as rounds:
                await rounds.more(2)


async def test_a_side_effect_is_not_repeated_when_the_store_cannot_keep_its_result(tmp_path: Path) -> None:
    send = returning("send", "receipt " * 4000, annotations=EFFECT)
    model = script(plans({"tool": "send", "inputs": {"x": "mail"}}), says("ok", to="completion"))
    async with bounded_bench(tmp_path, model, tools=[send]) as bench:
        with disturbed(bench.store.journal, "put_blob", before=failing(StoreFullError("the disk is full"))):
            run_id = await bench.service.start_run(AgentRequest(prompt="please send the mail and then search"))
            await asyncio.wait([bench.service.worker._tasks[run_id]])
        assert await bench.service.worker.recover_runs() == 1
        response = await bench.service.wait_for_response(run_id)
    assert len(send.calls) == 1
    assert response.metadata["status"] == "partial"
    assert "may or may not have happened" in response.response


@pytest.mark.parametrize("recover", [True, False])
@pytest.mark.parametrize("error", [StoreFullError("the disk is full"), StoreError("the store is out of reach")])
async def test_a_run_dropped_by_a_failing_store_comes_back(tmp_path: Path, error: AgentError, recover: bool) -> None:
    gate, busy, claims = Gate(), Gate(), Rounds()
    tools = [slow_tool(gate), FunctionTool("long", busy.work)]
    async with bounded_bench(tmp_path, None, tools=tools, lease_seconds=0.3) as bench:

        async def refuse(run_id: str, *_: Any, **__: Any) -> None:
            if run_id == unlucky:
                raise error

        async def refuse_claim(run_id: str, **_: Any) -> None:
            await claims()
            await refuse(run_id)

        async with start_watcher(bench, recover=recover):
            await start_run(bench, "long")
            await busy.reached.wait()
            unlucky = await start_blocked_run(bench, gate)
            journal = bench.store.journal
            with disturbed(journal, "append", before=refuse), disturbed(journal, "claim", before=refuse_claim):
                gate.open()
                await claims.more(2)
            response = await bench.service.wait_for_response(unlucky)
    assert response.metadata["status"] == "complete"


async def test_an_answer_that_the_log_does_not_hold_is_not_remembered(tmp_path: Path) -> None:
    model = script(says("the first answer"))
    full = at_event(ev.StepFinished, failing(StoreFullError("the disk is full")))
    async with bounded_bench(tmp_path, model, room=Room(id="test", planning=False)) as bench:
        with disturbed(bench.store.journal, "append", before=full):
            run_id = await bench.service.start_run(AgentRequest(prompt="Who am I?", conversation_id="c1"))
            await asyncio.wait([bench.service.worker._tasks[run_id]])
        assert await bench.store.conversations.list_turns("local", "c1") == []
        assert await bench.service.worker.recover_runs() == 1
        answer = (await bench.service.wait_for_response(run_id)).response
        assert await bench.store.conversations.list_turns("local", "c1") == [
            ("user", "Who am I?"),
            ("assistant", answer),
        ]


async def test_a_run_whose_caller_hung_up_while_it_was_stored_is_carried_out(tmp_path: Path) -> None:
    gate, stored = Gate(), list[str]()

    async def storing(run_id: str, *_: Any, **__: Any) -> None:
        stored.append(run_id)
        await gate.arrive()

    async with bounded_bench(tmp_path, None, tools=[returning("quick", "done")]) as bench:
        with disturbed(bench.store.journal, "create_run", after=storing):
            caller = asyncio.create_task(start_run(bench, "quick"))
            await gate.reached.wait()
            caller.cancel()
            await asyncio.wait([caller])
            gate.open()
            response = await bench.service.wait_for_response(stored[0])
    assert response.metadata["status"] == "complete"


async def test_a_run_resumed_twice_at_once_is_carried_out_once(tmp_path: Path) -> None:
    gate, claims = Gate(), list[str]()

    async def second_is_late(run_id: str, **_: Any) -> None:
        claims.append(run_id)
        if len(claims) == 2:
            await gate.reached.wait()

    send = FunctionTool("send", gate.work, annotations=EFFECT)
    async with bounded_bench(tmp_path, None, tools=[send]) as bench:
        body = created("", metadata={"tool_calls": [{"tool": "send"}]})
        await bench.store.journal.create_run(RUN_ID, body, worker="gone", lease_s=-1)
        with disturbed(bench.store.journal, "claim", before=second_is_late):
            resumes = [bench.service.resume_run(RUN_ID) for _ in range(2)]
            answers = await asyncio.gather(*resumes, return_exceptions=True)
        await gate.reached.wait()
        gate.open()
        response = await bench.service.wait_for_response(RUN_ID)
        log = await bench.service.read_events(RUN_ID)
    assert {type(answer) for answer in answers} <= {type(None), ConflictError}
    assert [event.type for event in log].count("run.claimed") == 1
    assert response.metadata["status"] == "complete"


async def test_a_stopping_gateway_lets_go_of_the_runs_that_wait_for_their_turn(tmp_path: Path) -> None:
    gate = Gate()
    async with bounded_bench(tmp_path, None, tools=[slow_tool(gate)]) as bench:
        limit_concurrency(bench, 1)
        runs = [await start_blocked_run(bench, gate), await start_run(bench, "slow")]

        async def follow(run_id: str) -> list[ev.Event]:
            return [event async for event in bench.service.follow_events(run_id)]

        followers = [asyncio.create_task(follow(run_id)) for run_id in runs]
        assert await bench.service.worker.begin_drain(0) == 2
        for seen in await asyncio.gather(*followers):
            assert not seen[-1].body.terminal
        assert sorted(await bench.store.journal.list_claimable_runs()) == sorted(runs), (
            "the next process takes both up at once"
        )


async def test_a_run_accepted_while_the_gateway_stops_is_left_to_the_next(tmp_path: Path) -> None:
    gate = Gate()
    async with bounded_bench(tmp_path, None, tools=[returning("quick", "done")]) as bench:
        with disturbed(bench.store.journal, "create_run", after=gate.arrive):
            caller = asyncio.create_task(start_run(bench, "quick"))
            await gate.reached.wait()
            drain = bench.service.worker.begin_drain(0)
            gate.open()
            run_id = await caller
        await drain
        assert bench.service.worker.live_count == 0
        assert [event.type for event in await bench.service.read_events(run_id)] == ["run.created", "run.suspended"]
        assert await bench.store.journal.list_claimable_runs() == [run_id]


async def test_a_tool_that_cannot_be_stopped_does_not_hold_up_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.runs.run_worker.CANCEL_GRACE_SECONDS", 0.05)
    gate, stubborn = Gate(), Gate()

    async def work(_: object) -> JsonValue:
        try:
            await gate.arrive()
        finally:
            await stubborn.arrive()
        return ""

    async with bounded_bench(tmp_path, None, tools=[FunctionTool("slow", work)]) as bench:
        run_id = await start_blocked_run(bench, gate)
        task = bench.service.worker._tasks[run_id]
        assert await bench.service.worker.begin_drain(0) == 1
        assert stubborn.reached.is_set()
        assert not task.done()
        stubborn.open()
        await asyncio.wait([task])


async def test_a_burst_does_not_pass_the_limit(tmp_path: Path) -> None:
    gate = Gate()
    async with bounded_bench(tmp_path, None, tools=[slow_tool(gate)]) as bench:
        limit_concurrency(bench, 1, queued=1)
        answers = await asyncio.gather(*(start_run(bench, "slow") for _ in range(20)), return_exceptions=True)
    assert [type(answer) for answer in answers].count(str) == 2
    assert {type(answer) for answer in answers} == {str, BusyError}


async def test_a_run_that_waits_for_its_turn_spends_no_wall_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, gate = [0.0], Gate()
    monkeypatch.setattr("agent.run_context.run.monotonic", lambda: clock[0])
    room = Room(id="test", budgets=Budgets(max_seconds=30))
    async with bounded_bench(tmp_path, None, tools=[slow_tool(gate)], room=room) as bench:
        limit_concurrency(bench, 1)
        await start_blocked_run(bench, gate)
        waiting = await start_run(bench, "slow")
        clock[0] += 1000
        gate.open()
        response = await bench.service.wait_for_response(waiting)
    assert response.metadata["status"] == "complete"


@pytest.mark.parametrize(
    ("budgets", "asked"),
    [(Budgets(max_model_calls=2), 1), (Budgets(max_model_calls=3), 2), (Budgets(max_tokens=400), 1)],
)
async def test_model_calls_under_way_count_against_the_budgets(tmp_path: Path, budgets: Budgets, asked: int) -> None:
    names, gate, settled = ("one", "two", "three"), Gate(), list[str]()
    for name in names:
        write_skill(tmp_path / "skills", name)
    model = script(plans(*({"tool": name, "inputs": {"task": "go"}} for name in names)), says("done", to="skill"))

    async def settle(kind: str) -> None:
        settled.append(kind)
        if len(settled) == len(names):
            gate.open()

    async def admitted(request: Any) -> None:
        if request.purpose == "skill":
            await settle("asked")
            await gate.arrive()

    async def ended(*_: Any) -> None:
        await settle("ended")

    room = Room(id="test", supervision="checks", budgets=budgets)
    async with bounded_bench(tmp_path / "data", model, skill_roots=[tmp_path / "skills"], room=room) as bench:
        with (
            disturbed(bench.client, "complete", before=admitted),
            disturbed(bench.store.journal, "append", after=at_event(ev.StepFinished, ended)),
        ):
            await bench.run("run all the skills and search")
    assert settled.count("asked") == asked


async def test_a_model_in_a_loop_makes_few_calls_a_turn_and_fewer_at_once(tmp_path: Path) -> None:
    under_way = most = 0
    pair = asyncio.Event()

    async def work(_: object) -> JsonValue:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 2:
            pair.set()
        await pair.wait()
        for _ in range(5):  # other admitted requests arrive meanwhile
            await asyncio.sleep(0)
        under_way -= 1
        return "found"

    roots = write_skill(tmp_path / "skills", "many", "lookup")
    calls = tuple(Call("lookup", {"x": str(number)}, id=f"c{number}") for number in range(MAX_CALLS_A_TURN + 4))
    model = script(says("all done", to="skill", about="tool_call_id"), says("", to="skill", calls=calls))
    room = Room(id="test", budgets=Budgets(max_parallel=2))
    tools = [FunctionTool("lookup", work)]
    async with bounded_bench(tmp_path / "data", model, skill_roots=[roots], tools=tools, room=room) as bench:
        events = await bench.events("/many go")
    assert most == 2
    assert [event.type for event in events].count("tool.called") == MAX_CALLS_A_TURN
    assert [event.type for event in events].count("tool.refused") == 4


async def test_more_explicit_tool_calls_than_the_room_has_steps_are_refused(tmp_path: Path) -> None:
    room = Room(id="test", budgets=Budgets(max_steps=3))
    async with bounded_bench(tmp_path, None, tools=[returning("quick", "done")], room=room) as bench:
        await start_run(bench, *["quick"] * 3)
        with pytest.raises(BadRequestError, match="at most 3"):
            await start_run(bench, *["quick"] * 4)


async def test_a_budget_spent_before_the_judge_ends_in_a_partial_answer(tmp_path: Path) -> None:
    room = ALWAYS.model_copy(update={"budgets": Budgets(max_model_calls=1)})
    model = script(plans({"tool": "good"}, {"tool": "completion"}))
    async with bounded_bench(tmp_path, model, tools=[returning("good", "the known fact")], room=room) as bench:
        response = await bench.run("search for good")
    assert response.metadata["status"] == "aborted"
    assert "1 model calls" in response.response


async def test_a_budget_spent_before_the_planner_ends_in_a_partial_answer(tmp_path: Path) -> None:
    room = Room(id="test", budgets=Budgets(max_model_calls=1))
    tools = [returning("good", "the known fact"), returning("bad", ToolInputError("no use"))]
    model = script(plans({"tool": "good"}, {"tool": "bad"}, {"tool": "completion"}))
    async with bounded_bench(tmp_path, model, tools=tools, room=room) as bench:
        response = await bench.run("search for good and bad")
    assert response.metadata["status"] == "aborted"
    assert "the known fact" in response.response
    assert "1 model calls" in response.response


@pytest.mark.parametrize("prompt", ["search and compute", "What is the capital of France?"])
async def test_a_model_call_that_was_cut_short_is_counted(tmp_path: Path, prompt: str) -> None:
    gate = Gate()
    async with bounded_bench(tmp_path, script(says("never"))) as bench:
        with disturbed(bench.client, "_wait", before=gate.arrive):
            run_id = await bench.service.start_run(AgentRequest(prompt=prompt))
            await gate.reached.wait()
            await bench.service.cancel_run(run_id)
            response = await bench.service.wait_for_response(run_id)
    assert response.metadata["usage"]["model_calls"] == 1


DEEP = json.loads('{"deeper": ' * 300 + "0" + "}" * 300)
TOO_DEEP = ev.ToolRefused.model_construct(call_id="c", tool="t", args=DEEP, reason="r")
"""Not validated, for validation stops at a depth that the log does not take either."""


async def _log(bench: Bench, run_id: str) -> list[ev.Event]:
    return [event async for event in bench.service.follow_events(run_id)]


async def test_a_stream_that_is_left_while_its_piece_is_stored_is_counted(tmp_path: Path) -> None:
    gate, room = Gate(), Room(id="test", planning=False, budgets=Budgets(max_seconds=3))
    # The pieces are waited for only if there is a follower, who needs a moment to come.
    model = script(says("one two three four five six", delay_s=0.5))
    async with bounded_bench(tmp_path, model, room=room) as bench:
        with disturbed(bench.store.journal, "append", before=at_event(ev.AnswerDelta, gate.arrive)):
            run_id = await bench.service.start_run(AgentRequest(prompt="What is the capital of France?"))
            followed = asyncio.create_task(_log(bench, run_id))
            await gate.reached.wait()
            live = bench.service.worker.get_live_run(run_id)
            assert isinstance(live, Run)
            while live._unapplied_groups < 2:  # noqa: ASYNC110 - the end of the call waits behind the piece
                await asyncio.sleep(0.01)
            gate.open()
            log = await followed
    returned = [event.body for event in log if isinstance(event.body, ev.ModelReturned)]
    assert [body.error_code for body in returned] == ["ERR_CANCELLED"]


@pytest.mark.parametrize(
    "groups",
    [
        ((PASSED,), (TOO_DEEP,)),
        ((PASSED, ev.RunSucceeded()), (ev.CancelRequested(),)),
    ],
)
async def test_what_does_not_belong_into_the_log_spoils_nothing_written_with_it(
    tmp_path: Path, groups: Sequence[Sequence[ev.EventBody]]
) -> None:
    good, bad = groups
    async with bounded_bench(tmp_path, None) as bench:
        claim = await bench.store.journal.create_run(RUN_ID, created(), worker="w", lease_s=60)
        run = Run(bench.engine, claim)
        written, refused = await asyncio.gather(run.emit(*good), run.emit(*bad), return_exceptions=True)
        log = await bench.store.journal.read_events(RUN_ID)
    assert written is None
    assert isinstance(refused, AgentError)
    assert [event.body for event in log[1:]] == list(good)
    assert run.events == log
