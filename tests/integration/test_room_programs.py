"""Programs that rooms start: a privilege of the machine's owner, at every door that can name one."""

import asyncio
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.integration.test_rooms import client_of, create
from tests.integration.test_rooms_everywhere import call, run_tool
from tests.support.keys import bearer, created_key

MARK = "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"
VALUE = "value-that-nobody-is-shown"


def touching(file: Path, **fields: Any) -> dict[str, Any]:
    """A server whose program leaves a file, and then ends."""
    return {"command": sys.executable, "args": ["-c", MARK, str(file)], **fields}


async def seems_absent(file: Path) -> bool:
    """Whether the program was not started within the time in which a running gateway starts one."""
    for _ in range(30):
        if _is_there(file):
            return False
        await asyncio.sleep(0.1)
    return True


def _is_there(file: Path) -> bool:
    return file.exists()


async def appears(file: Path) -> bool:
    async with asyncio.timeout(40):
        while not _is_there(file):  # noqa: ASYNC110 - the rooms are followed by polling too
            await asyncio.sleep(0.1)
    return True


async def list_approvals(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    response = await client.get("/v1/approvals")
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["data"]
    return found


async def test_without_a_key_no_door_starts_a_program(serve: Serve, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with serve() as url, client_of(url) as client, Client(f"{url}/mcp") as mcp:
        server = touching(mark)
        version = (await create(client, name="Ours"))["version"]
        made = await client.post("/v1/rooms", json={"name": "Evil", "mcp_servers": {"notes": server}})
        changed = await client.patch("/v1/rooms/ours", json={"version": version, "mcp_servers": {"notes": server}})
        args = {"room_id": "ours", "name": "notes", "command": server["command"], "args": server["args"]}
        talked = await run_tool(url, "mcp_server_add", **args)
        by_mcp = await call(mcp, "mcp_server_add", **args)
        for refused in (made, changed):
            assert refused.status_code == 403, refused.text
            assert "privilege of the owner" in refused.json()["error"]["message"]
        assert talked["metadata"]["status"] != "awaiting_approval", "nobody is asked about what is refused"
        for text in (made.text, changed.text, json.dumps(talked), json.dumps(by_mcp)):
            assert "stepgate rooms" in text, text
        assert (await client.get("/v1/rooms/evil")).status_code == 404
        assert (await client.get("/v1/rooms/ours")).json()["room"]["mcp_servers"] == {}
        assert await list_approvals(client) == []
        assert await seems_absent(mark)


async def test_the_printed_command_does_it_on_the_machine(serve: Serve, tmp_path: Path) -> None:
    first, second = tmp_path / "it's 1", tmp_path / "2"
    async with serve() as url, client_of(url) as client:
        fields = {
            "name": "Our 'best' room", "system_prompt": "Be brief: yes.", "tools": ["calculator"],
            "mcp_servers": {"notes": touching(first, env={"NOTE": "a b"})},
        }  # fmt: skip
        refused = await client.post("/v1/rooms", json=fields)
        command = refused.json()["error"]["details"]["command"]
        assert command in refused.json()["error"]["message"]
        code, output = await asyncio.to_thread(stepgate, tmp_path, *shlex.split(command)[1:])
        assert code == 0, output
        assert await appears(first)
        (room,) = [one for one in (await client.get("/v1/rooms")).json()["data"] if one["name"] == fields["name"]]
        shown = (await client.get(f"/v1/rooms/{room['id']}")).json()
        assert shown["room"]["system_prompt"] == fields["system_prompt"]
        assert shown["room"]["mcp_servers"]["notes"]["env"] == {"NOTE": "a b"}
        change = {"version": shown["version"], "mcp_servers": {"notes": touching(second)}}
        refused = await client.patch(f"/v1/rooms/{room['id']}", json=change)
        assert refused.status_code == 403, "another argument is another program"
        command = refused.json()["error"]["details"]["command"]
        code, output = await asyncio.to_thread(stepgate, tmp_path, *shlex.split(command)[1:])
        assert code == 0, output
        assert await appears(second)
        refused = await client.post(f"/v1/rooms/{room['id']}/copy", json={"name": "Copy"})
        assert refused.status_code == 403, refused.text
        command = refused.json()["error"]["details"]["command"]
        code, output = await asyncio.to_thread(stepgate, tmp_path, *shlex.split(command)[1:])
        assert code == 0, output
        assert "notes" in (await client.get("/v1/rooms/copy")).json()["room"]["mcp_servers"]
        version = (await client.get(f"/v1/rooms/{room['id']}")).json()["version"]
        kept = await client.patch(f"/v1/rooms/{room['id']}", json={"version": version, "description": "Ours."})
        assert kept.status_code == 200, "a stored program needs nothing when other fields change"
        removed = await client.patch(
            f"/v1/rooms/{room['id']}", json={"version": kept.json()["version"], "mcp_servers": None}
        )
        assert removed.status_code == 200, "a program may be removed by anyone who edits the room"


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_one_question_shows_the_command_before_it_runs(serve: Serve, tmp_path: Path, decision: str) -> None:
    mark = tmp_path / "mark"
    server = touching(mark, env={"NOTES_STYLE": VALUE})
    server["args"][1] = f"{'harmless = 1; ' * 200}{MARK}"  # what runs is shown however far behind it stands
    async with serve(allow_programs=True) as url, client_of(url) as client:
        asked = await client.post("/v1/rooms", json={"name": "Ours", "mcp_servers": {"notes": server}})
        assert asked.status_code == 202, asked.text
        waiting = asked.json()
        (approval,) = waiting["approvals"]
        assert [one["id"] for one in await list_approvals(client)] == [approval["id"]], "one question"
        for part in (sys.executable, MARK, str(mark), "NOTES_STYLE"):
            assert part in approval["question"], part
        run = waiting["run_id"]
        events = await client.get(f"/v1/runs/{run}/events", headers={"accept": "application/json"})
        detail = await client.get(f"/v1/runs/{run}")
        for text in (asked.text, events.text, detail.text, (await client.get("/v1/approvals")).text):
            assert VALUE not in text, "values of environment variables are shown to nobody"
        assert (await client.get("/v1/rooms/ours")).status_code == 404
        assert await seems_absent(mark)
        decided = await client.post(f"/v1/runs/{run}/{decision}", json={"approvals": [approval["id"]]})
        assert decided.status_code == 202, decided.text
        if decision == "approve":
            assert await appears(mark)
            room = (await client.get("/v1/rooms/ours")).json()["room"]
            assert room["mcp_servers"]["notes"]["env"] == {"NOTES_STYLE": VALUE}
        else:
            assert await seems_absent(mark)
            assert (await client.get("/v1/rooms/ours")).status_code == 404
        again = await client.post(f"/v1/runs/{run}/approve", json={"approvals": [approval["id"]]})
        assert again.status_code == 409, "an approval is used once"


async def test_a_key_with_the_scope_admin_is_asked_too(serve: Serve, tmp_path: Path) -> None:
    mark, data = tmp_path / "mark", tmp_path / "data"
    async with serve(require_key="always") as url:
        admin = await created_key(data, "admin", owner="local", scopes="admin")
        other = await created_key(data, "other", owner="anna", scopes="admin")
        async with client_of(url, headers=bearer(admin)) as client, client_of(url, headers=bearer(other)) as anna:
            version = (await create(client, name="Ours"))["version"]
            change = {"version": version, "mcp_servers": {"notes": touching(mark)}}
            asked = await client.patch("/v1/rooms/ours", json=change)
            assert asked.status_code == 202, asked.text
            (approval,) = asked.json()["approvals"]
            run = asked.json()["run_id"]
            assert await list_approvals(anna) == []
            foreign = await anna.post(f"/v1/runs/{run}/approve", json={"approvals": [approval["id"]]})
            assert foreign.status_code == 404
            assert await seems_absent(mark)
            decided = await client.post(f"/v1/runs/{run}/approve", json={"approvals": [approval["id"]]})
            assert decided.status_code == 202
            assert await appears(mark)


async def test_a_room_that_changed_meanwhile_is_not_overwritten(serve: Serve, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with serve(allow_programs=True) as url, client_of(url) as client:
        version = (await create(client, name="Ours"))["version"]
        change = {"version": version, "mcp_servers": {"notes": touching(mark)}}
        asked = (await client.patch("/v1/rooms/ours", json=change)).json()
        between = await client.patch("/v1/rooms/ours", json={"version": version, "description": "Another."})
        assert between.status_code == 200
        ids = [one["id"] for one in asked["approvals"]]
        await client.post(f"/v1/runs/{asked['run_id']}/approve", json={"approvals": ids})
        assert await seems_absent(mark)
        assert (await client.get("/v1/rooms/ours")).json()["room"]["mcp_servers"] == {}


async def test_the_tool_behind_the_question_does_nothing_in_other_runs(serve: Serve) -> None:
    async with serve(allow_programs=True) as url, client_of(url) as client:
        told = await run_tool(url, "room_programs_allow", room_id="ours", servers=["notes"])
        assert "only the gateway calls this tool" in json.dumps(told)
        assert await list_approvals(client) == []


async def test_stored_programs_go_on_without_the_setting(serve: Serve, tmp_path: Path) -> None:
    mark, rooms = tmp_path / "mark", tmp_path / "rooms"
    rooms.mkdir()
    server = json.dumps(touching(mark))
    (rooms / "ours.yaml").write_text(f"name: Ours\nmcp_servers:\n  notes: {server}\n")
    async with serve(rooms_dir=rooms) as url, client_of(url):
        assert await appears(mark)
