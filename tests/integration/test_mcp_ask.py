"""The planner's question over MCP: asked by elicitation in both eras and as a task, else reported for `run_respond`."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from mcp_tools.server.tasks import TASKS_EXTENSION
from tests.integration.conftest import Serve
from tests.support.conformance_wire import META, modern
from tests.support.script import Script, answers, plans, says, script
from tests.support.scripted_server import ScriptedServer

QUESTION = "Which month do you mean?"
TASK = {"task": "How many orders were there?"}
CALL = {"name": "agent_run", "arguments": TASK}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
WITH_TASKS = {**META, CAPABILITIES: {"extensions": {TASKS_EXTENSION: {}}, "elicitation": {}}}


def asking(*then: Any, question: str = QUESTION, delay_s: float = 0.0) -> Script:
    """A model that asks first; then the rest of the script."""
    ask = says(json.dumps({"kind": "ask", "question": question}), to="planner", times=1, delay_s=delay_s)
    return script(ask, *(then or (answers("There were 17 orders in March."),)))


class Person:
    """A person at a client, with their answers in order."""

    def __init__(self, *results: ElicitResult) -> None:
        self.asked: list[ElicitRequestFormParams] = []
        self._results = list(results)

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        return self._results.pop(0)


def tells(answer: str) -> ElicitResult:
    return ElicitResult(action="accept", content={"answer": answer})


async def report_of(client: Client, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool("agent_run", arguments or TASK)
    assert not result.is_error, result.content
    report: dict[str, Any] = result.structured_content or {}
    return report


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_a_client_that_can_is_asked_and_gets_the_answer_of_the_same_call(
    serve: Serve, model_server: ScriptedServer, era: str
) -> None:
    person = Person(tells("March"))
    async with serve(asking()) as url, Client(f"{url}/mcp", mode=era, elicitation_callback=person) as client:
        report = await report_of(client)
        prompt = model_server.requests()[-1]["body"]["messages"][1]["content"]
    assert (report["status"], report["response"]) == ("complete", "There were 17 orders in March.")
    assert [params.message for params in person.asked] == [QUESTION]
    assert list(person.asked[0].requested_schema["properties"]) == ["answer"]
    assert f"user: {TASK['task']}\nassistant: {QUESTION}" in prompt
    assert "<user_request>\nMarch\n</user_request>" in prompt


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_questions_follow_one_another_and_then_an_approval(serve: Serve, tmp_path: Path, era: str) -> None:
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "strict.yaml").write_text("approval: always\nsupervision: checks\n")
    year = says(json.dumps({"kind": "ask", "question": "Of which year?"}), to="planner", times=1)
    model = asking(
        year,
        plans({"tool": "calculator", "inputs": {"expression": "8+9"}}, {"tool": "completion"}),
        says("17 orders.", to="completion"),
    )
    person = Person(tells("March"), tells("2025"), ElicitResult(action="accept", content={"decision": "approve"}))
    async with (
        serve(model, rooms_dir=tmp_path / "rooms") as url,
        Client(f"{url}/mcp", mode=era, elicitation_callback=person) as client,
    ):
        report = await report_of(client, **TASK, room="strict")
    assert (report["status"], report["response"]) == ("complete", "17 orders.")
    assert [params.message for params in person.asked[:2]] == [QUESTION, "Of which year?"]
    assert "8+9" in person.asked[2].message


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
@pytest.mark.parametrize(
    "result",
    [ElicitResult(action="decline"), ElicitResult(action="cancel"), tells("  "), ElicitResult(action="accept")],
    ids=["declined", "closed", "blank", "empty"],
)
async def test_without_an_answer_the_question_is_the_result(serve: Serve, era: str, result: ElicitResult) -> None:
    person = Person(result)
    async with serve(asking()) as url, Client(f"{url}/mcp", mode=era, elicitation_callback=person) as client:
        report = await report_of(client)
        later = await client.call_tool("run_respond", {"run_id": report["run_id"], "answer": "March"})
    assert (report["status"], report["response"]) == ("awaiting_input", QUESTION)
    assert later.structured_content is not None
    assert later.structured_content["response"] == "There were 17 orders in March."


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_a_client_without_forms_is_told_how_to_answer(serve: Serve, era: str) -> None:
    async with serve(asking()) as url, Client(f"{url}/mcp", mode=era) as client:
        asked = await client.call_tool("agent_run", TASK)
        assert asked.structured_content is not None
        run_id = asked.structured_content["run_id"]
        done = await client.call_tool("run_respond", {"run_id": run_id, "answer": "March"})
    assert asked.structured_content["status"] == "awaiting_input"
    assert f"Call run_respond with run_id {run_id}" in str(asked.content)
    assert done.structured_content is not None
    assert done.structured_content["response"] == "There were 17 orders in March."


async def test_a_question_too_long_for_a_form_is_the_result(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_tools.server.client_call.MAX_FORM_CHARS", 10)
    person = Person()
    async with (
        serve(asking()) as url,
        Client(f"{url}/mcp", mode="2026-07-28", elicitation_callback=person) as client,
    ):
        report = await report_of(client)
    assert (report["status"], report["response"], person.asked) == ("awaiting_input", QUESTION, [])


async def test_a_round_that_is_repeated_starts_one_run_also_after_a_restart(serve: Serve) -> None:
    async with serve(asking()) as url:
        asked = (await modern(url, "tools/call", CALL))["result"]
    (key,) = asked["inputRequests"]
    said = {key: {"action": "accept", "content": {"answer": "March"}}}
    answered = {**CALL, "inputResponses": said, "requestState": asked["requestState"]}
    async with serve(script(answers("There were 17 orders in March."))) as url:
        done = (await modern(url, "tools/call", answered))["result"]
        twice = (await modern(url, "tools/call", answered))["result"]
        runs = (await modern(url, "resources/list", {}))["result"]["resources"]
    assert asked["resultType"] == "input_required"
    assert done["structuredContent"]["response"] == "There were 17 orders in March."
    assert twice["structuredContent"]["run_id"] == done["structuredContent"]["run_id"]
    reports = {one["uri"].split("/")[2] for one in runs if one["uri"].startswith("run://")}
    assert len(reports) == 2, "the run that asked, and one that went on"


async def test_a_task_requires_input_and_goes_on_with_the_answer(serve: Serve) -> None:
    async with serve(asking(delay_s=1.5)) as url:
        created = (await modern(url, "tools/call", {**CALL, "_meta": WITH_TASKS}))["result"]
        task = {"taskId": created["taskId"], "_meta": WITH_TASKS}
        get = {"name": "run_get", "arguments": {"run_id": created["taskId"], "wait_s": 20}}
        await modern(url, "tools/call", get)
        asked = (await modern(url, "tasks/get", task))["result"]
        (key,) = asked["inputRequests"]
        broken = await modern(url, "tasks/update", {**task, "inputResponses": {key: "March"}})
        closed = await modern(url, "tasks/update", {**task, "inputResponses": {key: {"action": "cancel"}}})
        still = (await modern(url, "tasks/get", task))["result"]
        said = {key: {"action": "accept", "content": {"answer": "March"}}}
        await modern(url, "tasks/update", {**task, "inputResponses": said})
        await modern(url, "tasks/update", {**task, "inputResponses": said})
        done = (await modern(url, "tasks/get", task))["result"]
        while done["status"] == "working":
            done = (await modern(url, "tasks/get", task))["result"]
    assert (created["status"], asked["status"], still["status"]) == ("working", "input_required", "input_required")
    assert asked["inputRequests"][key]["params"]["message"] == QUESTION
    assert broken["error"]["code"] == -32602
    assert "result" in closed
    assert (done["status"], done["taskId"]) == ("completed", created["taskId"])
    assert done["result"]["structuredContent"]["response"] == "There were 17 orders in March."
