"""What an MCP client sees: ours by default, the others by search, all at `/mcp/all`, what a view curates, in pages."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.bootstrap import build_gateway
from mcp_tools.server import pagination as server_pages
from mcp_tools.server.toolsets import Toolsets
from mcp_tools.server.views import load_views
from tests.integration.conftest import Serve
from tests.support import warm
from tests.support.conformance_wire import ACCEPT, modern, session_of_2025


@asynccontextmanager
async def gateway(serve: Serve, folder: Path, **options: Any) -> AsyncIterator[str]:
    """A gateway with somebody else's server behind it, once its tools are there."""
    server = {**warm.server("tests.support.mcp_server_basic", "stdio"), "trusted": True}
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"srv": server}}))
    async with serve(mcp_servers=path, **options) as url, Client(f"{url}/mcp/all") as client, asyncio.timeout(30):
        while "srv__echo" not in await names(client):  # noqa: ASYNC110 - a foreign server takes its time
            await asyncio.sleep(0.05)
        yield url


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]


@pytest.mark.row("Scard-01")
async def test_foreign_tools_are_found_and_called_without_being_listed(serve: Serve, tmp_path: Path) -> None:
    async with gateway(serve, tmp_path) as url, Client(f"{url}/mcp") as client:
        listed = await names(client)
        assert "search_files" in listed
        assert not [name for name in listed if name.startswith("srv__")]
        assert listed[-2:] == ["tools_find", "tools_call"]
        found: Any = (await client.call_tool("tools_find", {"query": "say something back"})).structured_content
        assert [tool["name"] for tool in found["tools"]][:1] == ["srv__echo"]
        assert found["tools"][0]["input_schema"]["required"] == ["text"]
        listed_all = await _names_of_all(url)
        assert found["of"] == len(listed_all) - len(listed) + 2, "every tool that is not listed can be found"
        called = await client.call_tool("tools_call", {"name": "srv__echo", "args": {"text": "hi"}})
        assert called.content[0].text == "echo: hi"  # type: ignore[union-attr]
        assert called.is_error is not True


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("tools_find", {}, "query"),
        ("tools_find", {"query": "x", "limit": 0}, "limit"),
        ("tools_call", {"name": "agent_run", "args": {"task": "1"}}, "find it with tools_find"),
        ("tools_call", {"name": "srv__nothing"}, "there is no tool"),
        ("tools_call", {"name": "srv__echo", "args": {"txt": "x"}}, "text"),
        ("tools_call", {"name": "srv__fail", "args": {"text": "this"}}, "fail"),
    ],
)
async def test_what_goes_wrong_is_a_result_to_act_on(
    tool: str, arguments: dict[str, Any], said: str, serve: Serve, tmp_path: Path
) -> None:
    async with gateway(serve, tmp_path) as url, Client(f"{url}/mcp") as client:
        result = await client.call_tool(tool, arguments)
        assert result.is_error is True
        assert said in result.content[0].text  # type: ignore[union-attr]


async def _names_of_all(url: str) -> list[str]:
    async with Client(f"{url}/mcp/all") as client:
        return await names(client)


async def test_where_every_tool_is_listed_there_is_nothing_to_find(serve: Serve) -> None:
    async with serve() as url:
        assert "tools_find" not in await _names_of_all(url)


def view(folder: Path, name: str, text: str) -> Path:
    """The folder with a view's file in it."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_a_curated_view_lists_and_calls_only_what_it_names(serve: Serve, tmp_path: Path, mode: str) -> None:
    text = "description: Talks back.\ntools: [agent_run, 'srv__e*', calculator]\nskills: [summarize]\nroom: chat\n"
    folder = view(tmp_path / "views", "echo", text)
    async with (
        gateway(serve, tmp_path, mcp_views_dir=folder) as url,
        Client(f"{url}/mcp/echo", mode=mode) as client,
    ):
        listed = await names(client)
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        said = await client.call_tool("srv__echo", {"text": "hi"})
        refused = []
        for name in ("srv__fail", "run_get", "tools_call", "current_time"):
            with pytest.raises(MCPError, match="no tool named") as caught:
                await client.call_tool(name, {})
            refused.append(caught.value.error.code)
        other = await client.call_tool("agent_run", {"task": "hi", "room": "stepgate"})
        own = await client.call_tool("agent_run", {"task": "hi"})
        if mode == "legacy":
            assert client.instructions == "Talks back."
    assert listed == ["agent_run", "calculator", "srv__echo"]
    assert prompts == ["summarize"]
    assert said.content[0].text == "echo: hi"  # type: ignore[union-attr]
    assert refused == [-32602] * 4
    assert other.is_error
    assert "'chat'" in other.content[0].text  # type: ignore[union-attr]
    assert not own.is_error


async def test_the_shipped_view_changes_nothing(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp/lookup") as client:
        tools = (await client.list_tools()).tools
        value = (await client.call_tool("calculator", {"expression": "6*7"})).structured_content
    assert len(tools) == 8, "every tool it names is there"
    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
    assert value == {"expression": "6*7", "value": "42"}


async def test_a_room_that_allows_few_tools_lists_only_those(serve: Serve, tmp_path: Path) -> None:
    rooms = view(tmp_path / "rooms", "sums", "tools: [calculator]\n")
    views = view(tmp_path / "views", "sums", "room: sums\n")
    async with serve(rooms_dir=rooms, mcp_views_dir=views) as url, Client(f"{url}/mcp/sums") as client:
        assert await names(client) == ["agent_run", "run_get", "run_respond", "run_cancel", "calculator"]
        denied = await client.call_tool("current_time", {})
    assert denied.is_error


@pytest.mark.parametrize("path", ["/mcp/nothing", "/mcp/own", "/mcp/..%2fall", "/mcp/" + "x" * 3_000, "/mcp/all/x"])
async def test_a_view_that_is_not_there_is_not_found(serve: Serve, path: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with serve() as url, httpx.AsyncClient() as client:
        answer = await client.post(f"{url}{path}", json=body, headers=ACCEPT)
    assert answer.status_code == 404
    if path == "/mcp/nothing":
        assert "/mcp, /mcp/all, /mcp/lookup" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("bad", "tools: [a", "not valid YAML"),
        ("bad", "- a list", "`key: value` lines"),
        ("bad", "tool: [calculator]", "tool: there is no such field"),
        ("bad", "tools: calculator", "tools: "),
        ("bad", "toolsets: [web, nope]", "toolsets: there is no toolset 'nope'; known: default, all, agent"),
        ("Bad Name", "tools: [calculator]", "id: "),
        ("all", "tools: [calculator]", "already"),
    ],
)
def test_a_view_that_cannot_be_says_where(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=name) as caught:
        load_views(view(tmp_path / "views", name, text), toolsets=Toolsets())
    assert said in caught.value.message
    with pytest.raises(ConfigError, match="not a folder"):
        load_views(tmp_path / "none", toolsets=Toolsets())


async def test_a_view_of_a_room_that_is_not_stops_the_start(tmp_path: Path) -> None:
    folder = view(tmp_path / "views", "lost", "room: nowhere\n")
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", mcp_views_dir=folder, skills_dirs=())
    with pytest.raises(ConfigError, match="'lost': room: there is no room named 'nowhere'"):
        async with build_gateway(settings):
            pass


async def test_a_tool_that_a_view_names_in_vain_is_logged(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = view(tmp_path / "views", "typo", "tools: [calculater, calc*, github__issues]\n")
    async with serve(mcp_views_dir=folder):
        pass
    told = [record.getMessage() for record in caplog.records if "names an unknown tool" in record.getMessage()]
    assert told == ["the MCP view 'typo' names an unknown tool 'calculater'"]


MANY = """
import asyncio
from mcp.server.mcpserver import MCPServer
server = MCPServer("many")
for number in range(250):
    server.add_tool(lambda text: f"{text}", name=f"tool_{number:03}", description="One of many.")
asyncio.run(server.run_stdio_async())
"""


async def test_long_lists_come_in_pages_and_what_matters_first(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY)
    servers = tmp_path / "servers.json"
    many = {"command": sys.executable, "args": [str(tmp_path / "many.py")]}
    servers.write_text(json.dumps({"mcpServers": {"many": many}}))
    for number in range(120):
        folder = tmp_path / "skills" / f"skill-{number:03}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: Number {number}.\n---\nDo it.\n")
    options = {"mcp_servers": servers, "skills_dirs": (tmp_path / "skills",)}
    async with serve(**options) as url, Client(f"{url}/mcp/all") as client, asyncio.timeout(40):
        while "many__tool_000" not in (first := await names(client)):  # noqa: ASYNC110 - it takes its time
            await asyncio.sleep(0.05)
        pages, cursor = [first], (await client.list_tools(cache_mode="bypass")).next_cursor
        cursors = [cursor]
        while cursor is not None:
            page = await client.list_tools(cursor=cursor)
            pages.append([tool.name for tool in page.tools])
            cursor = page.next_cursor
            cursors.append(cursor)
        again = await client.list_tools(cursor=cursors[0])
        prompts = await client.list_prompts()
        rest = await client.list_prompts(cursor=prompts.next_cursor)
        resources = await client.list_resources()
        others = await client.list_resources(cursor=resources.next_cursor)
        skills = (await modern(url, "skills/list", {}))["result"]
        later = (await modern(url, "skills/list", {"cursor": skills["nextCursor"]}))["result"]
    listed = [name for page in pages for name in page]
    assert [len(page) for page in pages[:-1]] == [server_pages.PAGE_SIZE] * (len(pages) - 1)
    assert len(listed) == len(set(listed))
    assert len([name for name in listed if name.startswith("many__")]) == 250
    assert first[:4] == ["agent_run", "run_get", "run_respond", "run_cancel"]
    foreign = first.index("many__tool_000")
    assert first[foreign - 2 : foreign] == ["tools_find", "tools_call"], "who ignores the cursor can find the rest"
    assert listed[foreign:] == sorted(listed[foreign:])
    assert [tool.name for tool in again.tools] == pages[1]
    shown = [prompt.name for prompt in (*prompts.prompts, *rest.prompts)]
    assert shown == sorted(shown)
    assert len({*shown}) == len(shown) > 120
    assert rest.next_cursor is None
    uris = [str(one.uri) for one in (*resources.resources, *others.resources)]
    assert len({*uris}) == len(uris) > 120
    entries = [entry["frontmatter"]["name"] for entry in (*skills["skills"], *later["skills"])]
    assert {f"skill-{number:03}" for number in range(120)} <= {*entries}
    assert len({*entries}) == len(entries)


LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list")
MADE_UP = ("made up", "2", "%%%", "bnVsbA", "W10", "x" * 100_000, "WyJvdGhlci9saXN0IiwxLCJhIl0", "åäö", "W1tbW1tbW1tb")


async def test_a_cursor_that_was_not_given_is_refused(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient() as client:
        headers = await session_of_2025(url)
        for method in LISTS:
            for cursor in MADE_UP:
                told = (await modern(url, method, {"cursor": cursor}))["error"]
                assert (told["code"], told["message"][:7]) == (-32602, "cursor:"), (method, cursor[:30])
                body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"cursor": cursor}}
                old = await client.post(f"{url}/mcp", json=body, headers=headers)
                assert "-32602" in old.text, (method, cursor[:30])
            assert "result" in await modern(url, method, {"cursor": ""}), "an empty cursor is none"


def test_a_page_goes_on_where_it_ended_although_the_list_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_pages, "PAGE_SIZE", 3)

    def page(items: str, cursor: str | None = None) -> tuple[str, str | None]:
        params = PaginatedRequestParams(cursor=cursor)
        found, following = server_pages.paginate(list(items), str, "tools/list", params)
        return "".join(found), following

    shown, cursor = page("bcdefg")
    assert (shown, page("bcdefg", cursor)) == ("bcd", ("efg", None))
    assert page("abcdefg", cursor)[0] == "efg", "one that came before changes nothing"
    assert page("cdefg", cursor)[0] == "efg", "nor one that went"
    assert page("bcefg", cursor)[0] == "fg", "the one at the end went: on from its place"
    assert page("b", cursor) == ("", None)
    assert page("", None) == ("", None)
    assert page("abc", None) == ("abc", None)
