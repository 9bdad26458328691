"""Talks with the studio over several messages: what is missing, what is taken back, several requests in one message."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_studio_routing import approve, ask, intents_of, lines_of, new_conversation
from tests.support.processes import GatewayProcess
from tests.support.script import answers, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.studio import acts, concludes, intent, routes

MAKE = intent("room_management", "room_create", name="Support Team")


def names_of(tmp_path: Path) -> list[str]:
    folder = tmp_path / "data" / "rooms"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.row("S002-07", "S002-54")
async def test_a_missing_name_is_asked_for_and_the_reply_goes_on(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer
) -> None:
    # The router's second call sees the question and the reply in the history.
    rules = (
        routes(intent("room_management", "room_create", name="Helpdesk"), about="What should it be called?"),
        routes(intent("room_management", "create"), question="What should it be called?"),
    )
    async with serve(script(*rules)) as url:
        talk = await new_conversation(url)
        asked = await ask(url, "make me a room", conversation_id=talk)
        assert (asked["metadata"]["status"], asked["response"]) == ("awaiting_input", "What should it be called?")
        assert names_of(tmp_path) == []
        waiting = await ask(url, "Helpdesk", conversation_id=talk)
        assert waiting["metadata"]["status"] == "awaiting_approval", waiting
        made = await ask(url, "approve", conversation_id=talk)
    assert made["metadata"]["status"] == "complete"
    assert names_of(tmp_path) == ["helpdesk.yaml"]
    assert model_server.purposes() == ["router", "router"], "one model call a message"


@pytest.mark.row("S002-07")
async def test_a_sub_agent_asks_for_a_name_that_the_router_did_not_miss(serve: Serve, tmp_path: Path) -> None:
    rules = (
        routes(intent("room_management", "room_create")),
        concludes(question="What should the room be called?", about="a room needs a `name`"),
    )
    async with serve(script(*rules)) as url:
        asked = await ask(url, "make me a room", conversation_id="c1")
        assert asked["metadata"]["status"] == "awaiting_input", asked
        assert asked["response"].endswith("What should the room be called?")
    assert names_of(tmp_path) == [], "nobody was asked to allow a call that cannot succeed, and no default was taken"


async def test_what_was_made_can_be_taken_back(serve: Serve, tmp_path: Path) -> None:
    back = intent("room_management", "room_delete", room_id="support-team")
    rules = (routes(back, about="undo that"), routes(MAKE))
    async with serve(script(*rules)) as url:
        talk = await new_conversation(url)
        await approve(url, await ask(url, "make a room called Support Team", conversation_id=talk))
        assert names_of(tmp_path) == ["support-team.yaml"]
        asked = await ask(url, "undo that", conversation_id=talk)
        assert "room_delete" in asked["response"]
        undone = await ask(url, "yes", conversation_id=talk)
    assert undone["response"].startswith("Deleted the room support-team. It was:\n\n```yaml\nname: Support Team")
    assert names_of(tmp_path) == []


async def test_an_edit_is_taken_back_from_what_the_talk_says(serve: Serve, model_server: ScriptedServer) -> None:
    set_it = {"room_id": "desk", "field": "description"}
    rules = (
        routes(intent("room_management", "edit", room_id="desk"), about="undo that"),
        acts("room_edit", {**set_it, "value": "Sums"}, about="undo that", times=1),
        concludes("The description of desk is Sums again.", about="undo that"),
        routes(intent("room_management", "edit", room_id="desk", description="Times")),
        acts("room_show", {"room_id": "desk"}, times=1),
        acts("room_edit", {**set_it, "value": "Times"}, times=1, call_id="a2"),
        concludes("The description of desk is now Times; it was Sums."),
    )
    async with serve(script(*rules)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        created = await client.post("/v1/rooms", json={"name": "Desk", "description": "Sums"})
        assert created.status_code == 201
        edited = await approve(url, await ask(url, "desk is about times now", conversation_id="c1"))
        assert edited["response"] == "The description of desk is now Times; it was Sums."
        assert (await client.get("/v1/rooms/desk")).json()["description"] == "Times"
        undone = await approve(url, await ask(url, "undo that", conversation_id="c1"))
        assert undone["response"] == "The description of desk is Sums again."
        assert (await client.get("/v1/rooms/desk")).json()["description"] == "Sums"
    asked = [one["body"]["messages"][1]["content"] for one in model_server.requests() if one["purpose"] == "subagent"]
    assert "it was Sums." in asked[-1], "the sub-agent sees the talk"


async def test_an_edit_of_one_call_tells_what_was_there_before(serve: Serve) -> None:
    edit = intent("room_management", "room_edit", room_id="desk", field="description", value="Times")
    async with serve(script(routes(edit))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        assert (await client.post("/v1/rooms", json={"name": "Desk", "description": "Sums"})).status_code == 201
        edited = await approve(url, await ask(url, "desk is about times now"))
    assert edited["response"].endswith('Before, description was "Sums".')
    assert edited["metadata"]["usage"]["model_calls"] == 1


@pytest.mark.parametrize(
    ("name", "file"),
    [("サポート室", None), ("Kundtjänst Öst", "kundtjanst-ost.yaml"), ("Отдел поддержки", None)],
)
@pytest.mark.row("S002-42")
async def test_a_name_in_any_script_stays_as_it_was_written(
    serve: Serve, tmp_path: Path, name: str, file: str | None
) -> None:
    made = intent("room_management", "room_create", name=name, room_id="" if file else "desk-1")
    async with serve(script(routes(made)), translate="off") as url:
        asked = await ask(url, f"make me a room called {name}")
        assert name in asked["response"]
        await approve(url, asked)
    (path,) = (tmp_path / "data" / "rooms").iterdir()
    assert path.name == (file or "desk-1.yaml")
    assert f"name: {name}" in path.read_text()


@pytest.mark.row("S002-24", "S002-25", "S002-29", "S002-30")
async def test_two_requests_in_one_message_are_two_tasks(serve: Serve, tmp_path: Path) -> None:
    rules = (
        routes(
            {**MAKE, "request": "make a room called Support Team"},
            intent("query", "room_show", room_id="support-team", request="show it", depends_on=[0]),
            intent("room_management", "rooms_list", request="list the rooms"),
        ),
    )
    async with serve(script(*rules)) as url:
        asked = await ask(url, "make a room called Support Team, show it to me, and list the rooms")
        assert asked["metadata"]["status"] == "awaiting_approval", asked
        assert not lines_of(asked, "tool"), "the plan is approved as a whole, before any of it is begun"
        done = await approve(url, asked)
    assert intents_of(done)["task_plan"] == {
        "goal": "the goal",
        "steps": [
            {
                "action": "room_create",
                "target": "room_agent",
                "parameters": {"name": "Support Team"},
                "depends_on": [],
            },
            {
                "action": "room_show",
                "target": "query_agent",
                "parameters": {"room_id": "support-team"},
                "depends_on": [0],
            },
            {"action": "rooms_list", "target": "room_agent", "parameters": {}, "depends_on": []},
        ],
        "estimated_tools": ["spawn_room_agent", "spawn_query_agent", "room_create", "room_show", "rooms_list"],
    }
    assert done["metadata"]["status"] == "complete"
    assert done["metadata"]["usage"]["model_calls"] == 1
    assert "**Show it**" in done["response"]
    assert "**List the rooms**" in done["response"]
    assert names_of(tmp_path) == ["support-team.yaml"]


@pytest.mark.row("S002-29", "S002-31", "S002-53")
async def test_one_sub_agent_that_fails_does_not_fail_the_others(serve: Serve) -> None:
    rules = (
        routes(
            intent("room_management", "tidy up", request="tidy up the rooms"),
            intent("query", "rooms_list", request="list the rooms"),
            intent("query", "room_show", room_id="stepgate", request="show the result", depends_on=[0]),
        ),
        says(to="subagent", fault="status_500"),
        says("No.", to="planner"),
    )
    async with serve(script(*rules)) as url:
        asked = await ask(url, "tidy up the rooms, list them, and show the result")
        answered = await approve(url, asked)
    assert answered["metadata"]["status"] == "partial", answered["metadata"]
    assert "knowledge (shipped)" in answered["response"], "the other one is there"
    assert "Nothing was changed" in answered["response"]
    assert "500" in answered["response"], "the reason"
    assert "stepgate rooms list|show" in answered["response"], "how to do it by hand"
    shown = [line for line in lines_of(answered, "tool") if line["title"] == "room_show"]
    assert shown == [], "what needs the failed one is not done"


async def test_a_sub_agent_that_answers_in_prose_is_understood(serve: Serve) -> None:
    rules = (routes(intent("query", "compare")), says("They differ in their tools.", to="subagent"))
    async with serve(script(*rules)) as url:
        answered = await ask(url, "how do chat and stepgate differ?")
    assert answered["metadata"]["status"] == "partial", "it has looked nothing up"
    assert answered["response"].endswith("no tool was called for it.\n\nThey differ in their tools.")


async def test_a_message_about_something_else_is_for_the_planner(serve: Serve) -> None:
    async with serve(script(routes(), answers("Hello, I make rooms."))) as url:
        answered = await ask(url, "tell me about yourself")
    assert answered["response"].endswith("no tool was called. The model wrote:\n\nHello, I make rooms.")


async def test_a_sub_agent_cannot_use_what_the_room_does_not_have(serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "reader.yaml").write_text("name: R\nrouting: intents\ntools: [spawn_room_agent, rooms_list]\n")
    rules = (
        routes(MAKE),
        acts("room_create", {"name": "X"}, times=1),
        concludes("I may not make rooms here.", about="is not among this sub-agent's tools (rooms_list)"),
    )
    async with serve(script(*rules), rooms_dir=rooms) as url:
        answered = await ask(url, "make a room called Support Team", room="reader")
    assert answered["response"].endswith("I may not make rooms here.")
    assert sorted(path.name for path in rooms.iterdir()) == ["reader.yaml"]


async def test_a_sub_agent_that_reads_gets_no_tool_that_changes(serve: Serve) -> None:
    rules = (
        routes(intent("query", "compare", request="compare the rooms")),
        acts("room_delete", {"room_id": "chat"}, times=1),
        concludes("I only look."),
    )
    async with serve(script(*rules)) as url:
        answered = await ask(url, "compare the rooms")
    assert answered["response"].endswith("no tool was called for it.\n\nI only look.")
    assert lines_of(answered, "approval") == []
    calls = [line for line in lines_of(answered, "tool") if line["title"] == "room_delete"]
    assert not any(line["status"] == "succeeded" for line in calls)


async def test_an_approval_inside_a_sub_agent_survives_a_kill(tmp_path: Path, model_server: ScriptedServer) -> None:
    rules = (
        routes(intent("room_management", "create", name="Ours")),
        acts("rooms_list", times=1),
        acts("room_create", {"name": "Ours"}, times=1, call_id="a2"),
        concludes("Made Ours."),
    )
    model_server.load(script(*rules))
    options = {"llm_base_url": model_server.url, "model_fast": "small"}
    with GatewayProcess(tmp_path / "data", **options) as gateway:
        asked = await ask(gateway.url, "make a room called Ours, as the others are")
        assert asked["metadata"]["status"] == "awaiting_approval", asked
        gateway.process.kill()
    with GatewayProcess(tmp_path / "data", **options) as gateway:
        made: dict[str, Any] = await approve(gateway.url, asked)
    assert (made["metadata"]["status"], made["response"]) == ("complete", "Made Ours.")
    assert names_of(tmp_path) == ["ours.yaml"]
    assert model_server.purposes() == ["router", "subagent", "subagent", "subagent"], "no turn is asked for twice"
    listed = [line for line in lines_of(made, "tool") if line["title"] == "rooms_list"]
    assert len(listed) == 1


@pytest.mark.row("S002-02", "S002-05")
async def test_a_room_for_a_purpose_is_made_with_what_fits_and_answers_at_once(serve: Serve) -> None:
    fields = {"tools": ["calculator"], "skills": [], "system_prompt": "Help the support team with orders."}
    rules = (
        routes(intent("room_management", "create", name="Orders", purpose="look up and add up orders")),
        acts("search_entities", {"query": "add up", "entity_type": "tool"}, times=1),
        acts("room_create", {"name": "Orders", "fields": {**fields, "colour": "red"}}, times=1, call_id="a2"),
        acts("room_create", {"name": "Orders", "fields": fields}, times=1, call_id="a3", about="no field 'colour'"),
        concludes("The room Orders is there; it can calculate."),
    )
    async with serve(script(*rules)) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        asked = await ask(url, "make me a room Orders for the support team that can add up orders")
        assert "colour" not in asked["response"], "nobody is asked about a call that would be refused"
        made = await approve(url, asked)
        assert made["response"] == "The room Orders is there; it can calculate."
        assert [line["status"] for line in lines_of(made, "approval")] == ["done"]
        body = {"prompt": "", "room": "orders"}
        summed = {"tool_calls": [{"tool": "calculator", "args": {"expression": "6*7"}}]}
        used = (await client.post("/v1/agent", json={**body, "metadata": summed})).json()
        assert "42" in used["response"]
