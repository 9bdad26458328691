"""The stored tool lists of rooms' MCP servers, which may belong to different owners."""

from pathlib import Path

import mcp_types as types
import pytest

from agent.tools import ToolRegistry
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.hub import McpServer


async def test_rooms_with_names_alike_do_not_share_a_tool_list(tmp_path: Path) -> None:
    registry = ToolRegistry()

    def build(name: str, room: str) -> McpServer:
        config = McpServerConfig(transport="http", url="https://mcp.example/", room=room, owner=room, public_only=True)
        return McpServer(name, config, registry, tmp_path, None)

    tool = types.Tool(name="orders", description="Lists orders.", input_schema={"type": "object"})
    await build("x@a.b", "a.b")._registration.update_offers([tool])
    other, same = build("x@a_b", "a_b"), build("x@a.b", "a.b")
    await other.restore_cached_tools()
    assert other.tools == ()
    await same.restore_cached_tools()
    assert [one.name for one in same.tools] == ["orders"]


async def test_a_list_that_cannot_be_stored_does_not_cost_the_tools(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "full").write_text("a file where the folder should be")
    registry = ToolRegistry()
    config = McpServerConfig(transport="http", url="https://mcp.example/")
    server = McpServer("shop", config, registry, tmp_path / "full", None)
    await server._registration.update_offers(
        [types.Tool(name="orders", description="Lists orders.", input_schema={"type": "object"})]
    )
    assert [one.name for one in server.tools] == ["orders"]
    assert "not stored for the next start" in caplog.text
