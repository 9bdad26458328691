"""The MCP server on stdin and stdout. Started by `stepgate mcp`."""

import sys

from mcp.server.stdio import stdio_server

from agent.core.settings import Settings
from gateway.bootstrap import build_gateway
from gateway.doors.mcp import STATE_KEY, build_served
from mcp_tools.mapped_stream import Item, MappedStream
from mcp_tools.server.mcp_server import build_server


async def serve_stdio(settings: Settings) -> None:
    """Serves until stdin ends."""
    async with build_gateway(settings, recover=False) as stepgate:
        server = build_server(lambda: build_served(stepgate), settings.data_dir / STATE_KEY)
        async with stdio_server() as (reading, writing):
            await server.run(MappedStream(reading, _warn_if_invalid), writing, server.create_initialization_options())


def _warn_if_invalid(item: Item) -> Item:
    """Reports an invalid line on stderr, which the server drops silently."""
    if isinstance(item, Exception):
        print(
            "stepgate: a line on stdin is not a JSON-RPC message and is ignored; `stepgate mcp` is for MCP clients, "
            "people use `stepgate ask`",
            file=sys.stderr,
        )
    return item
