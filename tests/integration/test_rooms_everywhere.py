"""Rooms by the command line, MCP clients and plans: the same rooms and the same refusals as over HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from agent.core.errors import ToolDeniedError
from agent.storage.api_keys import KeyStore
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from agent.tools import ToolContext
from gateway.features.studio.bootstrap_studio import build_room_authorizer
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.support.approvals import ids_of
from tests.support.keys import bearer, created_key
from tests.support.processes import GatewayProcess
from tests.support.script import plans, says, script

STRICT = """\
name: Strict
approval: side_effects
supervision: checks
tools: [rooms_list, room_show, room_create, room_edit, room_delete]
"""


@pytest.mark.row("S002-05", "S002-36")
def test_the_command_line_manages_rooms(tmp_path: Path) -> None:
    code, output = stepgate(tmp_path, "rooms", "create", "Support Team", "tools=[calculator]", "description=Sums: all")
    assert code == 0, output
    path = tmp_path / "data" / "rooms" / "support-team.yaml"
    path.write_text("# ours\n" + path.read_text())
    code, output = stepgate(tmp_path, "rooms", "show", "support-team", "--json")
    shown = json.loads(output)
    assert shown["room"]["description"] == "Sums: all"
    code, output = stepgate(
        tmp_path, "rooms", "edit", "support-team", "budgets.max_steps=5", "description=", "--version", shown["version"]
    )
    assert code == 0, output
    assert path.read_text().startswith("# ours\nname: Support Team\n")
    assert "max_steps: 5" in path.read_text()
    assert "description" not in path.read_text()
    code, output = stepgate(tmp_path, "rooms", "edit", "support-team", "persona=x", "--version", shown["version"])
    assert (code, "read it again" in output) == (1, True)
    assert stepgate(tmp_path, "rooms", "copy", "stepgate", "--id", "ours")[0] == 0
    code, output = stepgate(tmp_path, "rooms", "list")
    origins = {line.split()[0]: line.split()[1] for line in output.splitlines()}
    assert {name: origins[name] for name in ("chat", "ours", "support-team")} == {
        "chat": "shipped", "ours": "managed", "support-team": "managed"
    }  # fmt: skip
    assert stepgate(tmp_path, "rooms", "delete", "support-team") == (0, "deleted support-team")
    assert not path.exists()


def test_the_operator_marks_a_room_of_a_person_as_managed(tmp_path: Path) -> None:
    rooms = tmp_path / "data" / "rooms"
    rooms.mkdir(parents=True)
    (rooms / "desk.yaml").write_text("name: Desk\n")
    code, output = stepgate(tmp_path, "rooms", "edit", "desk", "persona=brief")
    assert (code, "--managed" in output) == (1, True)
    assert stepgate(tmp_path, "rooms", "edit", "desk", "--managed")[0] == 0
    assert (rooms / "desk.yaml").read_text() == "name: Desk\n"
    assert stepgate(tmp_path, "rooms", "edit", "desk", "persona=brief")[0] == 0
    assert (rooms / "desk.yaml").read_text() == "name: Desk\npersona: brief\n"


@pytest.mark.row("S002-36")
def test_check_and_doctor_name_what_is_wrong_and_the_start_refuses_it(tmp_path: Path) -> None:
    rooms = tmp_path / "data" / "rooms"
    rooms.mkdir(parents=True)
    assert stepgate(tmp_path, "rooms", "check")[0] == 0
    (rooms / "desk.yaml").write_text("name: Desk\ntools: [calcluator]\nskills: [nope]\n")
    code, output = stepgate(tmp_path, "rooms", "check", str(rooms / "desk.yaml"))
    assert code == 1
    assert "tools: there is no tool 'calcluator'; did you mean calculator?" in output
    assert "skills: there is no skill 'nope'" in output
    (rooms / "desk.yaml").write_text("name: [x")
    code, output = stepgate(tmp_path, "rooms", "check")
    assert (code, "FAIL desk" in output, "ok   stepgate" in output) == (1, True, True)
    code, output = stepgate(tmp_path, "doctor")
    assert (code, "FAIL room desk: not valid YAML" in output) == (1, True)
    code, output = stepgate(tmp_path, "serve", port="0")
    assert code == 1
    assert "desk.yaml: not valid YAML" in output


def test_a_running_gateway_serves_what_the_command_line_changes(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data") as gateway, httpx.Client(base_url=gateway.url, timeout=30) as client:
        assert stepgate(tmp_path, "rooms", "create", "Ours", "persona=brief")[0] == 0
        assert client.get("/v1/rooms/ours").json()["room"]["persona"] == "brief"
        assert "ours" in [card["id"] for card in client.get("/v1/models").json()["data"]]
        assert stepgate(tmp_path, "rooms", "delete", "ours")[0] == 0
        assert client.get("/v1/rooms/ours").status_code == 404


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    return result.structured_content if not result.is_error else result.content[0].text  # type: ignore[union-attr]


@pytest.mark.row("S002-05", "S002-07", "S002-08")
async def test_mcp_clients_manage_rooms(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url, Client(f"{url}/mcp") as client:
        assert "a room needs a `name`" in await call(client, "room_create")
        created = await call(client, "room_create", name="Ours", fields={"tools": ["calculator"]})
        assert (created["id"], created["origin"]) == ("ours", "managed")
        edited = await call(client, "room_edit", room_id="ours", field="budgets.max_steps", value=4)
        assert "max_steps: 4" in edited["yaml"]
        refused = await call(client, "room_edit", room_id="ours", field="colour", value="red")
        assert "there is no field 'colour'; allowed: " in refused
        assert "stage: fields" in refused
        stale = await call(client, "room_edit", room_id="ours", field="persona", value="x", version=created["version"])
        assert "read it again" in stale
        copied = await call(client, "room_copy", room_id="stepgate", name="Second", new_id="second")
        assert (copied["id"], copied["origin"]) == ("second", "managed")
        assert (await call(client, "room_delete", room_id="second"))["deleted"] == "second"
        assert "shipped and read only" in await call(client, "room_delete", room_id="stepgate")
        assert "ours" in [room["id"] for room in (await call(client, "rooms_list"))["rooms"]]
        assert (await call(client, "room_show", room_id="ours"))["yaml"] == edited["yaml"]
        assert edited["before"] == 12, "the default, so that it can be set again"
        assert await call(client, "room_delete", room_id="ours") == {
            "deleted": "ours", "yaml": edited["yaml"], "from_outside": False,
        }  # fmt: skip
        assert list((tmp_path / "data" / "rooms").iterdir()) == []


async def run_tool(base: str, tool: str, /, room: str | None = None, key: str = "", **args: Any) -> dict[str, Any]:
    """The response to an explicit call of a tool."""
    body = {"metadata": {"tool_calls": [{"tool": tool, "args": args}]}, "room": room}
    async with httpx.AsyncClient(base_url=base, timeout=30, headers=bearer(key) if key else {}) as client:
        answered: dict[str, Any] = (await client.post("/v1/agent", json=body)).json()
        return answered


async def test_a_person_is_asked_where_the_room_asks(serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "strict.yaml").write_text(STRICT)
    model = script(
        plans({"tool": "room_create", "inputs": {"name": "Ours"}}, {"tool": "completion"}),
        says("The room Ours is ready.", to="completion"),
    )
    async with serve(model, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        body = {"prompt": "Make a room called Ours, and summarise it.", "room": "strict"}
        asked = (await client.post("/v1/agent", json=body)).json()
        assert asked["metadata"]["status"] == "awaiting_approval", asked
        assert not (rooms / "ours.yaml").exists()
        run = f"/v1/runs/{asked['metadata']['run_id']}"
        approved = await client.post(f"{run}/approve", json={"approvals": ids_of(asked)})
        assert approved.is_success, approved.text
        async with asyncio.timeout(20):
            while (await client.get("/v1/models/ours")).status_code != 200:  # noqa: ASYNC110 - the run goes on by itself
                await asyncio.sleep(0.05)
        assert (rooms / "ours.yaml").exists()


async def test_an_expired_key_edits_no_room_by_a_tool(tmp_path: Path) -> None:
    """A run may outlive the key that began it."""
    store, now = await open_sqlite(tmp_path / "db"), [1_800_000_000.0]
    keys = KeyStore(SqliteClient(store.database), lambda: now[0])
    key, _ = await keys.create("anna", "laptop", ["rooms"], expires_at=now[0] + 10)
    authorize = build_room_authorizer(keys, allow_programs=False)
    context = ToolContext(run_id="run_1", owner="anna", api_key_id=key.id)
    try:
        assert (await authorize(context)).owner == "anna"
        now[0] += 11
        with pytest.raises(ToolDeniedError, match="only by API keys"):
            await authorize(context)
    finally:
        await store.close()


async def test_a_key_without_the_scope_edits_no_room_by_a_tool(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serve(require_key="always") as url:
        plain = await created_key(data, "plain", owner="local", scopes="chat,agent,approve,mcp")
        admin = await created_key(data, "admin", owner="anna", scopes="admin")
        for tool, args in (("rooms_list", {}), ("room_create", {"name": "Ours"})):
            refused = await run_tool(url, tool, key=plain, **args)
            assert "only by API keys with the scope 'rooms'" in json.dumps(refused)
        assert not (data / "rooms").exists()
        await run_tool(url, "room_create", key=admin, name="Ours")
        assert "owner: anna" in (data / "rooms" / "ours.yaml").read_text()
