"""What the agent service promises, at `POST /v1/agent` of a running gateway with a scripted model."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.errors import ToolError
from tests.integration.conftest import Serve
from tests.integration.test_engine import write_skill
from tests.support.door_bench import door_bench, list_outcomes
from tests.support.script import Call, Rule, judges, plans, says
from tests.support.scripted_server import ScriptedServer
from tests.support.tools import EFFECT, returning

ALWAYS = "name: Test\nsupervision: always\n"
SUM = {"tool": "calculator", "inputs": {"expression": "2*21"}}
SWEDISH = "Jämför de två anbuden och säg vilket som är billigast, se `anbud.md`"


@pytest.mark.row("S001-15", "S001-34", "S001-37", "S001-44", "S001-38")
async def test_a_request_is_planned_executed_and_answered_by_the_large_model(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    steps = (SUM, {"tool": "current_time"}, {"tool": "completion", "depends_on": ["s1", "s2"]})
    rules = (plans(*steps, tier="high"), says("It is 42.", to="completion", about="2*21 = 42"))
    async with door_bench(tmp_path, model_server, *rules) as door:
        spoofed = {"mine": 1, "plan": "spoofed", "tool_results": "spoofed"}
        answer = await door.ask("please compute the sum and search the time", metadata=spoofed)
        events = await door.list_events(answer)
        (planner,), (completion,) = door.bodies("planner"), door.bodies("completion")
    metadata = answer["metadata"]
    assert answer["response"] == "It is 42."
    assert "tools" not in planner, "the planner calls nothing"
    kinds = [event["type"] for event in events]
    assert kinds.index("plan.proposed") < kinds.index("tool.called"), "no tool runs before there is a plan"
    assert (planner["model"], completion["model"]) == ("small", "large")
    assert [step["provider"] for step in metadata["plan"]["steps"]] == [None, None, "large"]
    assert metadata["mine"] == 1, "the caller's own"
    assert [result["tool"] for result in metadata["tool_results"]] == ["calculator", "current_time"], "not the caller's"
    assert kinds.count("tool.returned") == len(metadata["tool_results"])
    shown = [step["type"] for step in answer["steps"]]
    assert {"plan", "tool", "step", "supervision", "gate"} <= set(shown)
    assert shown.count("supervision") == len(metadata["plan"]["steps"]), "a verdict for each step"
    began = [step["started_at"] for step in answer["steps"]]
    assert began == sorted(began)


@pytest.mark.row("S001-18", "S001-28", "S001-46")
async def test_a_failed_step_is_retried_once_with_what_went_wrong(tmp_path: Path, model_server: ScriptedServer) -> None:
    flaky = returning("flaky", ToolError("the disk is busy"), "fine now")
    rules = (plans({"tool": "flaky"}, {"tool": "completion"}), says("done", to="completion"))
    async with door_bench(tmp_path, model_server, *rules, tools=[flaky]) as door:
        answer = await door.ask("use the flaky tool then report")
        listed = (await door.client.get("/v1/tools")).json()["data"]
    assert "flaky" in {one["name"] for one in listed}, "a tool that was registered is one like any other"
    assert list_outcomes(answer)[:2] == [("s1", "RETRY"), ("s1", "SUCCESS")]
    assert len(flaky.calls) == 2
    (second,) = [one for one in answer["steps"] if one["type"] == "step" and one["attempt"] == 2]
    assert "the disk is busy" in str(second["detail"]["feedback"])


@pytest.mark.row("S001-18", "S001-29")
async def test_a_new_plan_knows_what_was_found_and_repeats_nothing(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    good, bad = returning("good", "the known fact"), returning("bad", ToolError("no use"))
    rules = (
        plans({"tool": "good"}, {"tool": "bad"}, {"tool": "completion", "depends_on": ["s1", "s2"]}, times=1),
        plans({"tool": "completion", "depends_on": ["s1"], "id": "s9"}, about="the known fact"),
        says("the answer", to="completion"),
    )
    async with door_bench(tmp_path, model_server, *rules, tools=[good, bad]) as door:
        answer = await door.ask("search for good and bad")
        again = str(door.bodies("planner")[1]["messages"])
    assert "no use" in again
    assert "the known fact" in again
    assert (len(good.calls), len(bad.calls)) == (1, 2)
    assert answer["response"] == "the answer"
    assert [step["id"] for step in answer["metadata"]["plan"]["steps"]] == ["s1", "s9"]


@pytest.mark.row("S001-31")
async def test_after_three_new_plans_the_answer_says_what_failed(tmp_path: Path, model_server: ScriptedServer) -> None:
    bad = returning("bad", ToolError("always broken"))
    ways = [plans({"tool": "bad", "inputs": {"x": way}}, {"tool": "completion"}, times=1) for way in "abcd"]
    rules = (*ways, says("never", to="completion"))
    async with door_bench(tmp_path, model_server, *rules, tools=[bad]) as door:
        answer = await door.ask("search with the bad tool")
        purposes = door.model.purposes()
    assert purposes == ["planner"] * 4
    assert (answer["metadata"]["status"], answer["metadata"]["runtime"]["replans"]) == ("partial", 3)
    assert "always broken" in answer["response"]


@pytest.mark.row("S001-22", "S001-23", "S001-21")
@pytest.mark.parametrize(
    ("value", "judged"),
    [
        ("", "SUCCESS"),
        ({"error": "not found"}, "SUCCESS"),
        ({"status": 503}, "SUCCESS"),
        ("Error: quota exceeded", "REPLAN"),
    ],
)
async def test_empty_results_and_hidden_errors_are_judged_by_rule(
    tmp_path: Path, model_server: ScriptedServer, value: Any, judged: str
) -> None:
    rules = (plans({"tool": "tool"}, {"tool": "completion"}), says("x", to="completion"), judges(judged, "as it is"))
    async with door_bench(tmp_path, model_server, *rules, tools=[returning("tool", value)], room=ALWAYS) as door:
        answer = await door.ask("search with the tool then report")
    assert [outcome for step, outcome in list_outcomes(answer) if step == "s1"][:2] == ["RETRY", "REPLAN"]
    assert answer["metadata"]["status"] == "partial"


@pytest.mark.row("S001-24", "S001-21")
async def test_a_result_about_another_subject_leads_to_a_new_plan(tmp_path: Path, model_server: ScriptedServer) -> None:
    weather = "Sunny with light winds over the coast and mild temperatures until evening, says the forecaster."
    rules = (
        plans({"tool": "lookup", "intent": "stock price of ACME shares"}, {"tool": "completion"}, times=1),
        plans({"tool": "completion"}),
        judges("REPLAN", "the output is about weather, not stocks"),
        says("I could not find the price.", to="completion"),
    )
    async with door_bench(tmp_path, model_server, *rules, tools=[returning("lookup", weather)], room=ALWAYS) as door:
        answer = await door.ask("search the stock price of ACME")
        judged = str(door.bodies("supervisor")[0]["messages"])
    assert "stock price of ACME shares" in judged, "the judge is told the intent"
    assert weather in judged, "and what the step returned"
    assert list_outcomes(answer)[0] == ("s1", "REPLAN")
    (verdict,) = [one for one in answer["steps"] if one["type"] == "supervision" and one["step_id"] == "s1"]
    assert "the output is about weather" in str(verdict["detail"])


@pytest.mark.row("S001-26")
async def test_a_verdict_of_no_known_outcome_is_asked_for_again(tmp_path: Path, model_server: ScriptedServer) -> None:
    notes = "Sunny with light winds over the coast and mild temperatures until evening, says the forecaster."
    rules = (
        plans({"tool": "lookup", "intent": "stock price of ACME shares"}, {"tool": "completion"}, times=1),
        plans({"tool": "completion"}),
        judges("FINE", "it looks good", times=1),
        judges("REPLAN", "no stocks in it"),
        says("I could not find the price.", to="completion"),
    )
    async with door_bench(tmp_path, model_server, *rules, tools=[returning("lookup", notes)], room=ALWAYS) as door:
        answer = await door.ask("search the stock price of ACME")
        run = (await door.client.get(f"/v1/runs/{answer['metadata']['run_id']}")).json()
        first, second = door.bodies("supervisor")[:2]
    assert second["messages"] == first["messages"], "the same is asked once more"
    verdicts = [one["verdict"] for one in run["verdicts"] if one["step_id"] == "s1"]
    assert [(one["outcome"], one["reason"], one["by"]) for one in verdicts] == [("REPLAN", "no stocks in it", "model")]


@pytest.mark.row("S001-25")
async def test_a_figure_that_no_result_contains_is_written_again(tmp_path: Path, model_server: ScriptedServer) -> None:
    rules = (
        plans({"tool": "calculator", "inputs": {"expression": "6*7"}}, {"tool": "completion"}),
        says("The revenue was 98765 kronor.", to="completion", times=1),
        says("The revenue was 42 kronor.", to="completion"),
    )
    async with door_bench(tmp_path, model_server, *rules) as door:
        answer = await door.ask("search the revenue")
    assert [outcome for step, outcome in list_outcomes(answer) if step == "s2"] == ["RETRY", "SUCCESS"]
    assert answer["response"] == "The revenue was 42 kronor."


@pytest.mark.row("S001-20")
async def test_values_pass_between_plain_tool_steps(tmp_path: Path, model_server: ScriptedServer) -> None:
    source, sink = returning("source", {"items": ["alpha", "beta"]}), returning("sink", "ok then")
    steps = (
        {"tool": "source"},
        {"tool": "sink", "inputs": {"x": "$s1.output.items[1]"}},
        {"tool": "completion", "depends_on": ["s2"]},
    )
    rules = (plans(*steps), says("fine", to="completion"))
    async with door_bench(tmp_path, model_server, *rules, tools=[source, sink]) as door:
        answer = await door.ask("search the source then the sink")
    assert sink.calls == [{"x": "beta"}]
    (first, *_) = answer["metadata"]["plan"]["steps"]
    assert (first["executor"], first["action"], first["tool"]) == ("agent", "tool", "source")
    assert [one["title"] for one in answer["steps"] if one["type"] == "tool"] == ["source", "sink"]


@pytest.mark.row("S001-32", "S001-36")
async def test_a_skill_is_offered_its_own_tools_and_refused_any_other(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    secret = returning("secret_tool", "secret")
    roots = write_skill(tmp_path / "skills", "narrow", "calculator")
    rules = (
        says("", to="skill", calls=(Call("secret_tool", {"x": "1"}),), times=1),
        says("I was not allowed to.", to="skill"),
    )
    async with door_bench(tmp_path, model_server, *rules, tools=[secret], skills_dirs=(roots,)) as door:
        answer = await door.ask("/narrow use the secret tool")
        first, second = door.bodies("skill")
    assert [tool["function"]["name"] for tool in first["tools"]] == ["calculator"]
    assert secret.calls == []
    assert [one["title"] for one in answer["steps"] if one["status"] == "refused"] == ["secret_tool"]
    assert "Refused" in second["messages"][-1]["content"]


@pytest.mark.row("S001-16", "S001-19")
async def test_a_skill_that_the_planner_chose_is_a_step_in_the_skills_native_form(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    roots = write_skill(tmp_path / "skills", "water-plants", "calculator")
    steps = ({"tool": "water-plants", "inputs": {"task": "water them"}}, {"tool": "completion", "depends_on": ["s1"]})
    rules = (plans(*steps), says("Three litres.", to="skill"), says("They need three litres.", to="completion"))
    async with door_bench(tmp_path, model_server, *rules, skills_dirs=(roots,)) as door:
        answer = await door.ask("search how much water the plants need")
    (step, _) = answer["metadata"]["plan"]["steps"]
    assert (step["executor"], step["action"], step["tool"]) == ("skill", "skill", "water-plants")
    skill = [line["type"] for line in answer["steps"] if line["step_id"] == "s1"]
    assert "step" in skill
    assert answer["response"] == "They need three litres."


@pytest.mark.row("S001-17")
async def test_the_planner_is_told_of_every_skill_and_tool(tmp_path: Path, model_server: ScriptedServer) -> None:
    roots = write_skill(tmp_path / "skills", "water-plants", "calculator")
    rules = (plans(SUM, {"tool": "completion"}), says("It is 42.", to="completion"))
    async with door_bench(
        tmp_path, model_server, *rules, tools=[returning("look_up", "x")], skills_dirs=(roots,)
    ) as door:
        await door.ask("search and compute the thing that nobody knows")
        told = str(door.bodies("planner")[0]["messages"])
        tools = (await door.client.get("/v1/tools")).json()["data"]
    assert "the thing that nobody knows" in told
    assert "water-plants: Does water-plants." in told
    assert "look_up(x" in told
    assert "The test tool look_up." in told
    assert {"look_up", "calculator"} <= {one["name"] for one in tools}


def translation(request: Rule | None = None, answer: Rule | None = None) -> tuple[Rule, ...]:
    """A model that plans in English, and translates for a Swede."""
    return (
        request
        or says("Compare the two offers and say which is cheapest, see ⟦1⟧", to="translator", about="<request>"),
        answer or says("Anbud A är billigare ⟦1⟧.", to="translator", about="<answer>"),
        plans({"tool": "offers"}, {"tool": "completion", "depends_on": ["s1"]}),
        says("Offer A is cheaper [1].", to="completion"),
    )


@pytest.mark.row("S001-39", "S001-40")
async def test_a_swede_is_planned_for_in_english_and_answered_in_swedish(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    offers = returning("offers", "A costs 10, B costs 20")
    async with door_bench(tmp_path, model_server, *translation(), tools=[offers]) as door:
        answer = await door.ask(SWEDISH)
        planner = str(door.bodies("planner")[0]["messages"])
    assert "which is cheapest, see `anbud.md`" in planner
    assert "billigast" not in planner
    assert answer["response"] == "Anbud A är billigare [1]."
    language = answer["metadata"]["runtime"]["language"]
    assert (language["detected"], language["planned_in"], language["answered_in"]) == ("sv", "en", "sv")
    assert language["original"] == SWEDISH


@pytest.mark.row("S001-41")
async def test_translation_can_be_off_and_may_fail(tmp_path: Path, model_server: ScriptedServer) -> None:
    offers = returning("offers", "A costs 10, B costs 20")
    async with door_bench(tmp_path / "off", model_server, *translation(), tools=[offers], translate="off") as door:
        answer = await door.ask(SWEDISH)
        assert "translator" not in door.model.purposes()
        assert "billigast" in str(door.bodies("planner")[0]["messages"])
    assert answer["response"] == "Offer A is cheaper [1]."
    broken = says("", to="translator", about="<answer>", fault="status_401")
    async with door_bench(tmp_path / "broken", model_server, *translation(answer=broken), tools=[offers]) as door:
        answer = await door.ask(SWEDISH)
    assert answer["response"] == "Offer A is cheaper [1]."
    failed = [one["title"] for one in answer["steps"] if one["type"] == "translation" and one["status"] == "failed"]
    assert failed == ["the answer was not translated into Swedish"]


@pytest.mark.row("S001-09")
async def test_with_the_embedder_down_local_vectors_take_over_and_that_is_said(serve: Serve) -> None:
    async with (
        serve(embedder_url="http://127.0.0.1:9/v1") as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        await client.post("/v1/agent", json={"prompt": "Remember that my dog is called Fido"})
        asked = await client.post("/v1/agent", json={"prompt": "what do you know about my dog?"})
    answer = asked.json()
    assert asked.status_code == 200
    assert "Fido" in answer["response"]
    embedder = answer["metadata"]["runtime"]["embedder"]
    assert (embedder["requested"], embedder["effective"], embedder["fallback_used"]) == ("endpoint", "local", True)
    assert embedder["fallback_reason"]


@pytest.mark.row("S001-11")
async def test_conversations_outlive_the_gateway_and_concurrent_writers(serve: Serve) -> None:
    async def say(client: httpx.AsyncClient, number: int) -> None:
        body = {"prompt": f"What is {number}+1?", "conversation_id": "c"}
        answer = await client.post("/v1/agent", json=body)
        assert answer.status_code == 200, answer.text

    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await asyncio.gather(*(say(client, number) for number in range(8)))
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await say(client, 8)
        history = (await client.get("/v1/conversations/c/state")).json()["history"]
    assert [one["role"] for one in history] == ["user", "assistant"] * 9, "no exchange is torn apart or lost"
    expected = {(f"What is {number}+1?", f"{number}+1 = {number + 1}") for number in range(9)}
    pairs = zip(history[::2], history[1::2], strict=True)
    assert {(asked["content"], answered["content"]) for asked, answered in pairs} == expected


@pytest.mark.row("Scard-09")
async def test_an_effect_is_not_repeated_because_the_judge_thinks_little_of_it(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    order = returning("order", "order 12 was sent", annotations=EFFECT)
    rules = (
        plans({"tool": "order"}, {"tool": "completion", "depends_on": ["s1"]}),
        judges("RETRY", "do it again"),
        says("It is sent.", to="completion"),
    )
    async with door_bench(tmp_path, model_server, *rules, tools=[order], room=ALWAYS) as door:
        answer = await door.ask("order part 7, please")
    assert len(order.calls) == 1, answer["steps"]


@pytest.mark.row("S002-25")
async def test_a_step_that_names_two_tools_is_refused_and_planned_anew(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    rules = (
        plans({"tool": "calculator, current_time"}, {"tool": "completion"}, times=1),
        plans(SUM, {"tool": "completion"}),
        says("It is 42.", to="completion"),
    )
    async with door_bench(tmp_path, model_server, *rules) as door:
        answer = await door.ask("search and compute")
        _, again = door.bodies("planner")
        events = await door.list_events(answer)
    assert "calculator, current_time" in str(again["messages"]), "the planner is told what is wrong"
    assert [step["tool"] for step in answer["metadata"]["plan"]["steps"]] == ["calculator", "completion"]
    assert [event["data"]["tool"] for event in events if event["type"] == "tool.called"] == ["calculator"]


@pytest.mark.row("S001-47")
async def test_the_tools_that_the_caller_names_are_all_there_are(tmp_path: Path, model_server: ScriptedServer) -> None:
    rules = (
        plans(SUM, {"tool": "completion"}, times=1),
        plans({"tool": "current_time"}, {"tool": "completion"}),
        says("It is late.", to="completion"),
    )
    async with door_bench(tmp_path, model_server, *rules) as door:
        answer = await door.ask("search and compute", metadata={"tools": ["current_time"]})
        first, second = (str(body["messages"]) for body in door.bodies("planner"))
    assert "- current_time(" in first
    assert "- calculator(" not in first
    assert "calculator" in second, "a plan with another tool is refused by name"
    assert [result["tool"] for result in answer["metadata"]["tool_results"]] == ["current_time"]
