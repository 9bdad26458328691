"""Two owners of one gateway: the tools of one do not exist for the other, in no error message and in no way."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from agent.core.models import JsonObject, Room
from gateway.features.studio.engine.generated_tools.version_store import ToolVersionStore
from tests.integration.conftest import Serve
from tests.integration.test_engine import write_skill
from tests.integration.test_forks import World, world
from tests.integration.test_generated_tools import REQUEST
from tests.integration.test_mcp_sessions import ACCEPT, open_session
from tests.integration.test_owners import statements
from tests.support.conformance_wire import modern
from tests.support.keys import SCOPES, bearer, created_key
from tests.support.script import plans, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.tool_scripts import ToolScript, make_version
from tests.support.tools import returning

HIDDEN = "anna_ledger"
Owners = dict[str, dict[str, str]]


@asynccontextmanager
async def owned(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[tuple[World, Owners]]:
    """A gateway in which a tool is anna's, and the headers of the keys of anna and bert."""
    headers = {
        name: bearer(await created_key(tmp_path / "data", "k", owner=name, scopes=f"{SCOPES},rooms"))
        for name in ("anna", "bert")
    }
    async with world(tmp_path, server, says("Noted."), require_key="always") as made:
        made.stepgate.registry.register(returning(HIDDEN, "42 crowns", owner="anna"))
        yield made, headers


async def _call_over_mcp(client: httpx.AsyncClient, key: str, name: str) -> str:
    """The answer to a call of a tool by its name, without the name."""
    session = await open_session(client, key)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": {"x": "1"}}}
    headers = ACCEPT | bearer(key) | {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}
    return (await client.post("/mcp", json=call, headers=headers)).text.replace(name, "NAME")


async def test_a_near_name_does_not_find_the_tool_of_another_owner(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    near = HIDDEN[:-1]
    bodies: list[tuple[str, JsonObject]] = [
        ("/v1/agent", {"prompt": "hi", "metadata": {"tools": [near]}}),
        ("/v1/agent", {"prompt": "", "metadata": {"tool_calls": [{"tool": near, "args": {}}]}}),
        ("/v1/rooms", {"name": "Desk", "tools": [near]}),
        ("/v1/rooms", {"name": "Desk", "required_tools": [near]}),
    ]
    async with owned(tmp_path, model_server) as (made, headers):
        for path, body in bodies:
            refused = await made.client.post(path, json=body, headers=headers["bert"])
            assert (refused.status_code, HIDDEN in refused.text) == (400, False), refused.text
        path, body = bodies[0]
        helped = await made.client.post(path, json=body, headers=headers["anna"])
        assert f"did you mean {HIDDEN}?" in helped.text, "the owner is helped as ever"


async def test_the_tool_of_another_owner_is_refused_like_one_that_is_not_there(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    async with owned(tmp_path, model_server) as (made, headers):
        for path, form in (
            ("/v1/agent", '{"prompt": "hi", "metadata": {"tools": ["NAME"]}}'),
            ("/v1/agent", '{"prompt": "", "metadata": {"tool_calls": [{"tool": "NAME", "args": {"x": "1"}}]}}'),
            ("/v1/rooms", '{"name": "Desk", "tools": ["NAME"]}'),
        ):
            seen = []
            for name in (HIDDEN, "zebra_crossing"):
                body = json.loads(form.replace("NAME", name))
                refused = await made.client.post(path, json=body, headers=headers["bert"])
                assert refused.status_code == 400, refused.text
                seen.append(refused.json()["error"]["message"].replace(name, "NAME"))
            assert seen[0] == seen[1]
        key = headers["bert"]["authorization"].removeprefix("Bearer ")
        over_mcp = [await _call_over_mcp(made.client, key, name) for name in (HIDDEN, "zebra_crossing")]
        assert over_mcp[0] == over_mcp[1]
        called = {"prompt": "", "metadata": {"tool_calls": [{"tool": HIDDEN, "args": {"x": "1"}}]}}
        own = await made.client.post("/v1/agent", json=called, headers=headers["anna"])
        assert "42 crowns" in own.text


async def test_headers_are_not_compared_with_the_arguments_of_a_tool_of_another_owner(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    """The SDK does that before any handler runs, and refuses in its own words."""
    customer = {"customer": {"type": "string", "x-mcp-header": "Customer"}}
    async with owned(tmp_path, model_server) as (made, headers):
        made.stepgate.registry.register(returning("anna_orders", "none", owner="anna", properties=customer))
        answers = {}
        for owner, name in (("bert", "anna_orders"), ("bert", "zebra_crossing"), ("anna", "anna_orders")):
            call = {"name": name, "arguments": {"customer": "7"}}
            answer = await modern(str(made.client.base_url), "tools/call", call, headers[owner])
            answers[owner, name] = json.dumps(answer).replace(name, "NAME")
    assert answers["bert", "anna_orders"] == answers["bert", "zebra_crossing"]
    assert "Mcp-Param-Customer" in answers["anna", "anna_orders"], "the owner's headers are compared as ever"


async def test_a_made_tool_may_not_name_the_tool_of_another_owner(tmp_path: Path, model_server: ScriptedServer) -> None:
    async with owned(tmp_path, model_server) as (made, headers):
        refusals = []
        for name in (HIDDEN, "zebra_crossing"):
            model_server.load(script(*ToolScript(permissions={"tools": [name]}).rules()))
            refused = await made.client.post("/v1/studio/tools", json=REQUEST, headers=headers["bert"], timeout=120)
            refusals.append((refused.status_code, refused.text.count(f"there is no tool '{name}'")))
    assert refusals[0] == refusals[1]


async def test_a_room_that_names_the_tool_of_another_owner_does_not_hold_it(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    async with owned(tmp_path, model_server) as (made, headers):
        async with statements(tmp_path, {}) as database:
            store = ToolVersionStore(database, time.time)
            version = await store.add(make_version(owner="anna"))
            await store.activate(version, by="anna", sha256=version.sha256)
        desk = Room(id="bert-desk", owner="bert", tools=("convert_part_number",))
        made.stepgate.rooms.replace([*made.stepgate.rooms, desk])
        removed = await made.client.delete("/v1/studio/tools/convert_part_number", headers=headers["anna"])
        assert (removed.status_code < 300, "bert-desk" in removed.text) == (True, False), removed.text


async def test_no_made_tool_takes_the_name_of_a_tool_of_a_server(tmp_path: Path, model_server: ScriptedServer) -> None:
    async with owned(tmp_path, model_server) as (made, headers):
        wanted = {"description": "List the orders.", "name": "orders__list"}
        refused = await made.client.post("/v1/studio/tools", json=wanted, headers=headers["bert"])
        assert (refused.status_code, "those of the tools of MCP servers" in refused.text) == (400, True), refused.text
        registry = made.stepgate.registry
        registry.register(returning("anna__orders", "none", owner="anna"))
        other = await made.client.post(
            "/v1/studio/tools", json=wanted | {"name": "anna__orders"}, headers=headers["bert"]
        )
        assert (other.status_code, "already" in other.text) == (400, False), other.text
        own = returning("orders__list_a1b2c3", "none", owner="anna")
        own._spec = replace(own.spec, room="anna-desk", room_name="orders__list")
        registry.register(own, returning("orders__list", "all of bert's", owner="bert"))
        desk = Room(id="anna-desk", owner="anna")
        assert registry.resolve_in_room(desk, "orders__list") == "orders__list_a1b2c3", "one that was made before"


async def test_a_recipe_is_tried_with_the_tools_of_the_key_that_saves_it(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    one = {"name": "part", "type": "text", "description": "the part", "value": "part 7", "other": "part 8"}
    named = says(json.dumps({"name": "look", "description": "Looks up.", "parameters": [one]}), to="tool")
    plan = plans({"tool": "look_up", "inputs": {"x": "part 7"}}, {"tool": "completion"}, about="part 7")
    async with world(tmp_path, model_server, plan, named, says("It is.", to="completion")) as made:
        path = f"/v1/runs/{(await made.run('look up part 7'))['metadata']['run_id']}/recipe"
        wanted: JsonObject = {"try_values": {"part": "the safe"}}
        for tools, status in (("recipe_save", 409), ("recipe_save,look_up", 201)):
            key = bearer(await created_key(tmp_path / "data", "x", tools=tools))
            calls = len(made.tools["look_up"].calls)
            saved = await made.client.post(path, json=wanted, headers=key)
            assert saved.status_code == status, saved.text
            assert (len(made.tools["look_up"].calls) > calls) == (status == 201)


async def test_folders_of_skills_are_named_to_who_administers(serve: Serve, tmp_path: Path) -> None:
    first, second = (write_skill(tmp_path / name, "helper") for name in ("first", "second"))
    async with serve(skills_dirs=(first, second)) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for scopes, is_named in ((SCOPES, False), (f"{SCOPES},admin", True)):
            key = bearer(await created_key(tmp_path / "data", scopes[-5:], owner="anna", scopes=scopes))
            listed = await client.get("/v1/skills", headers=key)
            assert (str(tmp_path) in listed.text) is is_named, listed.text
