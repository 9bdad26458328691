"""The studio at every door: chat, the JSON door, its own endpoint, MCP, AG-UI and the command line."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.integration.conftest import Serve
from tests.integration.test_ag_ui import read, text_of, turn, verify
from tests.integration.test_cli import stepgate
from tests.integration.test_studio_routing import approve
from tests.support.approvals import ids_of
from tests.support.keys import bearer, created_key
from tests.support.script import answers, script
from tests.support.scripted_server import ScriptedServer
from tests.support.studio import acts, concludes, intent, routes

MAKE = intent("room_management", "room_create", name="Support Team")
LIST = intent("room_management", "rooms_list")


@pytest.mark.row("S002-05")
async def test_a_chat_makes_a_room(serve: Serve, tmp_path: Path) -> None:
    async with serve(script(routes(MAKE))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        talk = [{"role": "user", "content": "make a room called Support Team"}]
        body = {"model": "studio", "messages": talk}
        asked = (await client.post("/v1/chat/completions", json=body)).json()["choices"][0]["message"]["content"]
        assert "Approval needed" in asked
        talk += [{"role": "assistant", "content": asked}, {"role": "user", "content": "approve"}]
        made = (await client.post("/v1/chat/completions", json={**body, "messages": talk})).json()
        assert "support-team" in made["choices"][0]["message"]["content"]
        assert (tmp_path / "data" / "rooms" / "support-team.yaml").exists()
        assert "support-team" in [card["id"] for card in (await client.get("/v1/models")).json()["data"]]


@pytest.mark.row("S002-01", "S002-24", "S002-37")
async def test_a_request_to_the_studio_is_a_projection_of_a_run(serve: Serve) -> None:
    async with serve(script(routes(MAKE))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        body = {"message": "make a room called Support Team", "conversation_id": "c1"}
        asked = (await client.post("/v1/studio/requests", json=body)).json()
        assert (asked["status"], asked["conversation_id"]) == ("awaiting_approval", "c1")
        assert asked["intents"][0]["category"] == "room_management"
        assert asked["task_plan"]["steps"][0]["target"] == "room_agent"
        assert asked["approvals"][0]["items"][0]["args"] == {"name": "Support Team"}
        await approve(url, {"metadata": {"run_id": asked["run_id"], "approvals": asked["approvals"]}})
        done = (await client.get(f"/v1/studio/requests/{asked['run_id']}")).json()
        assert (done["status"], done["approvals"], done["usage"]["model_calls"]) == ("succeeded", [], 1)
        assert "subagent" in [line["type"] for line in done["steps"]]
        assert (await client.get("/v1/studio/requests/run_none")).status_code == 404


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "message"),
        ({"message": ""}, "message"),
        ({"message": "x", "room": "chat"}, "has no router"),
        ({"message": "x", "room": "nope"}, "there is no room named 'nope'"),
        ({"message": "x", "colour": "red"}, "colour"),
        ({"message": ["x"]}, "message"),
        ({"message": "x", "conversation_id": "c" * 1_000}, "conversation_id"),
    ],
)
async def test_a_wrong_request_is_refused_with_what_is_wrong(serve: Serve, body: dict[str, Any], told: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        refused = await client.post("/v1/studio/requests", json=body)
    assert refused.status_code in (400, 404), refused.text
    assert told in refused.text


async def test_the_question_of_the_router_is_a_field_of_its_own(serve: Serve) -> None:
    rules = (routes(intent("room_management", "create"), question="What should it be called?"),)
    async with serve(script(*rules)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = (await client.post("/v1/studio/requests", json={"message": "make a room"})).json()
    assert (asked["status"], asked["question"]) == ("awaiting_input", "What should it be called?")
    assert (asked["task_plan"], asked["reason"]) == (None, "the router asks for what is missing")


@pytest.mark.row("S002-05")
async def test_an_mcp_client_makes_a_room_by_talking(serve: Serve, tmp_path: Path) -> None:
    async with serve(script(routes(MAKE))) as url, Client(f"{url}/mcp") as client:
        task = {"task": "make a room called Support Team", "room": "studio"}
        asked: Any = (await client.call_tool("agent_run", task)).structured_content
        assert asked["status"] == "awaiting_approval", asked
        given = {"run_id": asked["run_id"], "approve": True, "approvals": ids_of(asked)}
        made: Any = (await client.call_tool("run_respond", given)).structured_content
    assert made["status"] == "complete", made
    assert (tmp_path / "data" / "rooms" / "support-team.yaml").exists()


async def test_an_mcp_client_answers_the_question_of_the_studio(serve: Serve) -> None:
    rules = (
        routes(MAKE, about="What should it be called?"),
        routes(intent("room_management", "create"), question="What should it be called?"),
    )
    async with serve(script(*rules)) as url, Client(f"{url}/mcp") as client:
        task = {"task": "make a room", "room": "studio"}
        asked: Any = (await client.call_tool("agent_run", task)).structured_content
        assert asked["status"] == "awaiting_input", asked
        reply = {"run_id": asked["run_id"], "answer": "Support Team"}
        going: Any = (await client.call_tool("run_respond", reply)).structured_content
    assert going["status"] == "awaiting_approval", going


@pytest.mark.row("S002-44", "S002-45", "S002-46", "S002-47", "S002-48", "S002-49")
async def test_ag_ui_shows_routing_sub_agents_and_their_calls(serve: Serve) -> None:
    rules = (
        routes(intent("query", "compare", request="compare"), {**LIST, "request": "list"}),
        acts("room_show", {"room_id": "chat"}, times=1),
        concludes("chat does not plan."),
    )
    async with serve(script(*rules)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        events = await read(
            client, turn("compare chat with stepgate, and list the rooms", forwardedProps={"room": "studio"})
        )
        run = (await client.get(f"/v1/runs/{events[-1]['result']['run_id']}")).json()
    verify(events)
    kinds = [event["type"] for event in events]
    thoughts = [event["delta"] for event in events if event["type"] == "REASONING_MESSAGE_CONTENT"]
    assert any("intent: query compare (0.95), room_management rooms_list (0.95)" in text for text in thoughts)
    assert kinds.index("REASONING_START") < kinds.index("TOOL_CALL_START")
    started = {event["subagentRunId"]: event["name"] for event in events if event["type"] == "SUBAGENT_STARTED"}
    assert sorted(started.values()) == ["query_agent", "room_agent"]
    calls = [event for event in events if event["type"] == "TOOL_CALL_START" and event.get("subagentRunId")]
    assert {(call["toolCallName"], started[call["subagentRunId"]]) for call in calls} == {
        ("room_show", "query_agent"),
        ("rooms_list", "room_agent"),
    }
    ids = [event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_START"]
    assert len(set(ids)) == len(ids)
    results = {event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_RESULT"}
    assert set(ids) == results
    assert kinds[-2:] == ["STATE_SNAPSHOT", "RUN_FINISHED"]
    assert "chat does not plan." in text_of(events)
    assert text_of(events) == run["response"]["response"]
    assert events[-2]["snapshot"]["status"] == run["response"]["metadata"]["status"] == "complete"
    assert events[-2]["snapshot"]["plan"]["steps"]


@pytest.mark.row("S002-44", "S002-49")
async def test_ag_ui_interrupts_for_a_call_inside_a_sub_agent(serve: Serve, tmp_path: Path) -> None:
    async with serve(script(routes(MAKE))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await read(client, turn("make a room called Support Team", forwardedProps={"room": "studio"}))
        verify(asked)
        (interrupt,) = asked[-1]["outcome"]["interrupts"]
        resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"decision": "approve"}}]
        made = await read(client, turn("", "r2", resume=resume))
    verify(made)
    assert made[-1]["outcome"] == {"type": "success"}
    assert (tmp_path / "data" / "rooms" / "support-team.yaml").exists()


def test_the_command_line_talks_to_the_studio(tmp_path: Path, model_server: ScriptedServer) -> None:
    model_server.load(script(routes(LIST)))
    model = {"llm_base_url": model_server.url, "model_fast": "small"}
    code, output = stepgate(tmp_path, "studio", "which", "rooms", "are", "there?", **model)
    assert (code, "knowledge (shipped)" in output) == (0, True), output
    model_server.load(script(routes(MAKE)))
    code, output = stepgate(tmp_path, "studio", "make a room called Support Team", "--json", **model)
    asked = json.loads(output[output.index("{") : output.rindex("}") + 1])
    assert asked["metadata"]["status"] == "awaiting_approval"
    assert stepgate(tmp_path, "runs", "approve", asked["metadata"]["run_id"], **model)[0] == 0
    assert (tmp_path / "data" / "rooms" / "support-team.yaml").exists()


async def test_a_key_that_may_not_edit_rooms_is_told_before_anybody_is_asked(serve: Serve, tmp_path: Path) -> None:
    rules = (routes(MAKE), concludes("You may not make rooms.", about="only by API keys with the scope 'rooms'"))
    async with serve(script(*rules), require_key="always") as url:
        key = await created_key(tmp_path / "data", "plain", owner="anna", scopes="chat,agent,approve")
        async with httpx.AsyncClient(base_url=url, timeout=30, headers=bearer(key)) as client:
            body = {"message": "make a room called Support Team"}
            answered = (await client.post("/v1/studio/requests", json=body)).json()
    assert answered["status"] == "error", answered
    assert answered["answer"].endswith("You may not make rooms.")
    assert "Nothing was changed" in answered["answer"]


async def test_a_run_of_another_owner_is_not_found(serve: Serve, tmp_path: Path) -> None:
    async with serve(script(routes(LIST), answers("x")), require_key="always") as url:
        anna = await created_key(tmp_path / "data", "anna", owner="anna", scopes="agent,admin")
        bert = await created_key(tmp_path / "data", "bert", owner="bert", scopes="agent,admin")
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            made = await client.post("/v1/studio/requests", json={"message": "rooms?"}, headers=bearer(anna))
            path = f"/v1/studio/requests/{made.json()['run_id']}"
            assert (await client.get(path, headers=bearer(anna))).status_code == 200
            assert (await client.get(path, headers=bearer(bert))).status_code == 404


@pytest.mark.row("S002-31", "S002-37")
async def test_nothing_done_is_no_success(serve: Serve) -> None:
    wrong = intent("room_management", "room_edit", room_id="nowhere", field="description", value="x")
    claims = intent("room_management", "make a room", name="Desk")
    model = script(
        routes(MAKE, about="called Support Team"),
        routes(wrong, about="change the room nowhere"),
        routes(claims, about="make the desk"),
        routes(about="weather", question="Which room do you mean?"),
        concludes("I did it."),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:

        async def ask(message: str) -> dict[str, Any]:
            answer: dict[str, Any] = (await client.post("/v1/studio/requests", json={"message": message})).json()
            return answer

        asked = await ask("make a room called Support Team")
        assert [one["status"] for one in asked["outcomes"]] == ["waiting"]
        await approve(
            url, {"metadata": {"run_id": asked["run_id"], "approvals": asked["approvals"]}}, "reject", reason="later"
        )
        refused = (await client.get(f"/v1/studio/requests/{asked['run_id']}")).json()
        assert (refused["status"], refused["error"]) == ("cancelled", None)
        assert "later" in refused["reason"]
        assert [one["status"] for one in refused["outcomes"]] == ["refused"]
        failed = await ask("change the room nowhere")
        assert failed["status"] == "error", failed
        assert failed["error"]["message"] == failed["outcomes"][0]["reason"]
        assert "nowhere" in failed["error"]["message"]
        assert failed["error"]["recoverable"] is True
        claimed = await ask("make the desk")
        assert (claimed["status"], claimed["error"]["message"]) == ("error", "no tool was called for it.")
        run = (await client.get(f"/v1/runs/{claimed['run_id']}")).json()
        assert run["status"] == "partial", "no door calls it a success"
        question = await ask("what about the weather")
        assert (question["status"], question["question"]) == ("awaiting_input", "Which room do you mean?")


@pytest.mark.row("S002-31")
async def test_a_studio_without_a_model_says_that_nothing_was_done(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = (await client.post("/v1/studio/requests", json={"message": "give the room desk a prompt"})).json()
    assert answer["status"] == "error", answer
    assert answer["error"]["recoverable"] is True


@pytest.mark.row("S002-37")
async def test_an_error_names_the_check_that_refused_it_at_its_top(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        bad = await client.post("/v1/rooms", json={"name": "Desk", "tools": ["no_such_tool"]})
    assert bad.status_code == 400, bad.text
    assert bad.json()["error"]["stage"] == "check_config"
