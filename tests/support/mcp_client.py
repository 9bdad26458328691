"""The client side of other people's MCP servers, running, for tests."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx

from agent.storage.credentials import Credentials
from agent.tools import ToolRegistry
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.hub import McpHub, McpServer
from tests.support import warm
from tests.support.processes import start


@asynccontextmanager
async def hub_with(folder: Path, config: McpServerConfig, credentials: Path | None = None) -> AsyncIterator[McpServer]:
    """The client side of one server, `srv`, whose tools are not pinned."""
    known = Credentials(credentials) if credentials else None
    hub = McpHub({"srv": config}, ToolRegistry(), folder, None, known)
    await hub.start()
    try:
        yield hub.servers["srv"]
    finally:
        await hub.aclose()


@contextmanager
def offered(module: str, transport: str) -> Iterator[dict[str, Any]]:
    """That server program of `tests.support`, by `stdio` or `http`, as an entry of the file of servers."""
    if transport == "stdio":
        yield warm.server(f"tests.support.{module}", "stdio")
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = start([sys.executable, "-m", f"tests.support.{module}", str(port)])
    try:
        process.line_with("Uvicorn running")
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.kill()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what has no event of its own, such as a server's status. TimeoutError when it does not come."""
    async with asyncio.timeout(40):
        while not condition():  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)


async def until_async(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what only asking tells, such as a list of tools. TimeoutError when it does not come."""
    async with asyncio.timeout(40):
        while not await condition():  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)


async def until_listed(client: httpx.AsyncClient, name: str, *, there: bool = True) -> None:
    """Wait for a tool of a server that connects while the gateway runs, or for its end. TimeoutError when it does not
    come."""

    async def is_as_expected() -> bool:
        return (name in (await client.get("/v1/tools")).text) is there

    await until_async(is_as_expected)
