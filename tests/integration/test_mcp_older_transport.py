"""Servers with the transport of 2024 under a bare `url`: found by their refusal of the later one."""

from pathlib import Path

import pytest
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mcp_tools.client.config import McpServerConfig
from tests.integration.test_mcp_malformed import CONTEXT
from tests.support.mcp_client import hub_with, until
from tests.support.serving import running


def make_server() -> MCPServer:
    server = MCPServer("older")

    @server.tool()
    def echo(text: str) -> str:
        """Say it back."""
        return f"echo: {text}"

    return server


async def test_an_older_server_needs_no_type(tmp_path: Path) -> None:
    async with running(uvicorn.Config(make_server().sse_app(), host="127.0.0.1", port=0, log_config=None)) as origin:
        config = McpServerConfig.model_validate({"url": f"{origin}/sse"})
        async with hub_with(tmp_path, config) as server:
            await until(lambda: server.status == "ready")
            tool = server._registration._registry.get("srv__echo")
            assert (await tool.call({"text": "x"}, CONTEXT)).text == "echo: x"


@pytest.mark.parametrize("status", [404, 405])
async def test_an_address_without_a_server_is_refused_with_what_to_do(tmp_path: Path, status: int) -> None:
    async def refuse(_: Request) -> Response:
        return PlainTextResponse("nothing here", status)

    app = Starlette(routes=[Route("/mcp", refuse, methods=["GET", "POST"])])
    async with running(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None)) as origin:
        config = McpServerConfig.model_validate({"url": f"{origin}/mcp"})
        async with hub_with(tmp_path, config) as server:
            await until(lambda: server.status == "down")
            assert server.reason == f"nothing here (HTTP {status}), and it serves no events either: check its `url`"
