"""`stepgate mcp`: the MCP server over stdio, for IDEs that start their servers themselves."""

import asyncio
import logging

from mcp.server.stdio import stdio_server

from gateway.bootstrap import build
from gateway.cli.session import settings_of_command
from gateway.doors.mcp import served_by
from mcp_tools.server import build_server


def mcp() -> None:
    """Serve MCP over stdin and stdout. Shares the data folder with a running gateway."""
    settings = settings_of_command()
    logging.getLogger().setLevel(max(logging.WARNING, logging.getLogger().level))

    async def run() -> None:
        async with build(settings, recover=False) as stepgate:
            server = build_server(lambda: served_by(stepgate))
            async with stdio_server() as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())

    asyncio.run(run())
