"""Connects to one foreign MCP server for the duration of one command."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent.core.cancellation import cancel_and_wait
from mcp_tools.client.hub import McpServer

CLOSE_SECONDS = 5.0
"""How long a server may take to end. The SDK kills a process that ignores the end of its input after two seconds."""


@asynccontextmanager
async def connect_server(server: McpServer, seconds: float | None = None) -> AsyncIterator[None]:
    """Start the server, or try to: entered once it is ready or down, at the latest after `seconds` (unset: a
    little longer than its start may take).
    """
    for name in ("mcp_tools.client.hub", "mcp_tools.client.tool_registration"):
        logging.getLogger(name).setLevel(logging.ERROR)  # the command itself reports a server that is down
    owner = asyncio.create_task(server.run(), name=f"mcp {server.name}")
    try:
        await _wait_until_connected(server, seconds or server.config.startup_limit_s + 2)
        yield
    finally:
        await cancel_and_wait(owner, timeout_s=CLOSE_SECONDS)


async def try_server(server: McpServer, seconds: float | None = None) -> None:
    """Connects once, to learn `server.status`, its reason and its tools."""
    async with connect_server(server, seconds):
        pass


async def _wait_until_connected(server: McpServer, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            while server.status == "connecting":  # noqa: ASYNC110 - a status without an event to wait for
                await asyncio.sleep(0.05)
    except TimeoutError:
        server.status, server.reason = "down", f"no answer within {seconds:g} s"
