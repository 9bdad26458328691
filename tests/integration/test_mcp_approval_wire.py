"""Approval over MCP as bytes on the wire: as a task, and in rounds that may be forged, repeated or cut by a restart."""

from pathlib import Path
from typing import Any

import pytest

from mcp_tools.server.tasks import TASKS_EXTENSION
from tests.integration.conftest import Serve
from tests.support.conformance_wire import META, modern
from tests.support.script import Script, plans, says, script

CALL = {"name": "agent_run", "arguments": {"task": "search, compute", "room": "strict"}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
BOTH = {**META, CAPABILITIES: {"extensions": {TASKS_EXTENSION: {}}, "elicitation": {}}}
NO_FORM = {**META, CAPABILITIES: {}}


def summing(delay_s: float = 0.0) -> Script:
    first = plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"})
    later = plans({"tool": "calculator", "inputs": {"expression": "3*14"}}, {"tool": "completion"}, about="other sum")
    slow = says(first.reply.text, to="planner", delay_s=delay_s) if delay_s else first
    return script(later, slow, says("It is 42.", to="completion"))


@pytest.fixture
def strict(tmp_path: Path) -> dict[str, Any]:
    """Settings with a room that asks before every plan."""
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "strict.yaml").write_text("approval: always\nsupervision: checks\n")
    return {"rooms_dir": tmp_path / "rooms"}


def accepting(asked: dict[str, Any], **content: str) -> dict[str, Any]:
    """An answer to every question of a result or task."""
    return {key: {"action": "accept", "content": content} for key in asked["inputRequests"]}


def called(report: dict[str, Any]) -> list[str]:
    return [step["title"] for step in report["steps"] if step["type"] == "tool"]


@pytest.mark.row("Scard-01", "S002-26")
async def test_a_task_requires_input_and_goes_on_with_it(serve: Serve, strict: dict[str, Any]) -> None:
    async with serve(summing(), **strict) as url:
        created = (await modern(url, "tools/call", {**CALL, "_meta": BOTH}))["result"]
        task = {"taskId": created["taskId"], "_meta": BOTH}
        asked = (await modern(url, "tasks/get", task))["result"]
        again = (await modern(url, "tasks/get", task))["result"]
        shrug = {key: {"action": "accept", "content": {"decision": "perhaps"}} for key in asked["inputRequests"]}
        refused = await modern(url, "tasks/update", {**task, "inputResponses": shrug})
        broken = await modern(url, "tasks/update", {**task, "inputResponses": dict.fromkeys(shrug, "yes")})
        other = await modern(url, "tasks/update", {**task, "inputResponses": {"apr_other": shrug.popitem()[1]}})
        left = {key: {"action": "cancel"} for key in asked["inputRequests"]}
        cancelled = await modern(url, "tasks/update", {**task, "inputResponses": left})
        still = (await modern(url, "tasks/get", task))["result"]
        changed = accepting(asked, decision="answer", text="the other sum")
        await modern(url, "tasks/update", {**task, "inputResponses": changed})
        await modern(url, "tools/call", run_get(created["taskId"], 20))
        second = (await modern(url, "tasks/get", task))["result"]
        stale = await modern(url, "tasks/update", {**task, "inputResponses": accepting(asked, decision="approve")})
        after_stale = (await modern(url, "tasks/get", task))["result"]
        approved = accepting(second, decision="approve")
        await modern(url, "tasks/update", {**task, "inputResponses": approved})
        at_once = (await modern(url, "tasks/get", task))["result"]["status"]
        await modern(url, "tools/call", run_get(created["taskId"], 20))
        done = (await modern(url, "tasks/get", task))["result"]
    assert (created["resultType"], created["status"]) == ("task", "input_required")
    assert "inputRequests" not in created, "a created task tells only its state"
    assert asked == again, "the same question has the same key"
    (request,) = asked["inputRequests"].values()
    assert request["method"] == "elicitation/create"
    assert request["params"]["mode"] == "form"
    assert "2*21" in request["params"]["message"]
    assert (refused["error"]["code"], broken["error"]["code"]) == (-32602, -32602)
    assert "result" in other, "an answer nobody waits for is dropped"
    assert "result" in cancelled
    assert still["status"] == "input_required"
    assert asked["inputRequests"].keys() != second["inputRequests"].keys()
    assert "result" in stale
    assert after_stale["status"] == "input_required", "an answer to the old plan does not approve the new one"
    assert at_once != "input_required", "what is answered is not asked again"
    assert (done["status"], done["result"]["structuredContent"]["response"]) == ("completed", "It is 42.")


async def test_a_task_that_is_declined_ends(serve: Serve, strict: dict[str, Any]) -> None:
    async with serve(summing(), **strict) as url:
        created = (await modern(url, "tools/call", {**CALL, "_meta": BOTH}))["result"]
        task = {"taskId": created["taskId"], "_meta": BOTH}
        asked = (await modern(url, "tasks/get", task))["result"]
        no = {key: {"action": "decline"} for key in asked["inputRequests"]}
        await modern(url, "tasks/update", {**task, "inputResponses": no})
        await modern(url, "tools/call", run_get(created["taskId"], 20))
        gone = (await modern(url, "tasks/get", task))["result"]
    assert gone["status"] == "cancelled"


async def test_a_client_with_tasks_but_without_forms_gets_the_question_as_result(
    serve: Serve, strict: dict[str, Any]
) -> None:
    async with serve(summing(), **strict) as url:
        quick = (await modern(url, "tools/call", CALL, tasks=True))["result"]
    async with serve(summing(delay_s=1.5), **strict) as url:
        created = (await modern(url, "tools/call", CALL, tasks=True))["result"]
        await modern(url, "tools/call", run_get(created["taskId"], 20))
        asked = (await modern(url, "tasks/get", {"taskId": created["taskId"]}, tasks=True))["result"]
    assert quick["structuredContent"]["status"] == "awaiting_approval"
    assert created["status"] == "working"
    assert (asked["status"], asked["result"]["structuredContent"]["status"]) == ("completed", "awaiting_approval")


async def test_an_answer_without_the_sealed_state_approves_nothing(serve: Serve, strict: dict[str, Any]) -> None:
    async with serve(summing(), **strict) as url:
        asked = (await modern(url, "tools/call", CALL))["result"]
        yes = accepting(asked, decision="approve")
        unsealed = (await modern(url, "tools/call", {**CALL, "inputResponses": yes}))["result"]
        made_up = {**CALL, "inputResponses": yes, "requestState": "run_1"}
        forged = await modern(url, "tools/call", made_up)
        arguments = {**CALL["arguments"], "task": "something else"}  # type: ignore[dict-item]
        moved = {**CALL, "arguments": arguments, "inputResponses": yes, "requestState": asked["requestState"]}
        elsewhere = await modern(url, "tools/call", moved)
        empty = (await modern(url, "tools/call", {**CALL, "requestState": asked["requestState"]}))["result"]
        unclear = accepting(asked, decision="sure")
        round_two = {**CALL, "inputResponses": unclear, "requestState": asked["requestState"]}
        again = (await modern(url, "tools/call", round_two))["result"]
    assert unsealed["resultType"] == "input_required", "a new call is a new run, which asks for itself"
    assert unsealed["inputRequests"].keys() != asked["inputRequests"].keys()
    assert (forged["error"]["code"], elsewhere["error"]["code"]) == (-32602, -32602)
    assert empty["inputRequests"] == again["inputRequests"] == asked["inputRequests"]


async def test_a_round_goes_on_after_a_restart_and_only_once(serve: Serve, strict: dict[str, Any]) -> None:
    async with serve(summing(), **strict) as url:
        asked = (await modern(url, "tools/call", CALL))["result"]
    answered = {
        **CALL,
        "inputResponses": accepting(asked, decision="approve"),
        "requestState": asked["requestState"],
    }
    async with serve(summing(), **strict) as url:
        done = (await modern(url, "tools/call", answered))["result"]
        twice = (await modern(url, "tools/call", answered))["result"]
        runs = (await modern(url, "resources/list", {}))["result"]["resources"]
    report = done["structuredContent"]
    assert report["status"] == "complete"
    assert called(report) == ["calculator"]
    assert twice["structuredContent"] == report
    assert len([one for one in runs if one["uri"].startswith("run://")]) == 1, "a round begins no run"


async def test_what_was_decided_between_the_rounds_is_not_asked_again(serve: Serve, strict: dict[str, Any]) -> None:
    async with serve(summing(), **strict) as url:
        asked = (await modern(url, "tools/call", CALL))["result"]
        waiting = (await modern(url, "resources/list", {}))["result"]["resources"][0]["uri"]
        run_id = waiting.split("/")[2]
        named = {"run_id": run_id, "approvals": next(iter(asked["inputRequests"])).split(".")}
        word = {"name": "run_respond", "arguments": {**named, "decision": "reject", "text": "no"}}
        await modern(url, "tools/call", word)
        late = {**CALL, "inputResponses": accepting(asked, decision="approve"), "requestState": asked["requestState"]}
        told = (await modern(url, "tools/call", late))["result"]
    assert told["structuredContent"]["status"] == "cancelled"
    assert called(told["structuredContent"]) == []


async def test_a_client_that_takes_no_forms_is_not_asked(serve: Serve, strict: dict[str, Any]) -> None:
    links_only = {**META, CAPABILITIES: {"elicitation": {"url": {}}}}
    async with serve(summing(), **strict) as url:
        answers = [
            (await modern(url, "tools/call", {**CALL, "_meta": meta}))["result"] for meta in (NO_FORM, links_only)
        ]
    assert [one["structuredContent"]["status"] for one in answers] == ["awaiting_approval"] * 2


def run_get(run_id: str, wait_s: float) -> dict[str, Any]:
    return {"name": "run_get", "arguments": {"run_id": run_id, "wait_s": wait_s}}
