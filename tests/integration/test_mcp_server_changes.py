"""A running gateway follows the file of foreign MCP servers."""

import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from typer.testing import CliRunner

from agent.core.settings import Settings
from gateway import foreign_servers
from gateway.cli import mcp_servers
from tests.integration.conftest import Serve
from tests.support import warm
from tests.support.mcp_client import until_async


@pytest.fixture(autouse=True)
def short_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_servers, "FILE_POLL_SECONDS", 0.05)


def entry(module: str = "basic") -> dict[str, Any]:
    return warm.server(f"tests.support.mcp_server_{module}", "stdio")


async def list_foreign_tools(url: str) -> set[str]:
    async with Client(f"{url}/mcp/all") as client:
        return {tool.name for tool in (await client.list_tools()).tools if "__" in tool.name}


async def test_a_server_that_is_added_changed_and_removed_takes_effect(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "servers.json"
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", mcp_servers=path)
    monkeypatch.setattr(mcp_servers, "load_command_settings", lambda: settings)
    command = entry()
    async with serve(mcp_servers=path) as url:
        assert await list_foreign_tools(url) == set()
        added = CliRunner().invoke(mcp_servers.app, ["add", "one", command["command"], *command["args"]])
        assert "applies it within seconds" in added.output
        await until_async(lambda: has_tool(url, "one__echo"))
        path.write_text(json.dumps({"one": {**command, "tools": {"rename": {"echo": "repeat"}}}, "two": command}))
        await until_async(lambda: has_tool(url, "two__echo"))
        tools = await list_foreign_tools(url)
        assert "one__repeat" in tools
        assert "one__echo" not in tools
        removed = CliRunner().invoke(mcp_servers.app, ["remove", "one"])
        assert removed.exit_code == 0
        await until_async(lambda: lacks_tool(url, "one__repeat"))
        assert await has_tool(url, "two__echo")
        async with httpx.AsyncClient() as http:
            ready = (await http.get(f"{url}/ready")).json()
        assert "mcp:two" in json.dumps(ready)
        assert "mcp:one" not in json.dumps(ready)


async def test_a_broken_file_and_a_broken_entry_change_nothing(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"one": entry()}}))
    with caplog.at_level(logging.INFO, logger="gateway.foreign_servers"):
        async with serve(mcp_servers=path) as url:
            await until_async(lambda: has_tool(url, "one__echo"))
            path.write_text('{"mcpServers": {')
            await until_async(lambda: is_logged(caplog, "the MCP servers stay as they were"))
            assert await has_tool(url, "one__echo")
            path.unlink()
            await until_async(lambda: is_logged(caplog, "is gone; the MCP servers stay"))
            assert await has_tool(url, "one__echo")
            path.write_text(json.dumps({"one": {"command": "x", "env": {"K": "${NOT_SET}"}}, "two": entry()}))
            await until_async(lambda: has_tool(url, "two__echo"))
            assert await has_tool(url, "one__echo"), "an entry that cannot be used keeps its server"
            assert await is_logged(caplog, "NOT_SET is not set")


async def has_tool(url: str, name: str) -> bool:
    return name in await list_foreign_tools(url)


async def lacks_tool(url: str, name: str) -> bool:
    return name not in await list_foreign_tools(url)


async def is_logged(caplog: pytest.LogCaptureFixture, words: str) -> bool:
    return words in caplog.text
