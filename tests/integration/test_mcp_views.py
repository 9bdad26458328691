"""What of the tools an MCP client sees: ours by default, the others by search, all of them at `/mcp/all`."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.integration.conftest import Serve
from tests.support.processes import ROOT


@asynccontextmanager
async def gateway(serve: Serve, folder: Path) -> AsyncIterator[str]:
    """A gateway with somebody else's server behind it, once its tools are there."""
    server = {
        "command": sys.executable,
        "args": ["-m", "tests.support.mcp_fixture", "stdio"],
        "cwd": str(ROOT),
        "trusted": True,
    }
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"srv": server}}))
    async with serve(mcp_servers=path) as url, Client(f"{url}/mcp/all") as client, asyncio.timeout(30):
        while "srv__echo" not in await names(client):  # noqa: ASYNC110 - a foreign server takes its time
            await asyncio.sleep(0.05)
        yield url


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]


@pytest.mark.row("Scard-01")
async def test_foreign_tools_are_found_and_called_without_being_listed(serve: Serve, tmp_path: Path) -> None:
    async with gateway(serve, tmp_path) as url, Client(f"{url}/mcp") as client:
        listed = await names(client)
        assert "calculator" in listed
        assert not [name for name in listed if name.startswith("srv__")]
        assert listed[-2:] == ["tools_find", "tools_call"]
        found: Any = (await client.call_tool("tools_find", {"query": "say something back"})).structured_content
        assert [tool["name"] for tool in found["tools"]][:1] == ["srv__echo"]
        assert found["tools"][0]["input_schema"]["required"] == ["text"]
        assert found["of"] == 5
        called = await client.call_tool("tools_call", {"name": "srv__echo", "args": {"text": "hi"}})
        assert called.content[0].text == "echo: hi"  # type: ignore[union-attr]
        assert called.is_error is not True


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("tools_find", {}, "query"),
        ("tools_find", {"query": "x", "limit": 0}, "limit"),
        ("tools_call", {"name": "calculator", "args": {"expression": "1"}}, "look for it with tools_find"),
        ("tools_call", {"name": "srv__nothing"}, "no such tool"),
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


async def test_without_foreign_tools_there_is_nothing_to_find(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp") as client:
        assert "tools_find" not in await names(client)
