"""Rooms that plan, before providers that refuse what the real ones refuse."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_providers import SIGNED, before, call, result
from tests.support.providers import rules
from tests.support.providers.rules import Body, Refusal

ASK: Any = {"role": "user", "content": "compute the sum and compare it with the newest price, please"}

HELLO: Any = {"role": "user", "content": "hello"}


def plan_of(*steps: dict[str, Any]) -> str:
    wire = [{"id": f"s{n}", "depends_on": [], "intent": "work out", **step} for n, step in enumerate(steps, start=1)]
    return json.dumps({"reasoning": "r", "goal": "g", "language": "en", "answer_tier": "fast", "steps": wire})


def is_planner(body: Body) -> bool:
    return "You decide how a user's request is served" in str(body["messages"][0]["content"])


def refused_planner(body: Body) -> Refusal | None:
    """A provider that takes every request but the planner's."""
    return rules.openai("Invalid prompt: it was flagged.", "messages", "invalid_prompt") if is_planner(body) else None


@pytest.mark.parametrize("of", [rules.gemini, rules.deepseek, rules.gpt_5, rules.mistral])
async def test_the_loop_of_a_skill_gives_back_what_the_provider_sent(serve: Serve, of: rules.Rules) -> None:
    sent = {"name": "calculator", "arguments": {"expression": "2*21"}}
    asked = {"id": "", "type": "function", "function": sent, "extra_content": SIGNED}
    message: dict[str, Any] = {"reasoning_content": "I compute it.", "tool_calls": [asked]}
    if of is rules.mistral:
        message = {"tool_calls": [{"id": "", "function": sent}]}
    async with before(serve, of) as (client, server):
        server.load(plan_of({"tool": "calculate", "inputs": [{"name": "task", "value": "2*21"}]}), message, "It is 42.")
        done = await client.chat.completions.create(model="stepgate", messages=[ASK])
    loop = next(body for body in server.accepted if body["messages"][-1]["role"] == "tool")
    (again,) = loop["messages"][-2]["tool_calls"]
    assert done.choices[0].message.content == "It is 42."
    assert json.loads(again["function"]["arguments"]) == {"expression": "2*21"}
    assert again["id"] == loop["messages"][-1]["tool_call_id"] != ""
    if of is not rules.mistral:
        assert (again["extra_content"], loop["messages"][-2]["reasoning_content"]) == (SIGNED, "I compute it.")


async def test_results_of_a_clients_tools_reach_the_planner_as_data(serve: Serve) -> None:
    history: Any = [ASK, {"role": "assistant", "content": None, "tool_calls": [call()]}, result(content="12 degrees")]
    async with before(serve, rules.gpt_4) as (client, server):
        server.load(plan_of({"tool": "calculator", "inputs": [{"name": "expression", "value": "2*21"}]}))
        await client.chat.completions.create(model="stepgate", messages=history)
    planner = next(body for body in server.accepted if is_planner(body))
    told = planner["messages"][-1]["content"]
    block = told[told.index("<history>") : told.index("</history>")]
    assert 'result of weather({"city": "Lund"}): 12 degrees' in block
    assert "<user_request>" in told


async def test_a_history_is_not_cut_between_a_call_and_its_result(serve: Serve) -> None:
    history: Any = []
    for number in range(12):
        call_id = f"abcdefgh{number % 10}"
        history += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call(call_id), call("second999")]},
            result(call_id),
            result("second999"),
            {"role": "assistant", "content": "12"},
        ]
    for cut in range(5):
        async with before(serve, rules.gpt_4) as (client, server):
            server.load("Hello!")
            messages = [*history[cut:], {"role": "user", "content": "hello"}]
            done = await client.chat.completions.create(model="stepgate", messages=messages)
        assert done.choices[0].message.content == "Hello!"
        assert len(server.bodies) == 1, "nothing was refused"


async def test_a_refused_planner_is_told_and_not_asked_again(serve: Serve) -> None:
    async with before(serve, refused_planner) as (client, server):
        done = await client.chat.completions.create(model="stepgate", messages=[ASK])
    planner = (done.model_extra or {})["stepgate"]["runtime"]["planner"]
    assert len([body for body in server.bodies if is_planner(body)]) == 1
    assert "it was flagged" in planner["fallback_reason"]
    assert done.choices[0].message.content


def refuse_all(_: Body) -> Refusal | None:
    """A provider that refuses every prompt."""
    return rules.openai("Invalid prompt: it was flagged.", "messages", "invalid_prompt")


async def test_a_question_without_a_plan_ends_with_the_providers_400(serve: Serve) -> None:
    async with before(serve, refuse_all) as (client, server):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model="stepgate", messages=[HELLO])
    assert (caught.value.code, len(server.bodies)) == ("invalid_prompt", 1)
    assert caught.value.response.headers["x-should-retry"] == "false"


def refused_judge(body: Body) -> Refusal | None:
    """A provider that refuses what the judge asks."""
    asked = "<intent>" in str(body["messages"][-1]["content"])
    return rules.openai("Invalid prompt: it was flagged.", "messages", "invalid_prompt") if asked else None


async def test_a_refused_judge_is_asked_once(serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "strict.yaml").write_text("id: strict\nname: Strict\nsupervision: always\n")
    async with before(serve, refused_judge, rooms_dir=rooms) as (client, server):
        server.load(plan_of({"tool": "calculator", "inputs": [{"name": "expression", "value": "2*21"}]}))
        done = await client.chat.completions.create(model="strict", messages=[ASK])
    assert "it was flagged" in str((done.model_extra or {})["stepgate"]["uncertainties"]), "no verdict, and it is told"
    assert done.choices[0].message.content
    assert len([body for body in server.bodies if refused_judge(body)]) == 1
    assert len([body for body in server.bodies if is_planner(body)]) == 1
