"""One MCP server of somebody else's, started for one command and stopped after it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp_tools.hub import McpServer
from mcp_tools.hub_client import CONNECT_SECONDS

CLOSE_SECONDS = 5.0
"""How long a server gets to end. The SDK kills a process that ignores the end of its input after two."""


@asynccontextmanager
async def connected(server: McpServer, seconds: float = CONNECT_SECONDS + 2) -> AsyncIterator[None]:
    """Start the server, or try to: entered once it is ready or down, at the latest after `seconds`."""
    for name in ("mcp_tools.hub", "mcp_tools.hub_mount"):
        logging.getLogger(name).setLevel(logging.ERROR)  # the command itself says that a server is down
    owner = asyncio.create_task(server.own(), name=f"mcp {server.name}")
    try:
        await _settled(server, seconds)
        yield
    finally:
        owner.cancel()
        await asyncio.wait([owner], timeout=CLOSE_SECONDS)


async def try_server(server: McpServer, seconds: float = CONNECT_SECONDS + 2) -> None:
    """Connect once, for `server.status`, its reason and its tools."""
    async with connected(server, seconds):
        pass


async def _settled(server: McpServer, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            while server.status == "connecting":  # noqa: ASYNC110 - a status, told once a try
                await asyncio.sleep(0.05)
    except TimeoutError:
        server.status, server.reason = "down", f"no answer within {seconds:g} s"
