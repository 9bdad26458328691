"""The room `studio`: a router reads what a message asks for, and a sub-agent with its own tools carries it out."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.approvals import ids_of
from tests.support.script import answers, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.studio import acts, concludes, intent, routes

MAKE = intent("room_management", "room_create", name="Support Team")


async def ask(url: str, prompt: str, **body: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        response = await client.post("/v1/agent", json={"prompt": prompt, "room": "studio", **body})
    assert response.status_code == 200, response.text
    answered: dict[str, Any] = response.json()
    return answered


async def new_conversation(url: str) -> str:
    """A conversation whose id the gateway made: in one that the client names, a bare yes without a key decides
    nothing."""
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        return str((await client.post("/v1/conversations", json={})).json()["id"])


async def approve(url: str, asked: dict[str, Any], decision: str = "approve", **body: Any) -> dict[str, Any]:
    """Decides and waits for the end of the run, or its next question."""
    run = f"/v1/runs/{asked['metadata']['run_id']}"
    async with httpx.AsyncClient(base_url=url, timeout=60) as client, asyncio.timeout(30):
        decided = await client.post(f"{run}/{decision}", json={"approvals": ids_of(asked), **body})
        assert decided.is_success, decided.text
        while (shown := (await client.get(run)).json())["status"] in ("queued", "running"):  # noqa: ASYNC110 - the run goes on by itself
            await asyncio.sleep(0.02)
    answered: dict[str, Any] = shown["response"]
    return answered


def lines_of(response: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [line for line in response["steps"] if line["type"] == kind]


def intents_of(response: dict[str, Any]) -> dict[str, Any]:
    """What the router read, from the trace."""
    (line,) = [line for line in lines_of(response, "route") if line["title"].startswith("intent")]
    detail: dict[str, Any] = line["detail"]
    return detail


@pytest.mark.row("S002-01", "S002-02", "S002-54")
async def test_a_request_that_one_call_serves_costs_one_model_call(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(routes(intent("room_management", "rooms_list")))) as url:
        listed = await ask(url, "which assistants have we got?")
    assert listed["metadata"]["status"] == "complete", listed
    assert "knowledge (shipped)" in listed["response"]
    assert listed["metadata"]["usage"]["model_calls"] == 1
    assert model_server.purposes() == ["router"]
    read = intents_of(listed)
    assert read["intents"] == [
        {"category": "room_management", "action": "rooms_list", "entities": {}, "confidence": 0.95}
    ]
    (agent,) = lines_of(listed, "subagent")
    (call,) = [line for line in lines_of(listed, "tool") if line["title"] == "rooms_list"]
    assert (agent["title"], call["span"]) == ("room_agent", agent["span"]), "its calls are visible under it"


@pytest.mark.row("S002-05", "S002-07", "S002-42")
async def test_a_change_waits_for_a_person_and_is_then_made(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "data" / "rooms" / "support-team.yaml"
    async with serve(script(routes(MAKE))) as url:
        asked = await ask(url, "make me a room called Support Team")
        assert asked["metadata"]["status"] == "awaiting_approval", asked
        assert "a sub-agent wants to change something" in asked["response"]
        assert "Support Team" in asked["response"], "what is approved is shown"
        assert not path.exists()
        made = await approve(url, asked)
        assert made["metadata"]["status"] == "complete", made
        assert path.read_text().startswith("name: Support Team")
        assert "support-team" in made["response"]
        assert made["metadata"]["usage"]["model_calls"] == 1


@pytest.mark.row("S002-02", "S002-31")
async def test_an_action_of_another_category_goes_to_its_sub_agent(serve: Serve, tmp_path: Path) -> None:
    misread = intent("query", "room_create", name="Support Team", request="make me a room called Support Team")
    async with serve(script(routes(misread), concludes("I made it."))) as url:
        asked = await ask(url, "make me a room called Support Team")
        assert asked["metadata"]["status"] == "awaiting_approval", asked["response"]
        assert intents_of(asked)["intents"][0]["category"] == "room_management"
        await approve(url, asked)
    assert (tmp_path / "data" / "rooms" / "support-team.yaml").exists()


async def test_a_rejected_change_leaves_nothing_and_the_answer_says_so(serve: Serve, tmp_path: Path) -> None:
    ends = concludes("I made the room.")  # what a model claims is not what happened
    async with serve(script(routes(MAKE), ends)) as url:
        asked = await ask(url, "make me a room called Support Team")
        refused = await approve(url, asked, "reject", reason="not now")
    assert "Nothing was changed: the user did not allow this call: not now" in refused["response"]
    assert not (tmp_path / "data" / "rooms" / "support-team.yaml").exists()


async def test_a_model_that_claims_a_change_without_a_call_is_contradicted(serve: Serve, tmp_path: Path) -> None:
    make = intent("room_management", "make a room", name="Support Team")
    async with serve(script(routes(make), concludes("I made the room."))) as url:
        answered = await ask(url, "make me a room called Support Team")
    assert "Nothing was changed: no tool was called for it." in answered["response"]
    assert not (tmp_path / "data" / "rooms" / "support-team.yaml").exists()


async def test_a_reply_that_is_neither_yes_nor_no_goes_to_the_sub_agent(serve: Serve, tmp_path: Path) -> None:
    renamed = acts("room_create", {"name": "Helpdesk"}, about="call it Helpdesk", times=1)
    async with serve(script(routes(MAKE), renamed, concludes("Made Helpdesk."))) as url:
        talk = await new_conversation(url)
        asked = await ask(url, "make me a room called Support Team", conversation_id=talk)
        again = await ask(url, "call it Helpdesk instead", conversation_id=talk)
        assert again["metadata"]["status"] == "awaiting_approval", again
        assert "Helpdesk" in again["response"]
        made = await ask(url, "approve", conversation_id=talk)
        assert made["metadata"]["run_id"] == asked["metadata"]["run_id"]
    assert "Made Helpdesk." in made["response"]
    assert [path.name for path in (tmp_path / "data" / "rooms").iterdir()] == ["helpdesk.yaml"]


@pytest.mark.row("S002-03")
async def test_a_router_that_is_not_sure_asks_back(serve: Serve, model_server: ScriptedServer) -> None:
    async with serve(script(routes(intent("room_management", "create", confidence=0.8)))) as url:
        asked = await ask(url, "do the thing")
    assert asked["metadata"]["status"] == "awaiting_input", asked["metadata"]
    assert "I am not sure what you want" in asked["response"]
    assert "confidence 0.8" in intents_of(asked)["reason"]
    assert model_server.purposes() == ["router"]


@pytest.mark.row("S002-03", "S002-04")
async def test_where_nobody_can_be_asked_the_planner_takes_over(serve: Serve) -> None:
    rules = (routes(intent("query", "find", confidence=0.5)), answers("There are six rooms."))
    async with serve(script(*rules)) as url:
        answered = await ask(url, "do the thing", interactive=False)
    assert answered["response"].endswith("The model wrote:\n\nThere are six rooms.")
    assert "the planner takes over: the router is not sure (confidence 0.5" in intents_of(answered)["reason"]


@pytest.mark.parametrize(
    "reply",
    [
        "I would say: rooms!",
        '{"intents": [{"category": "weather", "action": "x", "confidence": 1}]}',
        '{"intents": [{"category": "query", "action": "x", "confidence": 95}]}',
        '{"intents": [{"category": "query", "action": "x", "confidence": "NaN"}]}',
        '{"intents": [{"category": "query", "action": "x", "confidence": 1, "entities": {"$from": "s1"}}]}',
        '{"intents": [{"category": "query", "action": "x", "entities": {}, "confidence": 0.9}, {"category": "que',
        '{"intents": [{"category": "query", "action": "x", "confidence": 1, "depends": [0]}]}',
        '{"category": "query", "action": "x", "confidence": 1, "entity": {"name": "y"}}',
        json.dumps({"intents": [intent("query", "x")] * 9}),
        "[" * 100_000,
        "",
    ],
)
@pytest.mark.row("S002-04")
async def test_a_router_that_returns_nonsense_is_replaced_by_the_planner(serve: Serve, reply: str) -> None:
    async with serve(script(says(reply, to="router"), answers("Planned without it."))) as url:
        answered = await ask(url, "which rooms are there?")
    assert answered["response"].endswith("no tool was called. The model wrote:\n\nPlanned without it.")
    assert "the planner takes over" in intents_of(answered)["reason"]


@pytest.mark.row("S002-01")
async def test_a_single_intent_may_stand_alone_in_prose(serve: Serve) -> None:
    bare = '{"category": "query", "action": "rooms_list", "entities": {}, "confidence": "0.9", "reasoning": "r"}'
    async with serve(script(says(f"<think>Rooms {{so}}.</think>Sure:\n```json\n{bare}\n```", to="router"))) as url:
        answered = await ask(url, "which rooms are there?")
    assert "knowledge (shipped)" in answered["response"]
    assert intents_of(answered)["task_plan"]["steps"][0]["target"] == "query_agent"


@pytest.mark.parametrize("fault", ["status_500", "status_400", "hang", "garbage", "refuse_schema"])
@pytest.mark.row("S002-04")
async def test_a_router_that_fails_is_never_an_error_for_the_user(serve: Serve, fault: Any) -> None:
    rules = (says(to="router", fault=fault), answers("Planned without it."))
    async with serve(script(*rules), llm_timeout_s=1) as url:
        answered = await ask(url, "which rooms are there?")
    assert answered["response"].endswith("no tool was called. The model wrote:\n\nPlanned without it.")
    assert lines_of(answered, "route")[-1]["status"] == "failed"


@pytest.mark.row("S002-04")
async def test_a_model_that_cannot_be_reached_gives_the_commands_instead(serve: Serve) -> None:
    options = {"llm_base_url": "http://127.0.0.1:9/v1", "model_fast": "small"}
    async with serve(**options) as url:
        answered = await ask(url, "make me a room")
    assert "I cannot read free text now" in answered["response"]
    assert "`stepgate rooms list|show|create" in answered["response"]
    assert "Nothing was done" in answered["response"]


async def test_without_a_model_the_room_says_so_and_names_the_commands(serve: Serve) -> None:
    async with serve() as url:
        answered = await ask(url, "could you make a room of our own for us?")
        assert "Without a model I cannot read free text here" in answered["response"]
        assert "/v1/rooms" in answered["response"]
        exact = {"tool_calls": [{"tool": "rooms_list", "args": {}}]}
        listed = await ask(url, "", metadata=exact)
    assert "studio (shipped): Studio" in listed["response"], "exact calls need no model"


@pytest.mark.row("S002-01", "S002-42")
async def test_a_value_that_a_small_model_made_up_is_asked_for(serve: Serve, model_server: ScriptedServer) -> None:
    invented = intent("room_management", "room_create", name="Support Team")
    async with serve(script(routes(invented)), model_profile="small") as url:
        asked = await ask(url, "make a room")
        assert asked["metadata"]["status"] == "awaiting_input", asked["metadata"]
        assert asked["response"] == "What is the name for room create? Your message does not say it."
        said = await ask(url, "make a room called support team")
        assert said["metadata"]["status"] == "awaiting_approval", "its spelling does not matter"
    prompt = model_server.requests()[0]["body"]["messages"][0]["content"]
    assert '"action": "rooms_list"' in prompt, "the example carries a real name"


@pytest.mark.row("S002-01", "S002-42")
@pytest.mark.parametrize(
    ("message", "read", "question"),
    [
        ("make a room", intent("room_management", "create", name="Support Team"), "What is the name for create?"),
        ("make a room", intent("room_management", "room_create"), "What is the name for room create?"),
        (
            "give the room team15 a smaller step budget",
            intent("room_management", "room_edit", room_id="team15", field="budgets.max_steps", value="5"),
            "What is the value for room edit?",
        ),
    ],
)
async def test_a_small_model_may_make_up_no_value(
    serve: Serve, message: str, read: dict[str, Any], question: str
) -> None:
    async with serve(script(routes(read)), model_profile="small") as url:
        asked = await ask(url, message)
    assert asked["metadata"]["status"] == "awaiting_input", asked["response"]
    assert asked["response"].startswith(question)


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ("make a room for our support team", intent("room_management", "create", name="support-team", purpose="help")),
        ("サポート室を作って", intent("room_management", "room_create", name="サポート室")),
        ("gib dem Raum Küche Süd 5 Schritte", intent("room_management", "room_edit", room_id="Küche Süd", value="5")),
        ("which rooms are there", intent("room_management", "list", name="everything")),
        (
            "give the room x the calculator and web fetch tools",
            intent("room_management", "room_edit", room_id="x", field="tools", value="calculator, web_fetch"),
        ),
        (
            "give the room x the calculator and web fetch tools",
            intent("room_management", "room_edit", room_id="x", field="tools", value='["calculator", "web_fetch"]'),
        ),
        (
            "let the room x use `https://mcp.example.com/mcp`",
            intent("room_management", "room_edit", room_id="x", field="purpose", value="https://mcp.example.com/mcp"),
        ),
    ],
)
async def test_what_the_message_says_is_not_asked_for(serve: Serve, message: str, read: dict[str, Any]) -> None:
    model = script(routes(read), concludes("Which one do you mean?"))
    async with serve(model, model_profile="small") as url:
        answered = await ask(url, message)
    assert "for" not in intents_of(answered).get("question", ""), intents_of(answered)
    assert intents_of(answered)["task_plan"] is not None
