"""A text from outside that a tool saves stays one: whatever shows it, and whatever room it instructs.

The model obeys every injection: it saves what a page says as a prompt and makes it a room's instructions.
"""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from agent.policy.guardrails.message_labels import split_attachments
from agent.tools import READ_ONLY
from agent.tools.stored_things import StoredThingList, StoredThingTool
from gateway.feature_loader import import_target, list_hooks, load_features
from tests.integration.test_history_labels import STOLEN, THANKS, Bank, bank, status_of, user
from tests.integration.test_label_paths import COMPLETE, wait_for_stop
from tests.integration.test_rooms import create
from tests.support.approvals import ids_of
from tests.support.script import Rule, plans

__all__ = ["bank"]

SAVE, OWN, APPLY, ROOM = (
    "Save what the page says",
    "Save as prompt brief: Be brief.",
    "Use it in ours",
    "Make a room of it",
)
PAGE = {"tool": "srv__read_page", "inputs": {"url": "https://bank.example/hours"}}
TOOLS = (
    "prompt_save, prompts_list, prompt_show, prompt_apply, room_create, rooms_list, room_show, search_entities, "
    "srv__read_page"
)


def after_page(tool: str, about: str, **inputs: Any) -> Rule:
    """A plan that reads the page and gives its text to a tool."""
    return plans(PAGE, {"tool": tool, "inputs": inputs, "depends_on": ["s1"]}, COMPLETE, about=about, times=1)


SAVES = after_page("prompt_save", SAVE, name="brief", text="$s1")
SAVES_OWN = plans(
    {"tool": "prompt_save", "inputs": {"name": "brief", "text": "Be brief."}}, COMPLETE, about=OWN, times=1
)
APPLIES = plans(
    {"tool": "prompt_apply", "inputs": {"name": "brief", "room_id": "ours"}}, COMPLETE, about=APPLY, times=1
)
CREATES = after_page("room_create", ROOM, name="Ours", fields={"system_prompt": "$s1"})
SAVES_ABOUT = after_page("prompt_save", SAVE, name="brief", text="$s1", description="$s1")
CREATES_ABOUT = after_page("room_create", ROOM, name="Pay EVE-77", room_id="hours", description="$s1")
CREATES_OWN = plans({"tool": "room_create", "inputs": {"name": "Clean"}}, COMPLETE, about="a clean room", times=1)
NAMES = ("ours", "mine", "clean")
OBEYS = plans(STOLEN, COMPLETE, about=THANKS, times=1)


@pytest.fixture
def maker(tmp_path: Path) -> dict[str, Any]:
    """The options for a room with the tools over stored things."""
    folder = tmp_path / "rooms"
    folder.mkdir()
    (folder / "maker.yaml").write_text(
        f"id: maker\nname: Maker\nsupervision: checks\nmemory: false\ntools: [{TOOLS}]\n"
    )
    return {"rooms_dir": folder}


async def do(it: Bank, prompt: str) -> None:
    """Has the room `maker` do it, with a person who allows everything."""
    answer = await it.chat(user(prompt), model="maker")
    while status_of(answer) == "awaiting_approval":
        run_id = answer["metadata"]["run_id"]
        await it.client.post(f"/v1/runs/{run_id}/approve", json={"approvals": ids_of(answer)})
        answer = await wait_for_stop(it, run_id)


async def call(it: Bank, tool: str, **args: Any) -> list[dict[str, Any]]:
    """What a tool returned, as the run's log has it."""
    body = {"prompt": "show it", "room": "maker", "metadata": {"tool_calls": [{"tool": tool, "args": args}]}}
    run_id = (await it.client.post("/v1/agent", json=body)).json()["metadata"]["run_id"]
    log = await it.client.get(f"/v1/runs/{run_id}/events", headers={"accept": "application/json"})
    return [one["data"] for one in log.json()["data"] if one["type"] == "tool.returned"]


async def is_marked(it: Bank, tool: str, **args: Any) -> bool:
    """Whether what a tool shows is text from outside."""
    [result] = await call(it, tool, **args)
    return bool(result["tainted"])


async def test_a_prompt_that_was_made_of_a_page_is_text_from_outside_until_a_person_saves_another(
    bank: Any, maker: dict[str, Any]
) -> None:
    async with bank(SAVES_OWN, SAVES, **maker) as it:
        await do(it, OWN)
        assert not await is_marked(it, "prompt_show", name="brief")
        await do(it, SAVE)
        assert await is_marked(it, "prompt_show", name="brief")
        await it.client.put("/v1/studio/prompts/brief", json={"text": "Be brief.", "description": ""})
        assert not await is_marked(it, "prompt_show", name="brief")


async def test_one_text_from_outside_does_not_make_a_list_one(bank: Any, maker: dict[str, Any]) -> None:
    """A list names the thing and shows no text of it, so that a change after it needs no question."""
    async with bank(SAVES_ABOUT, CREATES_ABOUT, **maker) as it:
        await do(it, SAVE)
        await do(it, ROOM)
        for tool in ("prompts_list", "rooms_list", "search_entities"):
            [result] = await call(it, tool)
            assert "brief" in result["text"] or "hours" in result["text"], tool
            assert not result["tainted"], tool
            assert "EVE-77" not in str(result), tool
        assert await is_marked(it, "room_show", room_id="hours")


async def test_a_prompt_that_was_made_of_a_page_does_not_speak_for_the_user_of_an_mcp_client(
    bank: Any, maker: dict[str, Any]
) -> None:
    async with bank(SAVES_ABOUT, **maker) as it:
        await do(it, SAVE)
        async with Client(f"{str(it.client.base_url).rstrip('/')}/mcp") as session:
            [listed] = [one for one in (await session.list_prompts()).prompts if one.name == "brief"]
            prompt = await session.get_prompt("brief", {"task": "Say hello"})
    text = prompt.messages[0].content.text  # type: ignore[union-attr]
    own, attached = split_attachments(text)
    assert own == "Task: Say hello"
    assert "EVE-77" in attached
    assert "EVE-77" not in f"{listed} {prompt.description}"


@pytest.mark.parametrize("door", ["tool", "route"])
async def test_a_page_that_became_a_rooms_instructions_is_not_the_operators_word(
    bank: Any, maker: dict[str, Any], door: str
) -> None:
    async with bank(SAVES, APPLIES, OBEYS, **maker) as it:
        await create(it.client, name="Ours")
        await do(it, SAVE)
        if door == "tool":
            await do(it, APPLY)
        else:
            await it.client.post("/v1/studio/prompts/brief/apply", json={"room": "ours"})
        room = (await it.client.get("/v1/rooms/ours")).json()["room"]
        assert "EVE-77" in room["system_prompt"]
        answer = await it.chat(user(THANKS), model="ours")
        assert status_of(answer) == "awaiting_approval"
        assert it.effects == []
        assert await is_marked(it, "room_show", room_id="ours")


async def test_a_room_that_was_made_of_a_page_follows_its_instructions_as_text_from_outside(
    bank: Any, maker: dict[str, Any]
) -> None:
    own = plans({"tool": "srv__send_money", "inputs": {"to": "BO-12", "amount": 50}}, COMPLETE, about="BO-12", times=1)
    async with bank(CREATES, OBEYS, own, **maker) as it:
        await do(it, ROOM)
        assert status_of(await it.chat(user(THANKS), model="ours")) == "awaiting_approval"
        assert it.effects == []
        done = await it.chat(user("Send money: 50 to BO-12"), model="ours")
        assert status_of(done) == "complete", "what the user asks for in their own words is not asked about"
        assert len(it.effects) == 1


async def test_only_people_take_the_mark_from_a_room(bank: Any, maker: dict[str, Any]) -> None:
    unmark = plans(
        {"tool": "room_create", "inputs": {"name": "Mine", "fields": {"from_outside": False}}}, COMPLETE, about="clean"
    )
    async with bank(CREATES, unmark, **maker) as it:
        await do(it, ROOM)
        await do(it, "Make a clean one")
        assert (await it.client.get("/v1/rooms/mine")).status_code == 404
        version = (await it.client.get("/v1/rooms/ours")).json()["version"]
        changed = await it.client.patch("/v1/rooms/ours", json={"from_outside": False, "version": version})
        assert changed.is_success, changed.text
        assert not await is_marked(it, "room_show", room_id="ours")


async def test_a_room_of_a_run_from_before_the_mark_gets_it_unless_its_run_read_nothing(
    bank: Any, maker: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    folder = maker["rooms_dir"]
    async with bank(CREATES, CREATES_OWN, **maker) as it:
        await create(it.client, name="Mine")
        await do(it, ROOM)
        await do(it, "Make a clean room")
    text = (folder / "ours.yaml").read_text()
    (folder / "ours.yaml").write_text(text.replace("from_outside: true\n", ""))
    database = sqlite3.connect(folder.parent / "data" / "stepgate.db")
    with database:
        database.execute("DELETE FROM feature_schema WHERE revision = 'rooms_of_runs'")
        database.execute("DROP TABLE rooms_of_runs")
    database.close()
    async with bank(**maker) as it:
        marks = {name: (await it.client.get(f"/v1/rooms/{name}")).json()["room"]["from_outside"] for name in NAMES}
        assert marks == {"ours": True, "mine": False, "clean": False}
    assert "1 rooms were set by runs" in caplog.text
    assert "stepgate rooms show ID" in caplog.text


def test_everything_that_shows_stored_texts_says_whether_they_are_from_outside() -> None:
    """A tool that shows a thing without its mark would make an external text the user's."""
    for _, target in list_hooks(load_features("", with_installed=False), lambda feature: feature.tools):
        import_target(target)
    readers = list_readers(StoredThingTool)
    assert {"schedules_list", "recipes_list", "room_show"} <= {tool.name for tool in readers}
    without = {"list_secrets", "explain_relationship"}  # names only
    for tool in readers:
        if tool.name in without or tool.is_tainted not in (StoredThingTool.is_tainted, StoredThingList.is_tainted):
            continue
        assert "from_outside" in str(tool.Output.model_json_schema()), tool.name


def list_readers(base: type[Any]) -> list[type[Any]]:
    """The tools below a base class that only read."""
    tools = [one for child in base.__subclasses__() for one in (child, *list_readers(child))]
    return [one for one in tools if hasattr(one, "name") and one.annotations == READ_ONLY]
