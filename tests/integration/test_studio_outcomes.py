"""What the studio says became of each request: nothing that was not done counts as done, whatever a model claims."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_studio_compound import COPY, LIST, MAKE, MESSAGE, decide, send
from tests.support.script import Call, Rule, answers, says, script
from tests.support.studio import acts, concludes, intent, routes

BOTH = intent("room_management", "create", request="make the rooms Alpha and Beta")


def statuses(response: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["action"], one["status"]) for one in response["outcomes"]]


@pytest.mark.row("S002-31")
@pytest.mark.parametrize("refused_first", [True, False])
async def test_one_of_two_rooms_that_a_person_refused_is_not_made_by_the_other(
    serve: Serve, tmp_path: Path, *, refused_first: bool
) -> None:
    names = ["Beta", "Alpha"] if refused_first else ["Alpha", "Beta"]
    first, second = (Call("room_create", {"name": name}, id=name) for name in names)
    model = script(
        routes(BOTH),
        says("", to="subagent", calls=(first,), times=1),
        says("", to="subagent", calls=(second,), times=1),
        concludes("Made both."),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = await send(client, "make the rooms Alpha and Beta")
        for name in names:
            assert answer["status"] == "awaiting_approval", answer
            answer = await decide(client, url, answer, "reject" if name == "Beta" else "approve")
    assert answer["status"] == "partial", answer
    assert statuses(answer) == [("create", "refused")]
    assert "Alpha" in answer["outcomes"][0]["changes"][0]
    assert [path.name for path in (tmp_path / "data" / "rooms").glob("*.yaml")] == ["alpha.yaml"]


async def test_a_call_that_is_corrected_is_done(serve: Serve) -> None:
    model = script(
        routes(intent("room_management", "create", name="Alpha")),
        acts("room_create", {"name": "Alpha", "fields": {"colour": "red"}}, times=1),
        acts("room_create", {"name": "Alpha"}, times=1, call_id="a2"),
        concludes("Made Alpha."),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        done = await decide(client, url, await send(client, "make a room Alpha"))
    assert (done["status"], statuses(done), done["answer"]) == ("succeeded", [("create", "done")], "Made Alpha.")


@pytest.mark.row("S002-31")
@pytest.mark.parametrize("action", ["create", "make a room", "room_create"])
async def test_a_claimed_change_is_not_done_by_reading(serve: Serve, action: str) -> None:
    read = acts("rooms_list", times=1)
    model = script(routes(intent("room_management", action)), read, concludes("I created Support Team."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = await send(client, "make a room Support Team")
    assert answer["status"] == "error", answer
    assert statuses(answer) == [(action, "failed")]
    assert "Nothing was changed" in answer["answer"]


@pytest.mark.parametrize("action", ["list", "show", "describe"])
async def test_reading_is_all_that_a_request_to_read_needs(serve: Serve, action: str) -> None:
    model = script(routes(intent("room_management", action)), acts("rooms_list", times=1), concludes("There are six."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = await send(client, "which rooms are there?")
    assert (answer["status"], answer["answer"]) == ("succeeded", "There are six.")


@pytest.mark.row("S002-31")
@pytest.mark.parametrize("call", [None, acts("rooms_list", times=1)], ids=["no call", "a look"])
@pytest.mark.parametrize("read", [BOTH, intent("query", "find")], ids=["a change", "a question"])
async def test_an_empty_end_is_no_success(serve: Serve, read: dict[str, Any], call: Rule | None) -> None:
    """A small model may end with neither a call nor a word."""
    async with (
        serve(script(routes(read), *([call] if call else []), concludes(""))) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        answer = await send(client, "do it")
    if call is not None and read is not BOTH:
        assert (answer["status"], "knowledge" in answer["answer"]) == ("succeeded", True), "the look is the answer"
        return
    assert (answer["status"], answer["error"]["message"]) == ("error", "no tool was called for it."), answer
    assert answer["outcomes"][0]["status"] == "failed"


@pytest.mark.row("S002-31", "S002-37")
@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (intent("config", "prompt_show", name="tone"), "there is no prompt 'tone'"),
        (intent("room_management", "room_show", room_id="nowhere"), "there is no room named 'nowhere'"),
        (intent("tool_generation", "tool_show", name="nothing"), "there is no generated tool 'nothing'"),
        (intent("query", "get_entity_details", entity_id="nowhere"), "there is no entity 'nowhere'"),
    ],
)
async def test_a_look_up_that_failed_is_no_success(serve: Serve, read: dict[str, Any], reason: str) -> None:
    model = script(routes(read), concludes("It is empty."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = await send(client, "show it to me")
    assert answer["status"] == "error", answer
    assert answer["error"]["message"].startswith(reason), answer["error"]
    assert (answer["error"]["stage"], answer["outcomes"][0]["status"]) == ("identifier", "failed")
    assert reason in answer["answer"]


async def test_a_look_up_that_another_one_replaces_is_done(serve: Serve) -> None:
    read = intent("config", "prompt_show", name="tone")
    model = script(routes(read), acts("prompts_list", times=1), concludes("There is no such prompt, and no other."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = await send(client, "show the prompt tone")
    assert (answer["status"], answer["answer"]) == ("succeeded", "There is no such prompt, and no other.")


@pytest.mark.row("S002-31")
async def test_a_change_that_was_read_as_a_question_is_asked_about(serve: Serve) -> None:
    misread = intent("query", "delete", name="Desk", request="delete the room Desk")
    async with serve(script(routes(misread), concludes("Deleted."))) as url, httpx.AsyncClient(base_url=url) as client:
        answer = await send(client, "delete the room Desk")
    assert answer["status"] == "awaiting_input", answer
    assert "Deleted." not in answer["answer"]
    assert "'delete' changes something" in answer["reason"]


@pytest.mark.row("S002-31")
@pytest.mark.parametrize("router", ["Rooms, I would say!", json.dumps({"intents": []})])
async def test_a_planner_that_claims_a_change_has_done_nothing(serve: Serve, router: str) -> None:
    model = script(says(router, to="router"), answers("I deleted the room."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = await send(client, "please drop the desk, we need it no more")
    assert (answer["status"], answer["outcomes"]) == ("error", [])
    assert answer["error"]["stage"] == "plan"
    assert answer["error"]["message"] == answer["reason"]


@pytest.mark.row("S002-30")
async def test_a_request_that_a_person_took_out_of_the_plan_keeps_its_own_outcome(serve: Serve, tmp_path: Path) -> None:
    rooms = {**LIST, "depends_on": [0]}
    async with serve(script(routes(MAKE, COPY, rooms))) as url, httpx.AsyncClient(base_url=url) as client:
        asked = await send(client, MESSAGE)
        steps = (await client.get(f"/v1/runs/{asked['run_id']}")).json()["plan"]["steps"]
        done = await decide(client, url, asked, plan={"steps": [step for step in steps if step["id"] != "s2"]})
    assert statuses(done) == [("room_create", "done"), ("room_copy", "not_run"), ("rooms_list", "done")], done
    assert done["outcomes"][1]["reason"] == "it was taken out of the plan"
    assert done["outcomes"][2]["request"] == "which rooms there are"
    assert done["status"] == "partial"
    assert [path.name for path in (tmp_path / "data" / "rooms").glob("*.yaml")] == ["blue-desk.yaml"]


@pytest.mark.row("S002-30")
async def test_a_failed_request_keeps_its_outcome_when_the_plan_goes_on_without_it(
    serve: Serve, tmp_path: Path
) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "own.yaml").write_text(
        "name: Own\nrouting: intents\nsupervision: checks\ntools: [spawn_room_agent, spawn_query_agent, rooms_list]\n"
    )
    broken = intent("room_management", "tidy up", request="tidy up the rooms")
    model = script(
        routes(broken, intent("query", "rooms_list", request="list the rooms")),
        says(to="subagent", fault="status_500"),
        says("No.", to="planner"),
    )
    async with serve(model, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = await send(client, "tidy up the rooms and list them", room="own")
        if answer["status"] == "awaiting_approval":
            answer = await decide(client, url, answer)
    assert statuses(answer) == [("tidy up", "failed"), ("rooms_list", "done")], answer["outcomes"]
    assert answer["status"] == "partial"


@pytest.mark.row("S002-30")
async def test_a_question_about_one_request_tells_the_outcome_of_each(serve: Serve) -> None:
    create = intent("room_management", "create", request="make a room")
    model = script(routes(intent("query", "rooms_list"), create, question="What is its name?"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = await send(client, "list the rooms and make a room")
    assert answer["status"] == "awaiting_input"
    assert statuses(answer) == [("rooms_list", "waiting"), ("create", "waiting")]
    assert {one["reason"] for one in answer["outcomes"]} == {"What is its name?"}


def edits(**more: Any) -> dict[str, Any]:
    return intent("room_management", "room_edit", room_id="desk", **{"field": "description", "value": "x", **more})


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (intent("config", "prompt_save", name="My Prompt", text="Hello."), "cannot be a prompt's name"),
        (intent("config", "prompt_save", name="greeting", text=" "), "text: it is empty"),
        (intent("config", "prompt_save", name="greeting", text="Hello.", version="7"), "was changed by somebody else"),
        (edits(field="name", value="  "), "a room needs a `name`"),
        (edits(version="0123456789abcdef"), "was changed by somebody else"),
        (
            intent("room_management", "room_delete", room_id="desk", version="0123456789abcdef"),
            "was changed by somebody else",
        ),
    ],
)
async def test_nobody_is_asked_about_a_change_that_is_certain_to_fail(
    serve: Serve, read: dict[str, Any], reason: str
) -> None:
    async with (
        serve(script(routes(read), concludes("It cannot be done."))) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        await client.post("/v1/rooms", json={"name": "Desk"})
        answer = await send(client, "please carry that out as we discussed")
    assert answer["status"] == "error", answer
    assert reason in answer["outcomes"][0]["reason"]


async def test_a_change_of_the_version_that_was_read_is_made(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url) as client:
        version = (await client.post("/v1/rooms", json={"name": "Desk"})).json()["version"]
        calls = [
            {"tool": "room_edit", "args": {"room_id": "desk", "field": "name", "value": " New ", "version": version}}
        ]
        done = await decide(client, url, await send(client, "rename it", metadata={"tool_calls": calls}))
        room = (await client.get("/v1/rooms/desk")).json()
    assert (done["status"], room["name"]) == ("succeeded", "New")


TWO_TOOLS = {"name": "Desk", "tools": ["current_time", "search_knowledge"]}


@pytest.mark.parametrize(
    ("args", "tools"),
    [
        ({"value": "calculator", "change": "add"}, ["current_time", "search_knowledge", "calculator"]),
        (
            {"value": ["calculator", "current_time"], "change": "add"},
            ["current_time", "search_knowledge", "calculator"],
        ),
        ({"value": "search_knowledge", "change": "remove"}, ["current_time"]),
        ({"value": "calculator", "change": "set"}, ["calculator"]),
        ({"value": ["calculator"]}, ["calculator"]),
    ],
)
async def test_entries_are_added_to_a_list_of_a_room_and_removed(
    serve: Serve, args: dict[str, Any], tools: list[str]
) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url) as client:
        await client.post("/v1/rooms", json=TWO_TOOLS)
        calls = [{"tool": "room_edit", "args": {"room_id": "desk", "field": "tools", **args}}]
        await decide(client, url, await send(client, "change it", metadata={"tool_calls": calls}))
        assert (await client.get("/v1/rooms/desk")).json()["room"]["tools"] == tools


async def test_a_name_written_for_a_list_that_has_others_takes_nothing_away(serve: Serve) -> None:
    """A router reads "add the calculator to the room Desk" as the field `tools` with the value `calculator`."""
    adds = intent("room_management", "room_edit", room_id="Desk", field="tools", value="calculator")
    model = script(routes(adds), concludes("Say whether to add it."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url) as client:
        await client.post("/v1/rooms", json=TWO_TOOLS)
        answer = await send(client, "please let the room Desk have the calculator")
        room = (await client.get("/v1/rooms/desk")).json()["room"]
    assert room["tools"] == TWO_TOOLS["tools"]
    assert 'has ["current_time", "search_knowledge"] too' in answer["outcomes"][0]["reason"]


async def test_the_question_about_an_edit_shows_what_was_before_and_what_goes(serve: Serve) -> None:
    adds = intent("room_management", "room_edit", room_id="desk", field="tools", value='["calculator", "current_time"]')
    async with serve(script(routes(adds))) as url, httpx.AsyncClient(base_url=url) as client:
        await client.post("/v1/rooms", json=TWO_TOOLS)
        asked = await send(client, 'set the tools of the room desk to ["calculator", "current_time"]')
    assert asked["status"] == "awaiting_approval", asked
    text = asked["answer"]
    assert 'Before: `["current_time", "search_knowledge"]`' in text
    assert 'After: `["calculator", "current_time"]`' in text
    assert 'Removed: `["search_knowledge"]`' in text
