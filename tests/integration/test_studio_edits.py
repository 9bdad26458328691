"""An edit of a room by talking has the value that it is about, and changes what it says and nothing else."""

import json
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_studio_compound import decide, send
from tests.support.script import Call, Rule, says, script
from tests.support.studio import acts, concludes, intent, routes
from tests.support.tool_scripts import ToolScript

pytestmark = pytest.mark.usefixtures("each_profile")

TOOL = "convert_part_number"


def edits(room_id: str, field: str, **values: Any) -> dict[str, Any]:
    return intent("room_management", "room_edit", room_id=room_id, field=field, request=f"edit {field}", **values)


def creates(name: str) -> dict[str, Any]:
    return intent("room_management", "room_create", name=name, request=f"make a room {name}")


async def read_room(client: httpx.AsyncClient, room_id: str) -> dict[str, Any]:
    room: dict[str, Any] = (await client.get(f"/v1/rooms/{room_id}")).json()["room"]
    return room


@pytest.mark.parametrize(
    ("field", "value", "values", "others"),
    [
        ("tools", ["calculator"], {}, (creates("Other"),)),
        ("system_prompt", "Be careful.", {"value": ""}, (creates("Other"),)),
        ("system_prompt", "Be careful.", {"value": None}, ()),
        ("tools", ["calculator"], {}, ()),
    ],
)
async def test_an_edit_without_its_value_changes_nothing(
    serve: Serve, field: str, value: Any, values: dict[str, Any], others: tuple[dict[str, Any], ...]
) -> None:
    model = script(routes(edits("old", field, **values), *others), concludes("I improved it."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await client.post("/v1/rooms", json={"name": "Old", field: value})
        answer = await send(client, "improve the room Old and make a room Other")
        if others:
            answer = await decide(client, url, answer)
        assert (await read_room(client, "old"))[field] == value
    assert answer["status"] == ("partial" if others else "error"), answer
    assert answer["outcomes"][0]["status"] == "failed"


@pytest.mark.row("S002-24", "S002-29")
async def test_a_value_that_an_earlier_request_makes_is_filled_in_when_it_is_known(serve: Serve) -> None:
    """The router cannot know the name of a tool that is still to be written."""
    read = (
        intent("tool_generation", "tool_generate", description="Convert A-12 to 12A.", request="write a tool"),
        creates("Lager"),
        intent("tool_generation", "tool_apply", request="put the tool into use", depends_on=[0]),
        edits("Lager", "tools", depends_on=[1, 2]),
    )
    given = {"room_id": "lager", "field": "tools", "change": "add", "value": [TOOL]}
    model = script(
        routes(*read),
        *ToolScript().rules(),
        acts("tool_apply", {"name": TOOL}, about="put the tool into use", times=1),
        acts("room_edit", given, about="edit tools", times=1),
        concludes("Done."),
    )
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        answer = await send(client, "write a tool, make a room Lager, put the tool into use and give it to the room")
        before: list[str] = []
        for _ in range(4):
            if answer["status"] != "awaiting_approval":
                break
            for asked in answer["approvals"]:
                before += [item["tool"] for item in asked["items"]]
            answer = await decide(client, url, answer)
        tools = (await read_room(client, "lager"))["tools"]
    assert answer["status"] == "succeeded", answer["outcomes"]
    assert before[-1] == "room_edit", "a value that the plan did not show is shown"
    assert {TOOL, "calculator"} <= {*tools}, "the new room keeps what it had"


@pytest.mark.parametrize(
    ("field", "change", "value"),
    [
        ("tools", "remove", ["calculator", "web_fetch"]),
        ("tools", "add", "rooms_list"),
        ("skills", "remove", "summarize"),
    ],
)
async def test_a_change_of_a_list_that_is_not_set_keeps_the_other_entries(
    serve: Serve, field: str, change: str, value: Any
) -> None:
    read = edits("open", field, value=value if isinstance(value, str) else json.dumps(value), change=change)
    async with (
        serve(script(routes(read), concludes("?"))) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        await client.post("/v1/rooms", json={"name": "Open"})
        asked = await send(client, f"please {change} {value} in the room open")
        assert f"Before: all {field} (no list)" in asked["answer"], asked["answer"]
        answer = await decide(client, url, asked)
        entries = (await read_room(client, "open"))[field]
    assert answer["status"] == "succeeded", answer
    named = value if isinstance(value, list) else [value]
    assert [one in entries for one in named] == [change == "add"] * len(named)
    assert {"tools": "current_time", "skills": "compare-documents"}[field] in entries


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"field": "collections", "value": "work", "change": "remove"}, "collections of the room is not set"),
        ({"field": "tools", "value": None}, "tools of the room open is all tools (no list) already"),
        ({"field": "tools", "value": "calculator", "change": "add"}, "has this already"),
        ({"field": "name", "value": "Open"}, 'name of the room open is `"Open"` already'),
        ({"field": "skills", "value": "no-such-skill", "change": "remove"}, "does not have this already"),
    ],
)
async def test_an_edit_that_changes_nothing_is_not_told_as_done(
    serve: Serve, args: dict[str, Any], reason: str
) -> None:
    call = {"tool": "room_edit", "args": {"room_id": "open", **args}}
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await client.post("/v1/rooms", json={"name": "Open"})
        version = (await client.get("/v1/rooms/open")).json()["version"]
        answer = await send(client, "change it", metadata={"tool_calls": [call]})
        if answer["status"] == "awaiting_approval":
            answer = await decide(client, url, answer)
        after = (await client.get("/v1/rooms/open")).json()["version"]
    assert (answer["status"], after) == ("error", version), answer
    assert reason in answer["answer"]


DOCS = {"name": "Docs", "description": "Searches documents"}
TOOLS = {"room_id": "Docs", "field": "tools", "value": ["search_knowledge"]}
KNOWLEDGE = {"room_id": "docs", "field": "knowledge", "value": True}


def acts_at_once(*calls: tuple[str, dict[str, Any]]) -> Rule:
    named = tuple(Call(tool, args, id=f"c{number}") for number, (tool, args) in enumerate(calls))
    return says("", to="subagent", calls=named, times=1)


def makes_docs(*calls: tuple[str, dict[str, Any]], then: str = "Made.") -> Any:
    read = intent("room_management", "create", name="Docs", request="create a room Docs for document search")
    return script(routes(read), acts_at_once(*calls), concludes(then))


ALL = (("room_create", DOCS), ("room_edit", TOOLS), ("room_edit", KNOWLEDGE))


@pytest.mark.row("S002-27", "S002-29")
async def test_several_changes_of_one_request_are_shown_and_allowed_once(serve: Serve) -> None:
    async with serve(makes_docs(*ALL)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, "create a room Docs with tools configured for document search")
        (question,) = asked["approvals"]
        assert [(item["tool"], item["args"]) for item in question["items"]] == [*ALL]
        for value in ("Searches documents", "search_knowledge", "knowledge"):
            assert value in asked["answer"], asked["answer"]
        assert (await client.get("/v1/rooms/docs")).status_code == 404, "nothing is begun before"
        done = await decide(client, url, asked)
        room = await read_room(client, "docs")
    assert (done["status"], done["approvals"]) == ("succeeded", []), done
    assert [change.partition(":")[0] for change in done["outcomes"][0]["changes"]] == [tool for tool, _ in ALL]
    assert (room["description"], room["tools"], room["knowledge"]) == ("Searches documents", ["search_knowledge"], True)


@pytest.mark.row("S002-31")
async def test_changes_that_are_rejected_together_leave_nothing_half_made(serve: Serve) -> None:
    async with serve(makes_docs(*ALL)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, "create a room Docs with tools configured for document search")
        done = await decide(client, url, asked, "reject", reason="not now")
        assert (await client.get("/v1/rooms/docs")).status_code == 404
    assert done["status"] == "cancelled", done
    assert "not now" in done["answer"]


@pytest.mark.parametrize("again", [(ALL[0],), (ALL[0], ALL[1])], ids=len)
async def test_what_is_allowed_is_made_beside_what_was_rejected_before(
    serve: Serve, again: tuple[tuple[str, dict[str, Any]], ...]
) -> None:
    other = ("room_create", {"name": "Other", "description": "Second room"})
    read = intent("room_management", "create", name="Docs", request="create a room Docs for document search")
    model = script(routes(read), acts_at_once(*ALL[:2]), acts_at_once(*again, other), concludes("Made."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, "create a room Docs with tools configured for document search")
        asked = await decide(client, url, asked, "reject", reason="not Docs, name it Other")
        (question,) = asked["approvals"]
        assert [(item["tool"], item["args"]) for item in question["items"]] == [other]
        done = await decide(client, url, asked)
        assert (await client.get("/v1/rooms/other")).status_code == 200, done
        assert (await client.get("/v1/rooms/docs")).status_code == 404
    assert (done["status"], done["approvals"]) == ("partial", []), done


@pytest.mark.row("S002-30")
async def test_what_follows_a_change_that_fails_is_not_made(serve: Serve) -> None:
    wrong = ("room_edit", {**TOOLS, "value": ["no_such_tool"]})
    async with serve(makes_docs(ALL[0], wrong, ALL[2])) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        done = await decide(client, url, await send(client, "create a room Docs for document search"))
        room = await read_room(client, "docs")
    assert (room["tools"], room["knowledge"]) == (None, False), "what was done before stays"
    assert done["status"] == "partial", done
    assert "no_such_tool" in done["outcomes"][0]["reason"]


async def test_nobody_is_asked_about_changes_of_which_one_is_not_complete(serve: Serve) -> None:
    incomplete = ("room_edit", {"room_id": "docs", "field": "tools"})
    async with serve(makes_docs(ALL[0], incomplete)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        answer = await send(client, "create a room Docs for document search")
        assert (await client.get("/v1/rooms/docs")).status_code == 404
    assert (answer["status"], answer["approvals"]) == ("error", []), answer
