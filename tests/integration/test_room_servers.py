"""MCP servers of a room's own: usable there only, at allowed addresses only, with credentials of the room's owner."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from mcp_tools.client.remote_tool import make_local_tool_name
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.integration.test_rooms import client_of, create
from tests.integration.test_rooms_everywhere import call, run_tool
from tests.support import warm
from tests.support.keys import bearer, created_key
from tests.support.mcp_client import offered
from tests.support.script import decides, needs, plans, says, script, wants

REPEAT = make_local_tool_name("notes@ours", "repeat")
"""The name of the renamed tool `echo` of the server `notes` of the room `ours`."""


def _with_tools(**tools: Any) -> dict[str, Any]:
    return {"notes": {"url": "https://x.example", "tools": tools}}


def stdio() -> dict[str, Any]:
    """The fields of a room's server that a command starts."""
    entry = warm.server("tests.support.mcp_server_basic", "stdio")
    return {name: entry[name] for name in ("command", "args", "env") if name in entry}


async def create_with_program(client: httpx.AsyncClient, **fields: Any) -> None:
    """Creates a room whose server is a program, as a person allows it. The gateway has `allow_programs`."""
    asked = await client.post("/v1/rooms", json=fields)
    assert asked.status_code == 202, asked.text
    run, ids = asked.json()["run_id"], [one["id"] for one in asked.json()["approvals"]]
    assert (await client.post(f"/v1/runs/{run}/approve", json={"approvals": ids})).is_success

    async def is_there() -> bool:
        rooms = (await client.get("/v1/rooms")).json()["data"]
        return any(room["name"] == fields["name"] for room in rooms)

    await wait_until(is_there)


async def wait_until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(40):
        while not await holds():  # noqa: ASYNC110 - the rooms are followed by polling too
            await asyncio.sleep(0.1)


async def tool_names(client: httpx.AsyncClient) -> list[str]:
    return [tool["name"] for tool in (await client.get("/v1/tools")).json()["data"]]


async def find_echo(client: httpx.AsyncClient, room: str) -> str:
    """The name of the tool `echo` of that room's server, once it is there."""
    found = list[str]()

    async def is_there() -> bool:
        found[:] = [name for name in await tool_names(client) if f"_{room}__echo" in name]
        return bool(found)

    await wait_until(is_there)
    return found[0]


@pytest.mark.row("S002-51")
@pytest.mark.parametrize("profile", ["capable", "small"])
async def test_inside_its_room_a_servers_tool_has_its_plain_name(serve: Serve, profile: str) -> None:
    step = {"tool": "notes__echo", "inputs": {"text": "planned"}}
    thinking = plans(step) if profile == "capable" else decides(step, missing=["echo it"], times=1)
    model = script(needs("notes__echo"), wants(), thinking, decides(), says("Echoed.", to="completion"))
    options = {"allow_programs": True, "model_profile": profile}
    async with serve(model, **options) as url, client_of(url) as client:
        for room in ("Ours", "Theirs"):  # both call it notes; outside, their tools have other names
            await create_with_program(client, name=room, tools=["calculator"], mcp_servers={"notes": stdio()})
            await find_echo(client, room.lower())
        await create(client, name="Other")
        for room in ("ours", "theirs"):
            said = await run_tool(url, "notes__echo", room=room, text=f"for {room}")
            assert f"echo: for {room}" in json.dumps(said), said
            (called,) = said["metadata"]["tool_results"]
            assert called["tool"] == await find_echo(client, room), "its own, not the other room's"
        only = {"prompt": "echo planned", "room": "ours", "metadata": {"tools": ["notes__echo"]}}
        planned = (await client.post("/v1/agent", json=only)).json()
        assert "echo: planned" in json.dumps(planned["metadata"]["tool_results"]), planned
        refused = await run_tool(url, "notes__echo", room="other", text="hello")
        assert refused["error"]["error_code"] == "ERR_BAD_REQUEST", refused


@pytest.mark.row("S002-51")
async def test_a_rooms_server_is_usable_in_this_room_only(serve: Serve) -> None:
    async with serve(allow_programs=True) as url, client_of(url) as client:
        await create_with_program(client, name="Ours", tools=["calculator"], mcp_servers={"notes": stdio()})
        await create(client, name="Other")
        echo = await find_echo(client, "ours")
        said = await run_tool(url, echo, room="ours", text="hello")
        assert "echo: hello" in json.dumps(said), said
        for room in ("other", "stepgate"):
            refused = await run_tool(url, echo, room=room, text="hello")
            assert "echo: hello" not in json.dumps(refused)
        graph = (await client.get("/v1/studio/graph")).json()
        assert {"source": "room:ours", "kind": "has", "target": "server:notes@ours"} in graph["links"]
        assert {"source": "room:ours", "kind": "uses", "target": f"tool:{echo}"} in graph["links"]
        assert {"source": "room:other", "kind": "may use", "target": f"tool:{echo}"} not in graph["links"]
        async with Client(f"{url}/mcp/all") as mcp:
            assert echo not in [tool.name for tool in (await mcp.list_tools()).tools]
        assert (await client.delete("/v1/rooms/ours")).status_code == 204

        async def is_gone() -> bool:
            return echo not in await tool_names(client)

        await wait_until(is_gone)


@pytest.mark.parametrize(
    ("tools", "asked"),
    [
        ({}, True),
        ({"arguments": {"echo.text": "where"}}, True),
        ({"arguments": {"echo.text": "content"}}, False),
        ({"arguments": {"echo.text": "content"}, "approve": ["echo"]}, True),
    ],
)
async def test_roles_of_a_rooms_server_decide_what_is_asked(
    serve: Serve, tmp_path: Path, tools: Any, asked: bool
) -> None:
    model = script(
        plans(
            {"id": "s1", "tool": "read_file", "inputs": {"path": "notes.md"}},
            {"id": "s2", "tool": REPEAT, "inputs": {"text": "$s1.output.text"}},
            {"id": "s3", "tool": "completion"},
        ),
        says("It is done.", to="completion"),
    )
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.md").write_text("the harbour is closed")
    with offered("mcp_server_basic", "http") as entry:
        host = entry["url"].split("/")[2]
        async with (
            serve(model, fetch_allow_hosts=(host,), file_roots=(tmp_path / "files",)) as url,
            client_of(url) as client,
        ):
            server = {"url": entry["url"], "tools": {"rename": {"echo": "repeat"}, **tools}}
            fields = {"tools": ["read_file"], "effects": "ask_where", "supervision": "checks", "memory": False}
            await create(client, name="Ours", mcp_servers={"notes": server}, **fields)

            async def is_there() -> bool:
                return REPEAT in await tool_names(client)

            await wait_until(is_there)
            said = (await client.post("/v1/agent", json={"prompt": "pass on notes.md", "room": "ours"})).json()
            assert (said["metadata"]["status"] == "awaiting_approval") == asked, said
            stored = (await client.get("/v1/rooms/ours")).json()["room"]["mcp_servers"]["notes"]
            assert stored["tools"].get("arguments", {}) == tools.get("arguments", {})


@pytest.mark.row("S002-51")
async def test_servers_by_talking_ask_a_person_connect_and_are_removed(serve: Serve) -> None:
    with offered("mcp_server_basic", "http") as entry:
        host = entry["url"].split("/")[2]
        async with serve(fetch_allow_hosts=(host,)) as url, client_of(url) as client:
            await create(client, name="Ours")
            asked = await run_tool(url, "mcp_server_add", room_id="ours", name="notes", url=entry["url"])
            assert asked["metadata"]["status"] == "awaiting_approval", asked
            assert (await client.get("/v1/rooms/ours")).json()["room"]["mcp_servers"] == {}
            run, ids = asked["metadata"]["run_id"], [one["approval_id"] for one in asked["metadata"]["approvals"]]
            assert (await client.post(f"/v1/runs/{run}/approve", json={"approvals": ids})).is_success
            echo = await find_echo(client, "ours")
            async with Client(f"{url}/mcp") as mcp:
                listed = (await call(mcp, "mcp_servers_list", room_id="ours"))["servers"]
                assert [(one["name"], one["state"].split(",")[0]) for one in listed] == [("notes", "ready")]
                tested = await call(mcp, "mcp_server_test", room_id="ours", name="notes")
                assert (tested["is_ready"], echo in tested["tools"]) == (True, True)
                assert "has no MCP server 'gone'" in await call(mcp, "mcp_server_test", room_id="ours", name="gone")
                again = await call(mcp, "mcp_server_add", room_id="ours", name="notes", url=entry["url"])
                assert "has an MCP server 'notes' already" in again
                removed = await call(mcp, "mcp_server_remove", room_id="ours", name="notes")
                assert removed == {"room_id": "ours", "removed": "notes"}
            assert echo not in await tool_names(client)
            assert "mcp_servers" not in (await client.get("/v1/rooms/ours")).json()["yaml"]


async def test_a_server_that_does_not_answer_is_told_and_stops_nothing(serve: Serve) -> None:
    async with serve(allow_programs=True) as url, client_of(url) as client, Client(f"{url}/mcp") as mcp:
        broken = {"command": sys.executable, "args": ["-c", "raise SystemExit('no such thing')"]}
        await create_with_program(client, name="Ours", tools=["calculator"], mcp_servers={"broken": broken})
        tested = await call(mcp, "mcp_server_test", room_id="ours", name="broken")
        assert (tested["is_ready"], "down" in tested["state"]) == (False, True)
        assert "no such thing" in tested["state"]
        run = await client.post("/v1/agent", json={"prompt": "What is 6*7?", "room": "ours"})
        assert "42" in run.json()["response"]
        ready = await client.get("/ready")
        assert (ready.status_code, "broken@ours" in ready.text) == (200, False)


async def test_an_internal_address_is_not_connected_to(serve: Serve) -> None:
    with offered("mcp_server_basic", "http") as entry:
        async with serve() as url, client_of(url) as client, Client(f"{url}/mcp") as mcp:
            await create(client, name="Ours", mcp_servers={"notes": {"url": entry["url"]}})
            tested = await call(mcp, "mcp_server_test", room_id="ours", name="notes")
            assert tested["is_ready"] is False
            assert "AGENT_FETCH_ALLOW_HOSTS" in tested["state"], tested["state"]


IMPOSSIBLE_SERVERS: list[tuple[Any, str]] = [
    ({"notes": {}}, "mcp_servers.notes.url: give either a `url` or a `command`"),
    ({"notes": {"url": "https://x.example", "command": "x"}}, "give either a `url` or a `command`"),
    ({"notes": {"url": "ftp://x.example"}}, "it must begin with http:// or https://"),
    ({"notes": {"url": "https://u:p@x.example"}}, "name a `credential`"),
    ({"notes": {"url": "http://x.example", "credential": "c"}}, "it must begin with https://"),
    ({"notes": {"url": "https://x.example:99999999"}}, "it must begin with http:// or https://"),
    ({"Notes Server": {"url": "https://x.example"}}, "use 1 to 24 of the characters"),
    ({"a__b": {"url": "https://x.example"}}, "use 1 to 24 of the characters"),
    ({"n" * 25: {"url": "https://x.example"}}, "use 1 to 24 of the characters"),
    ({"notes": {"url": "https://x.example", "colour": 1}}, "mcp_servers.notes.colour: there is no such field"),
    ({"notes": {"url": "https://x.example", "env": {"A": "b"}}}, "are for a `command`"),
    ({"notes": {"command": "x", "env": {"1-A": "b"}}}, "not the name of an environment variable"),
    ({"notes": {"command": "x", "env": {"TOKEN": "ghp_" + "a1B2" * 9}}}, "env: it seems to hold a secret"),
    ({"notes": {"command": "x", "args": ["a"] * 101}}, "args: at most 100 values"),
    ({"notes": {"command": "x", "args": ["\0"]}}, "without null characters"),
    ({f"n{number}": {"url": "https://x.example"} for number in range(11)}, "at most 10 are allowed"),
    ({"notes": {"url": "https://x.example", "timeout": 0}}, "mcp_servers.notes.timeout: it must be more than 0"),
    ([], "mcp_servers: write a map of names and values"),
    (_with_tools(arguments={"echo.text": "nowhere"}), "mcp_servers.notes.tools.arguments.echo.text"),
    (_with_tools(argument={"echo.text": "content"}), "mcp_servers.notes.tools.argument: there is no such field"),
    (_with_tools(arguments={f"t.a{n}": "id" for n in range(101)}), "tools.arguments: at most 100 values"),
    (_with_tools(describe={"echo": "x" * 5_000}), "tools.describe: at most 100 values"),
    (_with_tools(defaults={"echo": {"key": "ghp_" + "a1B2" * 9}}), "tools.defaults: it seems to hold a secret"),
    ({"notes": {"url": "https://x.example", "allow": ["a"], "tools": {"allow": ["b"]}}}, "give it once"),
]


async def test_a_server_that_cannot_be_is_refused(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        for servers, reason in IMPOSSIBLE_SERVERS:
            response = await client.post("/v1/rooms", json={"name": "Ours", "mcp_servers": servers})
            assert response.status_code == 400, (reason, response.text)
            assert response.json()["error"]["details"]["stage"] == "check_config", reason
            assert reason in response.json()["error"]["message"]
            assert (await client.get("/v1/rooms/ours")).status_code == 404, reason


async def test_other_owners_start_no_program_and_name_only_their_credentials(serve: Serve, tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serve(require_key="always") as url:
        anna = await created_key(data, "anna", owner="anna", scopes="admin,agent")
        bob = await created_key(data, "bob", owner="bob", scopes="agent")
        async with client_of(url, headers=bearer(anna)) as client:
            for server, reason in (
                ({"command": sys.executable}, "only shared rooms start programs"),
                ({"url": "https://x.example", "credential": "notes"}, "does not belong to 'anna'"),
                ({"url": "https://x.example", "credential": "bob/notes"}, "does not belong to 'anna'"),
            ):
                refused = await client.post("/v1/rooms", json={"name": "Ours", "mcp_servers": {"notes": server}})
                assert (refused.status_code, reason in refused.text) == (400, True), refused.text
            own = {"url": "https://x.example", "credential": "anna/notes"}
            asked = await client.post("/v1/rooms", json={"name": "Ours", "mcp_servers": {"notes": own}})
            assert asked.status_code == 202, "nobody has said that it goes there"
            _store_credential(data, "anna/notes", url=own["url"])
            await create(client, name="Ours", mcp_servers={"notes": own})
            secrets = (await client.get("/v1/studio/secrets")).json()["data"]
            assert secrets == [
                {"name": "anna/notes", "kind": "credential", "configured": True, "problem": "", "used_by": ["ours"]}
            ]
        async with client_of(url, headers=bearer(bob)) as client:
            assert "room:ours" not in json.dumps((await client.get("/v1/studio/graph")).json())
            told = await run_tool(url, "mcp_server_add", key=bob, room_id="ours", name="x", url="https://x.example")
            assert "only by API keys with the scope 'rooms'" in json.dumps(told)


def _store_credential(data: Path, name: str, **fields: str) -> None:
    path = data / "credentials.json"
    path.write_text(json.dumps({name: {"type": "bearer", "token": "t-0123456789", **fields}}))
    path.chmod(0o600)


async def test_plans_add_no_server_without_asking(serve: Serve) -> None:
    async with serve(allow_programs=True) as url, client_of(url) as client, Client(f"{url}/mcp") as mcp:
        await create(client, name="Ours")
        for tool, args in (
            ("room_edit", {"room_id": "ours", "field": "mcp_servers.x.command", "value": "id"}),
            ("room_create", {"name": "New", "fields": {"mcp_servers": {"x": {"command": "id"}}}}),
        ):
            assert "use mcp_server_add" in await call(mcp, tool, **args)
        assert (await client.get("/v1/rooms/ours")).json()["room"]["mcp_servers"] == {}
        await create_with_program(client, name="Theirs", mcp_servers={"notes": stdio()})
        copied = await call(mcp, "room_copy", room_id="theirs", name="By tool")
        assert (copied["servers_left_out"], "mcp_servers" in copied["yaml"]) == (["notes"], False)
        by_person = await client.post("/v1/rooms/theirs/copy", json={"name": "By a person"})
        assert by_person.status_code == 202, "the copy would start the program too"
        assert "runs" in by_person.json()["approvals"][0]["question"]


async def test_suggestions_are_given_to_clients(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        await create(client, name="Ours", suggestions=["What is 2+2?"])
        assert (await client.get("/v1/models/ours")).json()["suggestions"] == ["What is 2+2?"]


async def test_the_tools_of_a_rooms_server_wait_for_a_review_where_the_operator_says_so(
    serve: Serve, tmp_path: Path
) -> None:
    async with (
        serve(mcp_pin="review", allow_programs=True) as url,
        client_of(url) as client,
        Client(f"{url}/mcp") as mcp,
    ):
        await create_with_program(client, name="Ours", mcp_servers={"notes": stdio()})
        tested = await call(mcp, "mcp_server_test", room_id="ours", name="notes")
        assert (tested["tools"], "echo" in tested["quarantined"]) == ([], True)
        command = ("mcp-servers", "review", "notes@ours", "--accept", "echo")
        code, output = await asyncio.to_thread(stepgate, tmp_path, *command)
        assert code == 0, output
        said = await run_tool(url, await find_echo(client, "ours"), room="ours", text="hello")
        assert "echo: hello" in json.dumps(said)


async def test_a_room_with_collections_reads_only_these(serve: Serve) -> None:
    async with serve() as url, client_of(url) as client:
        for name, text in (("law", "The zebra law is strict."), ("zoo", "The zebra eats hay.")):
            files = {"file": (f"{name}.md", text.encode())}
            added = await client.post("/v1/documents", files=files, data={"collection": name})
            assert added.is_success, added.text
        await create(client, name="Ours", collections=["zoo"], tools=["search_knowledge", "list_documents"])
        found = json.dumps(await run_tool(url, "search_knowledge", room="ours", query="zebra"))
        assert ("eats hay" in found, "is strict" in found) == (True, False)
        refused = json.dumps(await run_tool(url, "search_knowledge", room="ours", query="zebra", collection="law"))
        assert ("there is no collection 'law'" in refused, "is strict" in refused) == (True, False)
        listed = json.dumps(await run_tool(url, "list_documents", room="ours"))
        assert ("zoo" in listed, "law" in listed) == (True, False)
        everywhere = json.dumps(await run_tool(url, "search_knowledge", query="zebra", collection="law"))
        assert "is strict" in everywhere
        wrong = await client.post("/v1/rooms", json={"name": "Wrong", "collections": [" "]})
        assert "collections.0: use 1 to 200 characters" in wrong.text
