"""What `/mcp` and stdio list by default and by toolsets, and that what is not listed can be found and called."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from agent.core.errors import ConfigError
from gateway.feature_loader import load_features
from mcp_tools.server.toolsets import Toolsets
from mcp_tools.server.views import make_default_view
from tests.integration.conftest import Serve
from tests.support import warm
from tests.support.conformance_wire import ACCEPT
from tests.support.processes import ROOT

MAX_TOOLS, MAX_BYTES = 16, 14_000
TOOLSETS = Toolsets(load_features("", with_installed=False).list_toolsets())
EXPECTED = {
    *("agent_run", "run_get", "run_respond", "run_cancel", "search_knowledge", "list_files", "read_file"),
    *("search_files", "web_fetch", "describe_table", "query_table", "memory_save", "memory_search"),
    *("tools_find", "tools_call"),
}


async def list_wire(client: Client) -> list[dict[str, Any]]:
    """The tools as they are on the wire."""
    tools = (await client.list_tools(cache_mode="bypass")).tools
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


async def names(client: Client) -> set[str]:
    return {tool["name"] for tool in await list_wire(client)}


def measure(tools: list[dict[str, Any]]) -> int:
    return len(json.dumps({"tools": tools}, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_the_default_list_is_short_and_says_how_to_find_the_rest(serve: Serve, mode: str) -> None:
    async with serve() as url, Client(f"{url}/mcp", mode=mode) as client:
        listed = await list_wire(client)
        found: Any = (await client.call_tool("tools_find", {"query": "calculate an expression"})).structured_content
        called = await client.call_tool("tools_call", {"name": "calculator", "args": {"expression": "6*7"}})
        direct = await client.call_tool("calculator", {"expression": "6*7"})
    assert {tool["name"] for tool in listed} - {"run_python"} == EXPECTED
    assert len(listed) <= MAX_TOOLS
    assert measure(listed) <= MAX_BYTES
    assert all(tool["annotations"] and "properties" in tool["inputSchema"] for tool in listed)
    assert found["tools"][0]["name"] == "calculator"
    assert called.structured_content == direct.structured_content == {"expression": "6*7", "value": "42"}


async def test_toolsets_of_the_address_replace_the_default_ones(serve: Serve) -> None:
    async with serve() as url:
        async with Client(f"{url}/mcp?toolsets=schedules,%20tables") as client:
            chosen = await names(client)
        async with Client(f"{url}/mcp?toolsets=default,studio", mode="legacy") as client:
            more = await names(client)
        async with Client(f"{url}/mcp?toolsets=all") as client, Client(f"{url}/mcp/all") as complete:
            whole, every = await names(client), await names(complete)
    assert chosen == {
        *TOOLSETS.by_name["schedules"].tools,
        *TOOLSETS.by_name["tables"].tools,
        "tools_find",
        "tools_call",
    }
    assert more - {"run_python"} == {*EXPECTED, *TOOLSETS.by_name["studio"].tools}
    assert whole == every


async def test_toolsets_of_the_settings_are_the_default_of_clients(serve: Serve) -> None:
    async with serve(mcp_toolsets=("memory",)) as url:
        async with Client(f"{url}/mcp") as client:
            configured = await names(client)
        async with Client(f"{url}/mcp?toolsets=web") as client:
            chosen = await names(client)
    assert configured == {"memory_save", "memory_search", "tools_find", "tools_call"}
    assert chosen == {"web_fetch", "tools_find", "tools_call"}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/mcp?toolsets=nope", "there is no toolset 'nope'; known: default, all, agent"),
        ("/mcp?toolsets=", "name at least one toolset"),
        ("/mcp?toolsets=web,,%00", "there is no toolset"),
        ("/mcp/all?toolsets=web", "/mcp/all has its own list"),
        ("/mcp/lookup?toolsets=web", "/mcp/lookup has its own list"),
    ],
)
async def test_unknown_toolsets_are_refused(serve: Serve, path: str, said: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with serve() as url, httpx.AsyncClient() as client:
        answer = await client.post(f"{url}{path}", json=body, headers=ACCEPT)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


def test_unknown_toolsets_of_the_settings_stop_the_start() -> None:
    with pytest.raises(ConfigError, match="AGENT_MCP_TOOLSETS: there is no toolset 'x'"):
        make_default_view(["default", "x"], TOOLSETS)


async def test_a_view_may_list_toolsets_of_what_it_permits(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "small.yaml").write_text("tools: ['memory_*', calculator, 'tools_*']\ntoolsets: [memory]\n")
    async with serve(mcp_views_dir=tmp_path / "v") as url, Client(f"{url}/mcp/small") as client:
        listed = await names(client)
        value: Any = await client.call_tool("tools_call", {"name": "calculator", "args": {"expression": "1+1"}})
        with pytest.raises(MCPError, match="no tool named"):
            await client.call_tool("current_time", {})
        other = await client.call_tool("tools_call", {"name": "current_time", "args": {}})
    assert listed == {"memory_save", "memory_search", "tools_find", "tools_call"}
    assert value.structured_content["value"] == "2"
    assert other.is_error, "tools_call reaches no more than the view permits"


async def test_every_built_in_tool_belongs_to_one_named_toolset(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp/all") as client:
        every = await names(client)
    named = [tool for toolset in TOOLSETS.by_name.values() for tool in toolset.tools]
    assert sorted(every | {"run_python"}) == sorted(named)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), EXPECTED),
        (("--toolsets", "basics"), {"calculator", "current_time", "extract", "summarize", "tools_find", "tools_call"}),
        (("--view", "lookup"), None),
    ],
)
async def test_stdio_lists_the_same(tmp_path: Path, words: tuple[str, ...], expected: set[str] | None) -> None:
    environment = {"AGENT_DATA_DIR": str(tmp_path / "data"), "AGENT_SKILLS_DIRS": "none"}
    program, *args = warm.command("gateway.cli", "mcp", *words)
    command = StdioServerParameters(command=program, args=args, env=environment, cwd=ROOT)
    async with Client(command) as client:
        listed = await names(client)
    assert len(listed) == 8 if expected is None else listed - {"run_python"} == expected
