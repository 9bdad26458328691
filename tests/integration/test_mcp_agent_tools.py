"""The arguments of the agent's own tools: a plan that waits, words for a decision, names that are not there."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.integration.conftest import Serve
from tests.support.approvals import ids_of
from tests.support.script import answers, says, script
from tests.support.scripted_server import ScriptedServer

SUM = {"task": "What is 6*7?"}


async def called(client: Client, name: str, **arguments: Any) -> Any:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    return str(getattr(result.content[0], "text", ""))


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_a_plan_waits_for_its_approval_where_the_call_says_so(serve: Serve, era: str) -> None:
    async with serve() as url, Client(f"{url}/mcp", mode=era) as client:
        report = await called(client, "agent_run", **SUM, approve_plan=True)
        assert (report["status"], report["plan"]["steps"][0]["tool"]) == ("awaiting_approval", "calculator")
        done = await called(client, "run_respond", run_id=report["run_id"], approvals=ids_of(report), approve=True)
        assert (done["status"], done["response"]) == ("complete", "6*7 = 42")
        other = await called(client, "agent_run", **SUM, approve_plan=True)
        reply = {"run_id": other["run_id"], "approve": False, "feedback": "not now"}
        assert "approvals: name the ids" in await refused(client, "run_respond", **reply)
        gone = await called(client, "run_respond", approvals=ids_of(other), **reply)
        assert (gone["status"], "not now" in str(gone)) == ("cancelled", True)
        assert (await called(client, "agent_run", **SUM))["status"] == "complete"


async def test_words_that_decide_nothing_are_refused(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp") as client:
        run_id = (await called(client, "agent_run", **SUM, approve_plan=True))["run_id"]
        assert "decision" in await refused(client, "run_respond", run_id=run_id)
        assert "approve must be true or false" in await refused(client, "run_respond", run_id=run_id, approve="maybe")
        assert "takes no text" in await refused(client, "run_respond", run_id=run_id, approve=True, feedback="but")


async def test_names_of_no_skill_and_no_tool_are_refused(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp") as client:
        assert "there is no skill 'nope'; known: " in await refused(client, "agent_run", **SUM, skills=["nope"])
    async with serve() as url, httpx.AsyncClient(base_url=url) as http:
        for metadata, told in (
            ({"tools": ["calculater"]}, "there is no tool 'calculater'; did you mean calculator"),
            ({"tools": ["calculator", "nope"]}, "there is no tool 'nope'"),
            ({"skills": ["nope"]}, "there is no skill 'nope'"),
            ({"skills": "nope"}, "metadata.skills must be a list"),
            ({"approve_plan": "yes"}, "metadata.approve_plan must be true or false"),
        ):
            answer = await http.post("/v1/agent", json={"prompt": "2+2", "metadata": metadata})
            assert (answer.status_code, told in answer.text) == (400, True), answer.text
        good = await http.post("/v1/agent", json={"prompt": "2+2", "metadata": {"tools": ["calculator"]}})
        assert good.status_code == 200


async def test_one_step_is_told_as_one(serve: Serve) -> None:
    told: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with serve() as url, Client(f"{url}/mcp") as client, asyncio.timeout(30):
        await client.call_tool("agent_run", SUM, progress_callback=progress)
    assert told[0] == "plan: 1 step"


async def test_a_task_may_be_called_prompt_and_its_plan_is_in_the_result(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp") as client:
        report = await called(client, "agent_run", prompt="what is 6*7")
        both = await refused(client, "agent_run", prompt="one", task="another")
        neither = await refused(client, "agent_run")
        empty = await refused(client, "agent_run", prompt="")
    assert report["status"] == "complete"
    assert [step["tool"] for step in report["plan"]["steps"]][:1] == ["calculator"]
    assert "either task or prompt" in both
    assert "task" in neither
    assert empty.startswith("agent_run: prompt: "), "an error names the argument as it was given"


async def test_a_question_to_the_user_is_answered_by_run_respond(serve: Serve, model_server: ScriptedServer) -> None:
    question = json.dumps({"kind": "ask", "question": "Which month?"})
    model = script(says(question, to="planner", times=1), answers("March had 17 orders."))
    async with serve(model) as url, Client(f"{url}/mcp") as client:
        asked = await called(client, "agent_run", task="How many orders?")
        done = await called(client, "run_respond", run_id=asked["run_id"], answer="March")
        prompt = model_server.requests()[-1]["body"]["messages"][1]["content"]
        again = await refused(client, "run_respond", run_id=done["run_id"], answer="April")
    assert (asked["status"], asked["response"]) == ("awaiting_input", "Which month?")
    assert (done["status"], done["response"]) == ("complete", "March had 17 orders.")
    assert done["run_id"] != asked["run_id"]
    assert "user: How many orders?\nassistant: Which month?" in prompt
    assert "<user_request>\nMarch\n</user_request>" in prompt
    assert again, "a run that asks nothing takes no answer"
