"""The studio's own commands, written exactly: they work where no model can read free text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_studio_compound import decide, send
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.studio import intent, routes

DEAD: Mapping[str, Any] = {"llm_base_url": "http://127.0.0.1:9/v1", "model_fast": "small"}


def list_rooms(tmp_path: Path) -> list[str]:
    return sorted(path.stem for path in (tmp_path / "data" / "rooms").glob("*.yaml"))


@pytest.mark.row("S002-04", "S002-42")
@pytest.mark.parametrize("options", [{}, DEAD], ids=["without a model", "with one that cannot be reached"])
async def test_rooms_are_made_changed_and_deleted_by_commands(
    serve: Serve, tmp_path: Path, options: dict[str, Any]
) -> None:
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        listed = await send(client, "list rooms")
        assert (listed["status"], [one["action"] for one in listed["intents"]]) == ("succeeded", ["rooms_list"])
        assert "knowledge" in listed["answer"]
        assert listed["usage"]["model_calls"] == 0 or options

        asked = await send(client, "make me a new room called Sales Team")
        assert asked["status"] == "awaiting_approval", asked
        assert list_rooms(tmp_path) == [], "a person has to allow it first"
        made = await decide(client, url, asked)
        assert (made["status"], made["outcomes"][0]["status"]) == ("succeeded", "done"), made
        assert list_rooms(tmp_path) == ["sales-team"]

        asked = await send(client, "edit room sales-team description to For all who sell")
        done = await decide(client, url, asked)
        assert done["status"] == "succeeded", done
        assert (await client.get("/v1/rooms/sales-team")).json()["description"] == "For all who sell"

        kept = await decide(client, url, await send(client, "delete room sales-team"), "reject", reason="still needed")
        assert kept["answer"] == "Nothing was changed: the user did not allow this call: still needed.", kept["answer"]
        assert kept["status"] == "cancelled", kept
        assert list_rooms(tmp_path) == ["sales-team"]
        await decide(client, url, await send(client, "delete room sales-team"))
        assert list_rooms(tmp_path) == []


@pytest.mark.row("S002-04")
async def test_questions_and_settings_are_read_by_commands(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        for message, said in {
            "find calculator": "tool:calculator",
            "inspect tool:calculator": "room:stepgate may use tool:calculator",
            "show room incident": "Triage of an incident",
            "secrets": "AGENT_LLM_API_KEY",
            "mcp": "server",
            "prompts": "prompt",
            "tools": "tool",
            "show me the secrets": "AGENT_LLM_API_KEY",
            "show the mcp servers": "server",
            "list all the prompts": "prompt",
            "inspect the incident room": "Triage of an incident",
            "inspect tool calculator": "room:stepgate may use tool:calculator",
        }.items():
            answered = await send(client, message)
            assert answered["status"] == "succeeded", answered
            assert said in answered["answer"], answered["answer"]


@pytest.mark.row("S002-42")
@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("create a room called Tool room for tools", "Tool room for tools"),
        ("create room called Tool room", "Tool room"),
        ("new Help Desk room", "Help Desk"),
        ("create a room: Desk", "Desk"),
        ('make room "Room for all, and more"', "Room for all, and more"),
    ],
)
async def test_the_name_is_what_stands_beside_the_word_room(serve: Serve, message: str, name: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        asked = await send(client, message)
        assert (asked["status"], asked["intents"][0]["entities"]) == ("awaiting_approval", {"name": name})


@pytest.mark.row("S002-04", "S002-08")
async def test_an_edit_may_be_written_with_its_words(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await decide(client, url, await send(client, "create room Desk"))
        for message, name in {
            "edit the room desk: name One": "One",
            "edit room desk set name to Two": "Two",
            "edit room desk name = Three": "Three",
        }.items():
            done = await decide(client, url, await send(client, message))
            assert done["status"] == "succeeded", done
            assert (await client.get("/v1/rooms/desk")).json()["name"] == name
        for value in ("Be kind.", "Wow!", "Short... "):
            await decide(client, url, await send(client, f"edit room desk system_prompt {value}"))
            assert (await client.get("/v1/rooms/desk")).json()["room"]["system_prompt"] == value.strip()
        await decide(client, url, await send(client, "edit room desk tools = calculator."))
        assert (await client.get("/v1/rooms/desk")).json()["room"]["tools"] == ["calculator"]
        gone = await decide(client, url, await send(client, "delete the desk room."))
        assert gone["status"] == "succeeded", gone


@pytest.mark.row("S002-04", "S002-31", "S002-37")
@pytest.mark.parametrize("options", [{}, DEAD], ids=["without a model", "with one that cannot be reached"])
async def test_a_command_that_fails_says_why_and_changes_nothing(
    serve: Serve, tmp_path: Path, options: dict[str, Any]
) -> None:
    failures = {
        "delete room nowhere": ("there is no room named 'nowhere'", "identifier"),
        "create room incident": ("there is a room 'incident' already", "identifier"),
        "apply tool nothing": ("there is no generated tool 'nothing'", "identifier"),
        "show prompt nothing": ("there is no prompt 'nothing'", "identifier"),
        "inspect nothing": ("there is no entity 'nothing'", "identifier"),
    }
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        for message, (reason, stage) in failures.items():
            failed = await send(client, message)
            assert failed["status"] == "error", failed
            error, outcome = failed["error"], failed["outcomes"][0]
            assert error["message"].startswith(reason), "the failure of the call, not that of a model"
            assert (error["error_code"], error["stage"]) == ("ERR_TOOL_INPUT", stage), message
            assert (outcome["status"], outcome["error_code"]) == ("failed", "ERR_TOOL_INPUT")
            assert outcome["stage"] == stage
            assert reason in failed["answer"]
            assert "no model is configured" not in failed["answer"]
    assert list_rooms(tmp_path) == []


@pytest.mark.parametrize(
    "message",
    ["make a room and give it the calculator", "make a room", "delete everything", "delete the room", "show me",
     "which rooms are there?",
     "create room Red, create room Blue", "create room Red and then edit room red name Rot",
     "find me a good restaurant for tonight", "rooms\ndelete room a"],
)  # fmt: skip
async def test_free_text_is_no_command_and_is_told_the_commands(serve: Serve, tmp_path: Path, message: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        answered = await send(client, message)
        assert answered["status"] == "error", answered
        assert f"I did not understand: {' '.join(message.split())!r}." in answered["answer"], "all of it"
        assert "`create room NAME`" in answered["answer"]
    assert list_rooms(tmp_path) == []


@pytest.mark.row("S002-03", "S002-04")
@pytest.mark.parametrize(
    "router",
    [says("I would love to help!"), says("", fault="status_500"), routes(intent("query", "x", confidence=0.3))],
    ids=["prose", "a failing provider", "a router that is not sure"],
)
async def test_a_command_is_understood_where_the_router_fails(
    serve: Serve, model_server: ScriptedServer, router: Any
) -> None:
    async with serve(script(router)) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        answered = await send(client, "rooms")
    assert answered["status"] == "succeeded", answered
    assert "knowledge" in answered["answer"]
    assert set(model_server.purposes()) == {"router"}, "the planner is not asked"
    assert "an exact command" in answered["reason"]


async def test_a_room_without_the_sub_agent_has_not_its_commands(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "rooms"
    folder.mkdir(parents=True)
    asking = "name: Asking\nrouting: intents\ntools: [spawn_query_agent, search_entities, rooms_list]\n"
    (folder / "asking.yaml").write_text(asking, "utf-8")
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        response = await client.post("/v1/agent", json={"prompt": "create room Sales", "room": "asking"})
        assert "Nothing was done" in response.json()["response"]
        found = await client.post("/v1/agent", json={"prompt": "find calculator", "room": "asking"})
        assert "tool:calculator" in found.json()["response"]
    assert list_rooms(tmp_path) == ["asking"]
