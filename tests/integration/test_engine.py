"""The journey of a request through the engine: real store, real tools, a scripted model."""

import asyncio
import json
from pathlib import Path
from typing import Literal

import pytest
from pydantic import JsonValue

from agent.core import events as ev
from agent.core.errors import BadRequestError, ToolError
from agent.core.events import AnswerStarted
from agent.core.models import AgentRequest, AgentResponse, Budgets, JsonObject, Room
from tests.support.engine import engine_bench
from tests.support.script import Call, answers, judges, plans, says, script
from tests.support.tools import EFFECT, FunctionTool, Latch, returning

ALWAYS = Room(id="test", supervision="always")
CHECKS = Room(id="test", supervision="checks")


def outcomes(response: AgentResponse) -> list[tuple[str | None, str]]:
    return [(s.step_id, str(s.detail["outcome"])) for s in response.steps if s.type == "supervision"]


def write_skill(folder: Path, name: str, tools: str = "", body: str = "Do it.", extra: str = "") -> Path:
    path = folder / name
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: Does {name}.\nallowed-tools: {tools}\n{extra}---\n{body}\n"
    )
    return folder


@pytest.mark.row("S001-15", "S001-34", "S001-37", "S001-42", "S001-44")
async def test_a_request_is_planned_executed_supervised_and_answered(tmp_path: Path) -> None:
    model = script(
        plans(
            {"tool": "calculator", "inputs": {"expression": "2*21"}},
            {"tool": "current_time"},
            {"tool": "completion", "depends_on": ["s1", "s2"]},
            tier="high",
        ),
        says("It is 42.", to="completion", about="2*21 = 42"),
    )
    async with engine_bench(tmp_path, model) as bench:
        response = await bench.run(
            "please compute the sum and search the time", metadata={"mine": 1, "plan": "spoofed"}
        )
    assert response.response == "It is 42."
    assert bench.client.purposes() == ["planner", "completion"], "no model call is wasted in a plan that goes well"
    assert "tools" not in bench.client.requests[0]["body"], "the planner executes nothing"
    began = [step.started_at for step in response.steps]
    assert began == sorted(began), "in time order, whenever their events were written down"
    assert response.metadata["mine"] == 1
    assert [step["id"] for step in response.metadata["plan"]["steps"]] == ["s1", "s2", "s3"]
    assert [step["provider"] for step in response.metadata["plan"]["steps"]] == [None, None, "large"]
    assert response.metadata["status"] == "complete"
    assert response.metadata["runtime"]["planner"] == {
        "requested": "llm",
        "effective": "llm",
        "fallback_used": False,
        "fallback_reason": None,
    }
    assert response.metadata["runtime"]["answer"]["tier"] == "high"
    assert response.metadata["runtime"]["answer"]["model"] == "large"
    assert "plan" in response.metadata["runtime"]["answer"]["reason"]
    assert response.metadata["usage"]["total_tokens"] == 30
    assert [r["tool"] for r in response.metadata["tool_results"]] == ["calculator", "current_time"]
    kinds = [step.type for step in response.steps]
    assert kinds[:3] == ["route", "memory", "plan"]
    assert kinds[-1] == "gate"
    assert AgentResponse.model_validate_json(response.model_dump_json()) == response


@pytest.mark.row("S001-18", "S001-28")
async def test_a_failed_step_is_retried_once_with_feedback(tmp_path: Path) -> None:
    flaky = returning("flaky", ToolError("the disk is busy"), "fine now")
    model = script(plans({"tool": "flaky"}, {"tool": "completion"}), says("done", to="completion"))
    async with engine_bench(tmp_path, model, tools=[flaky]) as bench:
        response = await bench.run("use the flaky tool then report")
    assert outcomes(response) == [("s1", "RETRY"), ("s1", "SUCCESS"), ("s2", "SUCCESS")]
    assert len(flaky.calls) == 2
    assert len({*flaky.keys}) == 2, "a judged retry is a new call under a new key"
    second = [s for s in response.steps if s.type == "step" and s.attempt == 2]
    assert "the disk is busy" in str(second[0].detail["feedback"])


@pytest.mark.row("S001-18", "S001-29", "S001-31")
async def test_replans_see_what_is_known_and_finished_steps_are_not_run_again(tmp_path: Path) -> None:
    good, bad = returning("good", "the known fact"), returning("bad", ToolError("no use"))
    model = script(
        plans({"tool": "good"}, {"tool": "bad"}, {"tool": "completion", "depends_on": ["s1", "s2"]}, times=1),
        plans({"tool": "completion", "depends_on": ["s1"], "id": "s9"}, about="the known fact"),
        says("the answer", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[good, bad]) as bench:
        response = await bench.run("search for good and bad")
    asked = [r for r in bench.client.requests if r["purpose"] == "planner"][1]["body"]["messages"][1]["content"]
    assert "no use" in asked
    assert len(good.calls) == 1
    assert len(bad.calls) == 2
    assert response.response == "the answer"
    assert response.metadata["plan"]["version"] == 1
    assert [s["id"] for s in response.metadata["plan"]["steps"]] == ["s1", "s9"]
    assert response.metadata["status"] == "complete"


@pytest.mark.row("S001-31")
async def test_after_three_replans_the_answer_is_truthfully_partial(tmp_path: Path) -> None:
    bad = returning("bad", ToolError("always broken"))
    # Each plan tries another way: the same call is not made again.
    ways = [plans({"tool": "bad", "inputs": {"x": way}}, {"tool": "completion"}, times=1) for way in "abcd"]
    model = script(*ways, says("never", to="completion"))
    async with engine_bench(tmp_path, model, tools=[bad]) as bench:
        response = await bench.run("search with the bad tool")
    assert bench.client.purposes() == ["planner"] * 4
    assert response.metadata["status"] == "partial"
    assert "always broken" in response.response
    assert response.metadata["runtime"]["replans"] == 3


@pytest.mark.row("S001-30")
async def test_abort_stops_everything_and_says_so(tmp_path: Path) -> None:
    first, later = returning("first", "x"), returning("later", "y")
    model = script(
        plans({"tool": "first"}, {"tool": "later", "depends_on": ["s1"]}, {"tool": "completion", "depends_on": ["s2"]}),
        judges("ABORT", "this would do harm"),
    )
    slow = Room(id="test", supervision="always", budgets=Budgets(max_parallel=1))
    async with engine_bench(tmp_path, model, tools=[first, later], room=slow) as bench:
        response = await bench.run("search first then later")
    assert response.metadata["status"] == "aborted"
    assert response.metadata["aborted"] is True
    assert "this would do harm" in response.response
    assert later.calls == []


@pytest.mark.row("S001-22", "S001-23")
@pytest.mark.parametrize(
    ("value", "judged"),
    [
        ("", "SUCCESS"),
        ({"error": "not found"}, "SUCCESS"),
        ({"status": 503}, "SUCCESS"),
        ("Error: quota exceeded", "REPLAN"),
    ],
)
async def test_empty_results_and_hidden_errors_are_no_success(
    tmp_path: Path, value: str | dict[str, JsonValue], judged: str
) -> None:
    tool = returning("tool", value)
    model = script(
        plans({"tool": "tool"}, {"tool": "completion"}), says("x", to="completion"), judges(judged, "as it is")
    )
    async with engine_bench(tmp_path, model, tools=[tool], room=ALWAYS) as bench:
        response = await bench.run("search with the tool then report")
    assert [o for s, o in outcomes(response) if s == "s1"][:2] == ["RETRY", "REPLAN"]
    assert len(tool.calls) == 2, "a new plan does not call it again"
    assert response.metadata["status"] == "partial"


@pytest.mark.row("S001-24")
async def test_another_subject_than_the_intent_is_judged_and_replanned(tmp_path: Path) -> None:
    weather = returning(
        "lookup", "Sunny with light winds over the coast and mild temperatures until evening, says the forecaster."
    )
    model = script(
        plans({"tool": "lookup", "intent": "stock price of ACME shares"}, {"tool": "completion"}, times=1),
        plans({"tool": "completion"}),
        judges("REPLAN", "the output is about weather, not stocks"),
        says("I could not find the price.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[weather], room=ALWAYS) as bench:
        response = await bench.run("search the stock price of ACME")
    assert outcomes(response)[0] == ("s1", "REPLAN")
    assert bench.client.purposes() == ["planner", "supervisor", "planner", "completion", "supervisor"]
    assert response.response.startswith("I could not find the price.")


@pytest.mark.row("S001-25")
async def test_a_figure_that_no_tool_returned_is_doubted(tmp_path: Path) -> None:
    roots = write_skill(tmp_path / "skills", "tell-budget", "calculator")
    compute = says("", to="skill", calls=(Call("calculator", {"expression": "3*4"}),), times=1)
    model = script(
        compute,
        says("The budget is 98765 euros.", to="skill", times=1),
        judges("RETRY", "98765 stands in no evidence", "use the tool", times=1),
        compute,
        says("The budget is 12 euros.", to="skill"),
    )
    async with engine_bench(tmp_path / "d", model, skill_roots=[roots]) as bench:
        response = await bench.run("/tell-budget what is the budget?")
    assert response.response == "The budget is 12 euros."
    assert outcomes(response) == [("s1", "RETRY"), ("s1", "SUCCESS")]
    retry = [r for r in bench.client.requests if r["purpose"] == "skill"][2]["body"]["messages"][1]["content"]
    assert "use the tool" in retry


@pytest.mark.row("S001-25")
@pytest.mark.parametrize("supervision", ["checks", "auto", "always"])
async def test_an_answer_with_an_invented_figure_is_written_again(tmp_path: Path, supervision: str) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}),
        judges("SUCCESS"),
        says("The revenue was 98765 kronor.", to="completion", times=1),
        says("The revenue was 42 kronor.", to="completion"),
    )
    room = Room.model_validate({"id": "test", "supervision": supervision})
    async with engine_bench(tmp_path, model, room=room) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="search the revenue"))
        response = await bench.service.wait_for_response(run_id)
    assert [outcome for step, outcome in outcomes(response) if step == "s2"] == ["RETRY", "SUCCESS"]
    assert response.response == "The revenue was 42 kronor."
    assert "98765" in str([r for r in bench.client.requests if r["purpose"] == "completion"][1]["body"]["messages"])
    assert response.metadata["uncertainties"] == []


@pytest.mark.row("S001-25", "S002-31")
@pytest.mark.parametrize("streamed", [True, False])
async def test_an_invented_figure_that_stays_is_marked_and_the_run_is_partial(tmp_path: Path, streamed: bool) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}),
        says("The revenue was 98765 kronor, 42 a day.", to="completion"),
    )
    async with engine_bench(tmp_path, model) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="search the revenue"))
        if streamed:
            assert [event async for event in bench.service.follow_events(run_id)]
        response = await bench.service.wait_for_response(run_id)
        row = await bench.service.get_run(run_id)
    verdicts = [outcome for step, outcome in outcomes(response) if step == "s2"]
    assert verdicts == (["SUCCESS"] if streamed else ["RETRY", "SUCCESS"]), "what was read is not taken back"
    mark = "" if streamed else " [?]"
    note = "[?] Not confirmed by any result: 98765. Check before you rely on it."
    assert response.response == f"The revenue was 98765{mark} kronor, 42 a day.\n\n{note}"
    assert "98765" in response.metadata["uncertainties"][0]["message"]
    assert (response.metadata["status"], row.status) == ("partial", "partial")
    assert "98765" in response.metadata["reason"]


async def test_figures_of_a_plain_answer_need_no_evidence(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, script(answers("It has 10 500 000 inhabitants."))) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="How many people live in Sweden?"))
        response = await bench.service.wait_for_response(run_id)
    assert bench.client.purposes() == ["planner"]
    assert response.response == "It has 10 500 000 inhabitants."
    assert response.metadata["uncertainties"] == []


@pytest.mark.parametrize("result", ["Sunny, 21 degrees.", "item,units,price\nchair,151,2870\ntable,7,12"])
async def test_words_not_shared_with_the_intent_cost_no_model_call(tmp_path: Path, result: str) -> None:
    model = script(
        plans({"tool": "lookup", "intent": "find the stock price of Volvo"}, {"tool": "completion"}),
        judges("REPLAN", "no word in common"),
        says("Here it is.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[returning("lookup", result)]) as bench:
        response = await bench.run("search the stock price of Volvo")
    assert bench.client.purposes() == ["planner", "completion"]
    assert response.metadata["status"] == "complete"


@pytest.mark.row("S002-53")
async def test_a_judge_that_hangs_changes_no_plan_and_is_told(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "lookup"}, {"tool": "other", "depends_on": ["s1"]}, {"tool": "completion"}),
        judges("REPLAN", delay_s=60),
        says("It is 42.", to="completion"),
    )
    tools = [returning("lookup", "42"), returning("other", "42")]
    async with engine_bench(tmp_path, model, tools=tools, room=ALWAYS) as bench:
        object.__setattr__(bench.engine.models, "timeout_s", 0.2)
        response = await bench.run("search the answer")
    assert bench.client.purposes() == ["planner", "supervisor", "completion"], "asked once, and no new plan"
    assert response.metadata["status"] == "complete"
    told = [one for one in response.metadata["uncertainties"] if "did not answer within" in one["message"]]
    assert [(one["level"], one["step_id"]) for one in told] == [("info", "s1")]


async def test_an_unreadable_verdict_is_asked_for_once_more_and_then_the_rules_hold(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "1+1"}}, {"tool": "completion"}, times=1),
        says("looks fine to me", to="supervisor"),
        says("It is 2.", to="completion"),
    )
    async with engine_bench(tmp_path, model, room=ALWAYS) as bench:
        response = await bench.run("search and compute")
    assert outcomes(response)[0] == ("s1", "SUCCESS")
    assert bench.client.purposes() == ["planner", "supervisor", "supervisor", "completion"]
    told = [one["message"] for one in response.metadata["uncertainties"]]
    assert any("no readable verdict, even when asked again" in one for one in told)


@pytest.mark.parametrize(("profile", "judged"), [("capable", True), ("small", False)])
async def test_one_free_text_of_a_skill_is_judged_where_the_model_judges_reliably(
    tmp_path: Path, profile: Literal["capable", "small"], judged: bool
) -> None:
    roots = write_skill(tmp_path / "skills", "share-price", "calculator")
    model = script(
        says("It will be sunny in Malmö, with light winds.", to="skill"),
        judges("REPLAN", "this is the weather, not a share price"),
        plans({"tool": "completion"}),
        says("I could not find the price.", to="completion"),
    )
    async with engine_bench(tmp_path / "d", model, skill_roots=[roots], model_profile=profile) as bench:
        response = await bench.run("/share-price of ACME")
    assert bench.client.purposes().count("supervisor") == (1 if judged else 0)
    assert outcomes(response)[0][1] == ("REPLAN" if judged else "SUCCESS")
    told = [one["message"] for one in response.metadata["uncertainties"]]
    assert any("no model of this gateway is known to judge reliably" in one for one in told) is not judged


async def test_an_answer_is_judged_in_a_room_that_always_judges(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}),
        judges("SUCCESS", times=1),
        says("Bananas are yellow.", to="completion", times=1),
        judges("RETRY", "it is about fruit", "say what 6*7 is"),
    )
    async with engine_bench(tmp_path, model, room=ALWAYS) as bench:
        response = await bench.run("search and compute")
    assert response.response == "Bananas are yellow.", "a reader has seen it"
    assert bench.client.purposes() == ["planner", "supervisor", "completion", "supervisor"]
    told = [one["message"] for one in response.metadata["uncertainties"]]
    assert any("what the judge doubts: it is about fruit" in one for one in told)


async def test_a_high_tier_of_the_room_holds_for_the_answer_of_any_plan(tmp_path: Path) -> None:
    calculation = {"tool": "calculator", "inputs": {"expression": "6*7"}}
    model = script(plans(calculation, {"tool": "completion", "tier": "fast"}), says("It is 42.", to="completion"))
    async with engine_bench(tmp_path, model, room=Room(id="test", answer_tier="high")) as bench:
        events = await bench.events("search and compute")
    assert [event.body.tier for event in events if isinstance(event.body, AnswerStarted)] == ["high"]


@pytest.mark.row("S001-32", "S001-36")
async def test_a_skill_may_call_only_its_own_tools(tmp_path: Path) -> None:
    secret = returning("secret_tool", "secret")
    roots = write_skill(tmp_path / "skills", "narrow", "calculator")
    model = script(
        says("", to="skill", calls=(Call("secret_tool", {"x": "1"}),), times=1),
        says("I was not allowed to.", to="skill"),
    )
    async with engine_bench(tmp_path / "d", model, tools=[secret], skill_roots=[roots]) as bench:
        response = await bench.run("/narrow use the secret tool")
    assert secret.calls == []
    refused = [s for s in response.steps if s.status == "refused"]
    assert [s.title for s in refused] == ["secret_tool"]
    offered = [t["function"]["name"] for t in bench.client.requests[0]["body"]["tools"]]
    assert offered == ["calculator"]
    told = bench.client.requests[1]["body"]["messages"][-1]
    assert told["role"] == "tool"
    assert "Refused" in told["content"]


async def test_a_skill_that_never_ends_is_stopped_by_its_turns(tmp_path: Path) -> None:
    roots = write_skill(tmp_path / "skills", "loop", "calculator", extra="metadata:\n  agent-max-turns: '3'\n")
    model = script(says("", to="skill", calls=(Call("calculator", {"expression": "1+1"}),)), plans({"tool": "loop"}))
    async with engine_bench(tmp_path / "d", model, skill_roots=[roots]) as bench:
        response = await bench.run("/loop around")
    assert response.metadata["status"] == "partial"
    assert "3 turns" in response.response


async def test_steps_that_do_not_depend_on_one_another_run_at_once(tmp_path: Path) -> None:
    latch = Latch(3)
    tools = [FunctionTool(name, latch.arrive) for name in ("one", "two", "three")]
    model = script(plans(*({"tool": t.spec.name} for t in tools), {"tool": "completion"}), says("met", to="completion"))
    async with engine_bench(tmp_path, model, tools=tools) as bench:
        response = await bench.run("search with one, two and three")
    assert response.response == "met"


async def test_a_read_only_dependent_runs_beside_the_judge_and_is_discarded_if_need_be(tmp_path: Path) -> None:
    first, second = returning("first", "one result", "a better result"), returning("second", "two result")
    steps = ({"tool": "first"}, {"tool": "second", "depends_on": ["s1"]}, {"tool": "completion", "depends_on": ["s2"]})
    model = script(
        plans(*steps, times=1),
        judges("RETRY", "again please", about="one result", times=1, delay_s=0.05),
        judges("SUCCESS"),
        says("fine", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[first, second], room=ALWAYS) as bench:
        events = await bench.events("search first then second")
    types = [(e.type, e.step_id) for e in events]
    assert ("step.speculative", "s2") in types
    assert types.index(("step.discarded", "s2")) > types.index(("step.speculative", "s2"))
    assert len(first.calls) == 2
    assert len(second.calls) == 2
    assert isinstance(events[-1].body, ev.RunSucceeded)
    assert [e.seq for e in events] == list(range(1, len(events) + 1))


@pytest.mark.row("S001-20", "S001-46")
async def test_references_pass_values_and_taint_between_steps(tmp_path: Path) -> None:
    source = returning("source", {"items": ["alpha", "beta"]}, tainted=True)
    sink = returning("sink", "ok then")
    model = script(
        plans(
            {"tool": "source"},
            {"tool": "sink", "inputs": {"x": "$s1.output.items[1]"}},
            {"tool": "completion", "depends_on": ["s2"]},
        ),
        says("fine", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[source, sink]) as bench:
        events = await bench.events("search the source then the sink")
    assert sink.calls == [{"x": "beta"}]
    started = next(e.body for e in events if e.step_id == "s2" and isinstance(e.body, ev.StepStarted))
    assert started.tainted


@pytest.mark.row("S001-20", "S002-24")
async def test_a_whole_result_goes_into_the_next_step_as_its_text(tmp_path: Path) -> None:
    """Planners are told to write `$s1`; the fields of a result they do not know."""
    properties = {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "rows": {"type": "array"}}
    wrapped = returning("wrapped", {"result": "kelp"})
    page = FunctionTool("page", _page)
    sink = returning("sink", "ok then", properties=properties)
    model = script(
        plans(
            {"tool": "calculator", "inputs": {"expression": "6*7"}},
            {"tool": "calculator", "inputs": {"expression": "$s1 + 1"}},
            {"tool": "wrapped"},
            {"tool": "page"},
            {"tool": "sink", "inputs": {"x": "$s3"}},
            {"tool": "sink", "inputs": {"x": "$s4"}},
            {"tool": "completion"},
        ),
        says("fine", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[wrapped, page, sink], room=CHECKS) as bench:
        response = await bench.run("search the page and compute the sum then")
    assert response.metadata["status"] == "complete"
    assert [one["text"] for one in response.metadata["tool_results"] if one["tool"] == "calculator"][1] == "42 + 1 = 43"
    assert sorted(str(call["x"]) for call in sink.calls) == ["kelp", "{'title': 'Kelp'}"]


async def _page(_: JsonObject) -> JsonValue:
    return {"title": "Kelp"}


@pytest.mark.row("S001-21", "S001-24")
async def test_a_plan_that_says_nothing_of_its_intents_is_held_to_the_question(tmp_path: Path) -> None:
    step = {"executor": "agent", "action": "tool", "tool": "stock", "args": {"symbol": "ACME"}}
    model = script(
        says(json.dumps({"goal": "the price", "steps": [step]}), to="planner", times=1),
        says(json.dumps({"goal": "the price", "steps": [{**step, "tool": "quote"}]}), to="planner", times=1),
        judges("REPLAN", "it is weather, and no price", about="sunny"),
        judges("SUCCESS"),
        says("ACME stands at 12.50.", to="completion"),
    )
    properties = {"symbol": {"type": "string"}}
    stock = returning("stock", "It is sunny in ACME, 21 degrees.", properties=properties)
    quote = returning("quote", "12.50", properties=properties)
    async with engine_bench(tmp_path, model, tools=[stock, quote], room=ALWAYS) as bench:
        response = await bench.run("search for the share price of ACME")
    assert outcomes(response)[0] == ("s1", "REPLAN")
    assert [one["tool"] for one in response.metadata["tool_results"]] == ["stock", "quote"]


@pytest.mark.row("S001-47", "S001-48")
async def test_explicit_tool_calls_are_executed_and_reported_without_a_plan(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None) as bench:
        response = await bench.run("", metadata={"tool_calls": [{"tool": "calculator", "args": {"expression": "6*7"}}]})
        failed = await bench.run("", metadata={"tool_calls": [{"tool": "calculator", "args": {"expression": "1/0"}}]})
        with pytest.raises(BadRequestError, match="calculator"):
            await bench.run(
                "6*7", metadata={"tools": ["current_time"], "tool_calls": [{"tool": "calculator", "args": {}}]}
            )
    assert response.response == "6*7 = 42"
    assert [(r["tool"], r["ok"]) for r in response.metadata["tool_results"]] == [("calculator", True)]
    assert failed.metadata["status"] == "partial"
    assert "divides by zero" in failed.response


@pytest.mark.row("S001-50")
async def test_a_conversation_is_remembered(tmp_path: Path) -> None:
    model = script(answers("Nice to meet you, Ada.", about="I am Ada", times=1), answers("Ada."))
    async with engine_bench(tmp_path, model) as bench:
        await bench.run("I am Ada", conversation_id="c1")
        await bench.run("Who am I?", conversation_id="c1")
        await bench.run("Who am I?", conversation_id="c2")
    second, third = (str(r["body"]["messages"][-1]["content"]) for r in bench.client.requests[1:])
    history = second.partition("</history>")[0].partition("<history>")[2]
    assert "I am Ada" in history, "in the conversation itself, not only in the memory"
    assert "Nice to meet you" in history
    assert "I am Ada" not in third


@pytest.mark.parametrize(
    ("prompt", "purposes"),
    [
        ("hello", ["completion"]),
        ("What is the capital of France?", ["planner"]),
        ("### Task:\nGenerate a title", ["task"]),
        ("2+2*3", ["planner"]),
        ("/tools", []),
    ],
)
async def test_cheap_turns_stay_cheap(tmp_path: Path, prompt: str, purposes: list[str]) -> None:
    model = script(says("ok", to="completion"), answers("ok"), says('{"title": "T"}', to="task"))
    async with engine_bench(tmp_path, model) as bench:
        response = await bench.run(prompt)
    assert bench.client.purposes() == purposes
    assert response.metadata["status"] == "complete"


async def test_a_room_without_planning_passes_the_clients_tools_through(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "mine", "parameters": {}}}
    delta = says("plain answer", to="completion")
    async with engine_bench(tmp_path, script(delta)) as bench:
        await bench.run("search something", room="plain", client_tools=(tool,))
        ignored = await bench.run("hello", client_tools=(tool,))
    assert bench.client.requests[0]["body"]["tools"] == [tool]
    assert ignored.metadata["runtime"]["client_tools_ignored"] == 1


@pytest.mark.parametrize("fault", ["status_500", "status_401", "garbage", "empty", "hang", "half_stream"])
async def test_a_planner_that_fails_hands_over_to_the_rules(tmp_path: Path, fault: str) -> None:
    model = script(says("x", to="planner", fault=fault), says("2*21 is 42", to="completion"))
    if fault == "half_stream":
        model = script(says('{"steps": [{"id": "s1", "tool', to="planner"), says("2*21 is 42", to="completion"))
    async with engine_bench(tmp_path, model) as bench:
        response = await bench.run("search and compute 2*21 please")
    assert "2*21 is 42" in response.response.split("\n\n"), "beside it stands that no tool was used, if one was planned"
    planner = response.metadata["runtime"]["planner"]
    assert (planner["requested"], planner["effective"], planner["fallback_used"]) == ("llm", "rules", True)
    assert planner["fallback_reason"]


@pytest.mark.row("S001-21", "S001-38")
async def test_every_attempt_has_a_verdict_marked_by_whom(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "1+1"}}, {"tool": "completion"}),
        judges("SUCCESS", "good"),
        says("2", to="completion"),
    )
    async with engine_bench(tmp_path, model, room=ALWAYS) as bench:
        response = await bench.run("search and compute")
    verdicts = [s.detail for s in response.steps if s.type == "supervision"]
    assert [v["by"] for v in verdicts] == ["model", "model"]
    tools = [s for s in response.steps if s.type == "tool"]
    assert len(response.metadata["tool_results"]) == len(tools)


async def test_half_a_stream_is_retried_and_the_answer_is_whole(tmp_path: Path) -> None:
    model = script(
        says("Half of this is lost.", to="completion", fault="half_stream", times=1),
        says("All of it.", to="completion"),
    )
    async with engine_bench(tmp_path, model) as bench:
        events = await bench.events("What is the capital of France?")
    answer = next(e.body for e in events if isinstance(e.body, ev.AnswerFinished))
    assert answer.text == "All of it."
    assert [e.body.restarted for e in events if isinstance(e.body, ev.AnswerStarted)] == [False, True]


async def test_what_a_model_wrote_before_it_failed_is_kept(tmp_path: Path) -> None:
    story = "The harbour was quiet, and the boats lay still. " * 20
    model = script(
        says(story, to="completion", fault="half_stream", times=1), says("", to="completion", fault="status_500")
    )
    async with engine_bench(tmp_path, model) as bench:
        events = await bench.events("What is the capital of France?")
    failed = next(e.body for e in events if isinstance(e.body, ev.RunFailed))
    assert failed.written.startswith("The harbour was quiet")
    assert story.startswith(failed.written)


async def test_a_plain_question_that_cannot_be_asked_fails_with_its_cause(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, script(says("", to="completion", fault="status_401"))) as bench:
        response = await bench.run("What is the capital of France?")
    assert response.metadata["status"] == "failed"
    assert response.metadata["failure"]["error_code"] == "ERR_MODEL_AUTH"


async def test_results_are_not_lost_when_the_answering_model_is_down(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("", to="completion", fault="status_500"),
    )
    async with engine_bench(tmp_path, model) as bench:
        response = await bench.run("search and compute")
    assert "2*21 = 42" in response.response
    assert response.metadata["runtime"]["executor"]["fallback_used"] is True
    assert response.metadata["uncertainties"]


@pytest.mark.parametrize("finish", ["length", "stop"])
async def test_results_are_not_lost_when_the_models_answer_is_empty(tmp_path: Path, finish: str) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("", to="completion", finish_reason=finish),
    )
    async with engine_bench(tmp_path, model) as bench:
        events = await bench.events("search and compute")
        purposes = bench.client.purposes()
    answer = next(e.body for e in events if isinstance(e.body, ev.AnswerFinished))
    assert "2*21 = 42" in answer.text
    assert answer.finish_reason == finish
    assert purposes.count("completion") == (1 if finish == "length" else 2)
    told = {"length": "the model used up its token limit", "stop": "the model returned an empty reply"}[finish]
    assert any(told in one.message for one in answer.uncertainties)


async def test_a_spent_budget_ends_in_an_honest_answer(tmp_path: Path) -> None:
    room = Room(id="test", budgets=Budgets(max_model_calls=1))
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("never", to="completion"),
    )
    async with engine_bench(tmp_path, model, room=room) as bench:
        response = await bench.run("search and compute")
    assert response.metadata["status"] == "aborted"
    assert "2*21 = 42" in response.response
    assert "1 model calls" in response.response


async def test_the_wall_time_of_a_run_is_bounded(tmp_path: Path) -> None:
    async def never(_: object) -> str:
        await asyncio.Event().wait()
        return ""

    room = Room(id="test", budgets=Budgets(max_seconds=0.3))
    model = script(plans({"tool": "stuck"}, {"tool": "completion"}))
    async with engine_bench(tmp_path, model, tools=[FunctionTool("stuck", never)], room=room) as bench:
        response = await bench.run("search with the stuck tool")
    assert response.metadata["status"] in ("aborted", "partial")
    assert "0.3 s" in response.response or "within" in response.response


async def test_a_cancelled_run_says_what_is_known(tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def stuck(_: object) -> str:
        reached.set()
        await asyncio.Event().wait()
        return ""

    model = script(
        plans(
            {"tool": "calculator", "inputs": {"expression": "2*21"}},
            {"tool": "stuck", "depends_on": ["s1"]},
            {"tool": "completion", "depends_on": ["s2"]},
        )
    )
    async with engine_bench(tmp_path, model, tools=[FunctionTool("stuck", stuck)]) as bench:
        run_id = await bench.service.start_run(AgentRequest(prompt="search and wait"))
        async with asyncio.timeout(10):
            await reached.wait()
        await bench.service.cancel_run(run_id)
        response = await bench.service.wait_for_response(run_id)
        row = await bench.service.get_run(run_id)
    assert row.status == "cancelled"
    assert "2*21 = 42" in response.response


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        (returning("odd", ValueError("boom")), "ValueError"),
        (
            returning("odd", {"n": "x"}, output_schema={"type": "object", "properties": {"n": {"type": "integer"}}}),
            "does not match its schema",
        ),
    ],
)
async def test_a_tool_that_raises_or_lies_is_data_for_the_supervisor(
    tmp_path: Path, tool: FunctionTool, problem: str
) -> None:
    model = script(plans({"tool": "odd"}, {"tool": "completion"}), says("x", to="completion"))
    async with engine_bench(tmp_path, model, tools=[tool]) as bench:
        response = await bench.run("search with the odd tool")
    assert problem in response.response
    assert response.metadata["status"] == "partial"


async def test_a_tool_that_hangs_is_timed_out(tmp_path: Path) -> None:
    async def never(_: object) -> str:
        await asyncio.Event().wait()
        return ""

    stuck = FunctionTool("stuck", never, timeout_s=0.05)
    model = script(plans({"tool": "stuck"}, {"tool": "completion"}), says("x", to="completion"))
    async with engine_bench(tmp_path, model, tools=[stuck]) as bench:
        response = await bench.run("search with the stuck tool")
    assert {r["error_code"] for r in response.metadata["tool_results"]} == {"ERR_TOOL_TIMEOUT"}


async def test_fifty_megabytes_are_cut_stored_once_and_do_not_flood_the_prompt(tmp_path: Path) -> None:
    huge = returning("huge", "line of text\n" * 4_000_000)
    model = script(plans({"tool": "huge"}, {"tool": "completion"}), says("big", to="completion"))
    async with engine_bench(tmp_path, model, tools=[huge], tool_output_chars=100_000) as bench:
        response = await bench.run("search the huge thing")
        size = bench.store.database.path.stat().st_size
    assert response.response == "big"
    assert response.metadata["tool_results"][0]["truncated"] is True
    asked = bench.client.requests[-1]["body"]["messages"][-1]["content"]
    assert len(asked) < 12_000
    assert size < 3_000_000


async def test_a_side_effect_is_not_retried_by_itself(tmp_path: Path) -> None:
    sender = returning("send", ToolError("no answer"), annotations=EFFECT)
    model = script(
        plans({"tool": "send", "inputs": {"x": "mail"}}, {"tool": "completion"}, times=1),
        plans({"tool": "completion"}),
        says("It may not have been sent.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[sender]) as bench:
        response = await bench.run("search and send the mail")
    assert len(sender.calls) == 1
    assert outcomes(response)[0] == ("s1", "REPLAN")


async def test_without_a_model_the_rules_do_what_they_can_and_say_so(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, None) as bench:
        response = await bench.run("What is 17.5 * 240, and what time is it in Stockholm?")
        helpless = await bench.run("Write a poem about the sea")
    assert "4200" in response.response
    assert "Europe/Stockholm" in response.response
    assert response.metadata["runtime"]["mode"] == "rules"
    told = {"requested": "rules", "effective": "rules", "fallback_used": False, "fallback_reason": None}
    assert response.metadata["runtime"]["planner"] == response.metadata["runtime"]["executor"] == told
    assert "rules mode" in helpless.response


async def test_two_results_have_headings_for_a_reader(tmp_path: Path) -> None:
    calls = [{"tool": "calculator", "args": {"expression": "2+2"}}, {"tool": "current_time", "args": {}}]
    async with engine_bench(tmp_path, None) as bench:
        named = await bench.run("", metadata={"tool_calls": calls})
        read = await bench.run("What is 3*3, and what time is it in Stockholm?")
    assert "**Calculator: 2+2**" in named.response
    assert "**Current time**" in named.response
    assert "**Calculate 3*3**" in read.response
    assert "**Tell the time in Europe/Stockholm**" in read.response


async def test_a_small_model_that_writes_its_call_as_text_is_understood(tmp_path: Path) -> None:
    roots = write_skill(tmp_path / "skills", "sum-up", "calculator")
    model = script(
        says('{"name": "calculator", "parameters": {"expression": "3*4"}}', to="skill", times=1),
        says("It is 12.", to="skill", about="3*4 = 12"),
    )
    async with engine_bench(tmp_path / "d", model, skill_roots=[roots]) as bench:
        response = await bench.run("/sum-up three times four")
    assert response.response == "It is 12."
