"""A message that asks the studio for several things: one plan, approved as a whole, with every outcome told."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_studio_routing import approve
from tests.support.script import script
from tests.support.scripted_server import ScriptedServer
from tests.support.studio import acts, concludes, intent, routes
from tests.support.tool_scripts import ToolScript

MESSAGE = "make a room Blue Desk, copy it to Green Desk, and tell me which rooms there are"
MAKE = intent("room_management", "room_create", name="Blue Desk", request="make a room Blue Desk")
COPY = intent(
    "room_management", "room_copy", room_id="blue-desk", name="Green Desk", request="copy Blue Desk to Green Desk",
    depends_on=[0],
)  # fmt: skip
LIST = intent("query", "rooms_list", request="which rooms there are", depends_on=[1])


async def send(client: httpx.AsyncClient, message: str, **body: Any) -> dict[str, Any]:
    response = await client.post("/v1/studio/requests", json={"message": message, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def decide(
    client: httpx.AsyncClient, url: str, asked: dict[str, Any], decision: str = "approve", **body: Any
) -> dict[str, Any]:
    await approve(url, {"metadata": {"run_id": asked["run_id"], "approvals": asked["approvals"]}}, decision, **body)
    answer: dict[str, Any] = (await client.get(f"/v1/studio/requests/{asked['run_id']}")).json()
    return answer


@pytest.mark.usefixtures("each_profile")
@pytest.mark.row("S002-27", "S002-29")
async def test_several_requests_are_one_plan_that_is_approved_once(
    serve: Serve, tmp_path: Path, model_server: ScriptedServer
) -> None:
    async with serve(script(routes(MAKE, COPY, LIST))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, MESSAGE)
        assert asked["status"] == "awaiting_approval"
        (question,) = asked["approvals"]
        assert [item["tool"] for item in question["items"]] == [
            "spawn_room_agent", "spawn_room_agent", "spawn_query_agent",
        ]  # fmt: skip
        assert [item["changes"] for item in question["items"]] == [True, True, False]
        assert question["items"][1]["args"]["entities"] == {"room_id": "blue-desk", "name": "Green Desk"}
        assert asked["task_plan"]["steps"][1]["depends_on"] == [0]
        assert not (tmp_path / "data" / "rooms" / "blue-desk.yaml").exists(), "nothing is begun before"
        done = await decide(client, url, asked)
    assert done["status"] == "succeeded", done
    assert [one["status"] for one in done["outcomes"]] == ["done", "done", "done"]
    assert done["approvals"] == []
    assert (tmp_path / "data" / "rooms" / "green-desk.yaml").exists()
    for name in ("blue-desk", "green-desk", "knowledge"):
        assert name in done["answer"], "each outcome is told, also of those that others use"
    assert model_server.purposes() == ["router"]


@pytest.mark.usefixtures("each_profile")
@pytest.mark.row("S002-28")
async def test_a_plan_waits_through_a_restart(serve: Serve, tmp_path: Path, model_server: ScriptedServer) -> None:
    async with serve(script(routes(MAKE, COPY))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, MESSAGE)
    async with serve(script()) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        again = (await client.get(f"/v1/studio/requests/{asked['run_id']}")).json()
        assert (again["status"], again["approvals"]) == ("awaiting_approval", asked["approvals"])
        assert not list((tmp_path / "data" / "rooms").glob("*.yaml")), "nothing is begun by itself"
        done = await decide(client, url, again)
    assert done["status"] == "succeeded", done
    assert sorted(path.stem for path in (tmp_path / "data" / "rooms").glob("*.yaml")) == ["blue-desk", "green-desk"]
    assert model_server.purposes() == [], "nothing is read or planned again"


@pytest.mark.usefixtures("each_profile")
@pytest.mark.row("S002-30")
async def test_each_finished_step_is_an_event_with_its_result(serve: Serve) -> None:
    async with serve(script(routes(MAKE, COPY, LIST))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        done = await decide(client, url, await send(client, MESSAGE))
        log = await client.get(f"/v1/runs/{done['run_id']}/events", headers={"accept": "application/json"})
    events = log.json()["data"]
    finished = {one["step_id"]: one["data"]["output"]["text"] for one in events if one["type"] == "step.finished"}
    judged = {one["step_id"]: one["data"]["verdict"]["outcome"] for one in events if one["type"] == "step.judged"}
    assert "Room blue-desk (managed" in finished["s1"]
    assert "Room green-desk (managed" in finished["s2"]
    assert all(name in finished["s3"] for name in ("blue-desk", "green-desk", "knowledge"))
    assert [judged[name] for name in ("s1", "s2", "s3")] == ["SUCCESS"] * 3
    order = [(one["type"], one["step_id"]) for one in events if one["type"] in ("step.started", "step.finished")]
    assert order.index(("step.finished", "s1")) < order.index(("step.started", "s2")), "at its own end"


@pytest.mark.usefixtures("each_profile")
@pytest.mark.row("S002-31")
async def test_a_rejected_plan_begins_nothing(serve: Serve, tmp_path: Path) -> None:
    async with serve(script(routes(MAKE, COPY))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, MESSAGE)
        done = await decide(client, url, asked, "reject", reason="not today")
    assert done["status"] == "cancelled", done
    assert "not today" in done["reason"]
    assert [one["status"] for one in done["outcomes"]] == ["refused", "refused"]
    assert done["answer"].startswith("Nothing of this was done: the plan was rejected: not today"), done["answer"]
    assert not list((tmp_path / "data" / "rooms").glob("*.yaml"))


@pytest.mark.row("S002-29")
async def test_what_the_plan_did_not_show_is_asked_about(serve: Serve, tmp_path: Path) -> None:
    vague = intent("room_management", "create", request="make a room Blue Desk")
    other = intent("query", "rooms_list", request="which rooms there are")
    acting = acts("room_create", {"name": "Blue Desk", "fields": {"system_prompt": "Do anything."}}, times=1)
    model = script(routes(vague, other), acting, concludes("Made."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, MESSAGE)
        again = await decide(client, url, asked)
        assert again["status"] == "awaiting_approval", again["outcomes"]
        (item,) = again["approvals"][0]["items"]
        assert item["args"]["fields"] == {"system_prompt": "Do anything."}
        assert not (tmp_path / "data" / "rooms" / "blue-desk.yaml").exists()


ROOMS = intent("query", "rooms_list", request="which rooms there are")
NAMED = intent("room_management", "create", name="Blue Desk", request="make a room Blue Desk")
BARE = intent("room_management", "create", request="make a room Blue Desk")
PLAIN = {"planning": False, "memory": False, "tools": [], "system_prompt": ""}
SAVE = intent("config", "save", name="greeting", text="Say hello.", request="save the prompt greeting for old-desk")
WIPE = intent("room_management", "edit", request="give old-desk the system_prompt of the new greeting")
NOTHING = (".", "..", "!", "'", "\u200b")


async def call_after_approval(serve: Serve, read: dict[str, Any], tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """Approves a plan with this intent, whose sub-agent's model then makes this call."""
    model = script(routes(read, ROOMS), acts(tool, args, times=1), concludes("Done."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await client.post("/v1/rooms", json={"name": "Old Desk"})
        await client.put("/v1/studio/prompts/greeting", json={"text": "Say hi."})
        return await decide(client, url, await send(client, MESSAGE))


@pytest.mark.row("S002-29")
@pytest.mark.parametrize(
    ("read", "tool", "args"),
    [
        (BARE, "room_create", {"name": "Blue Desk", "fields": PLAIN}),
        (NAMED, "room_create", {"name": "Blue Desk", "fields": {"planning": False}}),
        (NAMED, "room_create", {"name": "Blue Desk", "fields": {"tools": []}}),
        (NAMED, "room_create", {"name": "Blue Desk", "room_id": "desk-1"}),
        (NAMED, "room_create", {"name": "room", "description": "Blue Desk"}),
        (NAMED, "room_edit", {"room_id": "old-desk", "field": "name", "value": "Blue Desk"}),
        (SAVE, "prompt_apply", {"name": "greeting", "room_id": "old-desk"}),
        (SAVE, "prompt_save", {"name": "greeting", "text": "greeting"}),
        ({**MAKE, "entities": [{"name": "name", "value": "  "}]}, "room_create", {"name": "make a room"}),
        *((WIPE, "room_edit", {"room_id": "old-desk", "field": "system_prompt", "value": one}) for one in NOTHING),
        (WIPE, "room_edit", {"room_id": "old-desk", "field": "system_prompt", "value": "s"}),
        (WIPE, "room_edit", {"room_id": "old-desk", "field": "system_prompt", "value": "new greetings"}),
    ],
)
async def test_more_other_or_emptier_values_than_the_plan_showed_are_asked_about(
    serve: Serve, read: dict[str, Any], tool: str, args: dict[str, Any]
) -> None:
    again = await call_after_approval(serve, read, tool, args)
    assert again["status"] == "awaiting_approval", again["outcomes"]
    (item,) = again["approvals"][0]["items"]
    assert (item["tool"], item["args"]) == (tool, args)


@pytest.mark.row("S002-29")
@pytest.mark.parametrize(
    ("read", "tool", "args"),
    [
        (BARE, "room_create", {"name": "Blue Desk"}),
        (BARE, "room_create", {"name": "Blue Desk", "description": "", "room_id": "", "fields": {}}),
        (NAMED, "room_create", {"name": "Blue Desk"}),
        (NAMED, "room_create", {"name": "Blue Desk", "room_id": "blue-desk"}),
        ({**NAMED, "action": "make a room"}, "room_create", {"name": "Blue Desk"}),
        (
            intent("room_management", "edit", room_id="Old Desk", description="Ours", request="describe Old Desk"),
            "room_edit",
            {"room_id": "old-desk", "field": "description", "value": "Ours"},
        ),
        (
            intent("room_management", "edit", room_id="old-desk", request="give Old Desk the tool calculator"),
            "room_edit",
            {"room_id": "old-desk", "field": "tools", "value": ["calculator"]},
        ),
        (SAVE, "prompt_save", {"name": "greeting", "text": "Say hello."}),
    ],
)
async def test_what_the_plan_showed_is_not_asked_about_again(
    serve: Serve, read: dict[str, Any], tool: str, args: dict[str, Any]
) -> None:
    done = await call_after_approval(serve, read, tool, args)
    assert done["status"] == "succeeded", done["outcomes"]


@pytest.mark.row("S002-29")
async def test_what_is_deleted_is_not_chosen_from_a_list_unseen(serve: Serve) -> None:
    """The plan names no room: the question about it cannot have shown which one a model takes from the list."""
    wipe = intent("room_management", "room_delete", request="delete the oldest one", depends_on=[0])
    model = script(routes(ROOMS, wipe), acts("room_delete", {"room_id": "old-desk"}, times=1), concludes("Deleted."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await client.post("/v1/rooms", json={"name": "Old Desk"})
        again = await decide(client, url, await send(client, "Which rooms are there? Delete the oldest one."))
        assert again["status"] == "awaiting_approval", again["outcomes"]
        assert (await client.get("/v1/rooms/old-desk")).status_code == 200


@pytest.mark.row("S002-24", "S002-29")
async def test_what_is_made_is_used_by_its_name(serve: Serve) -> None:
    """A message that makes a room and uses it cannot know its id."""
    make = intent("room_management", "room_create", name="Küche Süd", request="Lege den Raum Küche Süd an")
    edit = intent(
        "room_management", "room_edit", room_id="Küche Süd", field="tools", value="calculator",
        request="gib ihm den Rechner", depends_on=[0],
    )  # fmt: skip
    async with serve(script(routes(make, edit))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        done = await decide(client, url, await send(client, "Lege den Raum Küche Süd an und gib ihm den Rechner"))
        assert done["status"] == "succeeded", done["answer"]
        assert (await client.get("/v1/rooms/kuche-sud")).json()["room"]["tools"] == ["calculator"]


@pytest.mark.usefixtures("each_profile")
@pytest.mark.row("S002-30")
async def test_a_failure_in_the_middle_names_what_was_done_and_what_was_not(serve: Serve, tmp_path: Path) -> None:
    wrong = intent("room_management", "room_copy", room_id="nowhere", name="Copy", request="copy nowhere to Copy")
    after = intent("query", "rooms_list", request="which rooms there are", depends_on=[1])
    model = script(routes(MAKE, wrong, after), concludes("There is no such room."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, "make a room Blue Desk, copy nowhere to Copy, and tell me which rooms there are")
        done = await decide(client, url, asked)
    assert done["status"] == "partial", done
    assert [one["status"] for one in done["outcomes"]] == ["done", "failed", "not_run"]
    assert "needs the result of s2" in done["outcomes"][2]["reason"]
    assert "3. which rooms there are: not begun, because a step that it needs was not done." in done["answer"], done[
        "answer"
    ]
    assert "nowhere" in done["outcomes"][1]["reason"]
    assert "1. make a room Blue Desk: done." in done["answer"]
    assert "2. copy nowhere to Copy: not done." in done["answer"]
    assert (tmp_path / "data" / "rooms" / "blue-desk.yaml").exists()


async def test_a_last_request_that_fails_is_told_like_one_in_the_middle(serve: Serve) -> None:
    wrong = intent("room_management", "room_delete", room_id="nowhere", request="delete nowhere")
    async with serve(script(routes(MAKE, wrong), concludes("Hm."))) as url, httpx.AsyncClient(base_url=url) as client:
        done = await decide(client, url, await send(client, MESSAGE))
    assert done["status"] == "partial", done
    assert done["answer"].startswith("Not all of this was done: there is no room named 'nowhere'"), done["answer"]
    assert "1. make a room Blue Desk: done." in done["answer"]
    assert "2. delete nowhere: not done." in done["answer"]


@pytest.mark.usefixtures("each_profile")
@pytest.mark.row("S002-29")
async def test_a_reply_changes_the_plan_before_anything_is_done(serve: Serve, tmp_path: Path) -> None:
    renamed = intent("room_management", "room_create", name="Red Desk", request="make a room Red Desk")
    rooms = intent("query", "rooms_list", request="which rooms there are")
    model = script(routes(renamed, rooms, about="call it Red Desk"), routes(MAKE, COPY))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, MESSAGE)
        again = await decide(client, url, asked, "reply", text="call it Red Desk and do not copy it")
        assert again["status"] == "awaiting_approval", again
        assert again["approvals"][0]["items"][0]["args"]["entities"] == {"name": "Red Desk"}
        done = await decide(client, url, again)
    assert done["status"] == "succeeded", done
    assert [path.name for path in (tmp_path / "data" / "rooms").glob("*.yaml")] == ["red-desk.yaml"]


TOOL = "convert_part_number"
PARTS = (
    intent("room_management", "room_create", name="Parts", request="make a room Parts"),
    intent("tool_generation", "tool_generate", description="Convert A-12 to 12A.", request="write a tool for it"),
    intent("tool_generation", "tool_apply", name=TOOL, request="put it into use", depends_on=[1]),
    intent(
        "room_management", "room_edit", room_id="parts", field="tools", value=f'["{TOOL}"]', request="give it to Parts",
        depends_on=[0, 2],
    ),
)  # fmt: skip


async def read_room_tools(client: httpx.AsyncClient) -> Any:
    return (await client.get("/v1/rooms/parts")).json()["room"]["tools"]


@pytest.mark.row("S002-24", "S002-27", "S002-29")
async def test_a_room_is_made_with_a_tool_that_is_written_for_it(serve: Serve, model_server: ScriptedServer) -> None:
    model = script(routes(*PARTS), *ToolScript().rules())
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        asked = await send(client, "make a room Parts, write a tool for it, and give it to the room")
        assert len(asked["approvals"][0]["items"]) == 4, "one plan, shown as a whole"
        seen = await decide(client, url, asked)
        assert [one["status"] for one in seen["outcomes"]] == ["done", "done", "waiting", "waiting"], seen["outcomes"]
        assert "s3" in seen["outcomes"][3]["reason"], "it says what it waits for"
        (code,) = seen["approvals"]
        assert [item["tool"] for item in code["items"]] == ["tool_apply"]
        assert "async def convert_part_number" in seen["answer"], "what was made later is shown in full"
        done = await decide(client, url, seen)
        assert done["status"] == "succeeded", done
        assert [one["status"] for one in done["outcomes"]] == ["done"] * 4
        assert await read_room_tools(client) == [TOOL]
    assert model_server.purposes() == ["router", "tool", "tool", "tool"], "nothing is asked of the model again"


async def test_the_name_of_what_another_step_makes_is_not_asked_of_a_small_model(serve: Serve) -> None:
    message = "make a room Parts, write a tool that converts A-12 to 12A, and give it to the room"
    async with (
        serve(script(routes(*PARTS)), model_profile="small") as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        asked = await send(client, message)
        assert asked["status"] == "awaiting_approval", asked
        assert [item["args"]["entities"].get("name") for item in asked["approvals"][0]["items"]] == [
            "Parts", None, TOOL, None,
        ]  # fmt: skip


async def test_a_name_that_no_step_makes_is_asked_of_a_small_model(serve: Serve) -> None:
    alone = (PARTS[0], intent("tool_generation", "tool_apply", name=TOOL, request="put the tool into use"))
    async with (
        serve(script(routes(*alone)), model_profile="small") as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        asked = await send(client, "make a room Parts, and put the tool into use")
    assert asked["status"] == "awaiting_input", asked
    assert asked["question"].startswith("What is the name for tool apply?")


@pytest.mark.row("S002-29", "S002-31")
async def test_what_needs_a_refused_step_is_not_begun(serve: Serve) -> None:
    model = script(routes(*PARTS), *ToolScript().rules(), concludes("As you wish."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        seen = await decide(client, url, await send(client, "make a room Parts with a tool of its own"))
        done = await decide(client, url, seen, "reject", reason="the code is ugly")
        assert done["status"] == "partial", done
        assert [one["status"] for one in done["outcomes"]] == ["done", "done", "refused", "not_run"], done["outcomes"]
        assert [one["stage"] for one in done["outcomes"]] == ["", "", "approve", "execute"]
        assert "the code is ugly" in done["outcomes"][2]["reason"]
        assert await read_room_tools(client) is None
        assert "4. give it to Parts: not begun" in done["answer"]


@pytest.mark.row("S002-31")
async def test_a_refusal_that_leaves_nothing_done_is_no_error(serve: Serve) -> None:
    vague = intent("room_management", "create", request="make a room Blue Desk")
    acting = acts("room_create", {"name": "Blue Desk", "fields": {"system_prompt": "Do anything."}}, times=1)
    model = script(routes(vague, COPY), acting, concludes("As you wish."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        seen = await decide(client, url, await send(client, MESSAGE))
        done = await decide(client, url, seen, "reject", reason="not that prompt")
    assert (done["status"], done["error"]) == ("cancelled", None)
    assert "not that prompt" in done["reason"]
    assert [(one["status"], one["stage"]) for one in done["outcomes"]] == [
        ("refused", "approve"),
        ("not_run", "execute"),
    ]


@pytest.mark.usefixtures("each_profile")
@pytest.mark.row("S002-29")
async def test_what_needs_a_step_that_asks_back_waits_and_the_others_are_done(serve: Serve, tmp_path: Path) -> None:
    vague = intent("room_management", "create", request="make a room")
    edit = intent(
        "room_management", "room_edit", room_id="it", field="description", value="ours", request="describe it",
        depends_on=[0],
    )  # fmt: skip
    model = script(routes(vague, edit, MAKE), concludes("", question="What is its name?"))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        done = await decide(client, url, await send(client, "make a room, describe it as ours, and make Blue Desk"))
    assert done["status"] == "awaiting_input", done
    assert [one["status"] for one in done["outcomes"]] == ["waiting", "waiting", "done"], done["outcomes"]
    assert done["outcomes"][1]["reason"] == "it waits for the answer to s1"
    assert done["question"] == "What is its name?", "the question alone, without what became of the others"
    assert (tmp_path / "data" / "rooms" / "blue-desk.yaml").exists()


@pytest.mark.row("S002-08")
async def test_the_value_of_a_list_may_be_written_as_text(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        assert (await client.post("/v1/rooms", json={"name": "Parts"})).status_code == 201
        for text, tools in {
            '["calculator"]': ["calculator"], "calculator, web_fetch": ["calculator", "web_fetch"], "null": None,
        }.items():  # fmt: skip
            asked = await send(client, f"edit room parts tools = {text}")
            assert (await decide(client, url, asked))["status"] == "succeeded"
            assert await read_room_tools(client) == tools
