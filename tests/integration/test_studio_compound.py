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


@pytest.mark.row("S002-27", "S002-28", "S002-29", "S002-30")
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


@pytest.mark.row("S002-31")
async def test_a_rejected_plan_begins_nothing(serve: Serve, tmp_path: Path) -> None:
    async with serve(script(routes(MAKE, COPY))) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, MESSAGE)
        done = await decide(client, url, asked, "reject", reason="not today")
    assert done["status"] == "cancelled", done
    assert "not today" in done["reason"]
    assert [one["status"] for one in done["outcomes"]] == ["refused", "refused"]
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


@pytest.mark.row("S002-30")
async def test_a_failure_in_the_middle_names_what_was_done_and_what_was_not(serve: Serve, tmp_path: Path) -> None:
    wrong = intent("room_management", "room_copy", room_id="nowhere", name="Copy", request="copy nowhere to Copy")
    after = intent("query", "rooms_list", request="which rooms there are", depends_on=[1])
    model = script(routes(MAKE, wrong, after), concludes("There is no such room."))
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await send(client, MESSAGE)
        done = await decide(client, url, asked)
    assert done["status"] == "partial", done
    assert [one["status"] for one in done["outcomes"]][:2] == ["done", "failed"]
    assert "nowhere" in done["outcomes"][1]["reason"]
    assert "blue-desk" in done["answer"]
    assert (tmp_path / "data" / "rooms" / "blue-desk.yaml").exists()


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
