"""A gateway, or another server, in this process on a real port."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from agent.core.settings import Settings
from gateway.app import create_app
from gateway.bootstrap import Stepgate
from gateway.limits.http_protocol import protocol_with_limits

DEADLINE_S = 20
"""How long its start and its end may take, in seconds."""


@asynccontextmanager
async def serving(settings: Settings, stepgate: Stepgate | None = None) -> AsyncIterator[str]:
    """The URL of the gateway these settings make, or of one that is wired already."""
    app = create_app(settings, stepgate)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, http=protocol_with_limits(settings), log_config=None, lifespan="on"
    )
    async with running(config) as url:
        yield url


@asynccontextmanager
async def running(config: uvicorn.Config) -> AsyncIterator[str]:
    """The URL of any server in this process; it has ended afterwards."""
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    async with asyncio.timeout(DEADLINE_S):
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn offers only the flag
            await asyncio.sleep(0.01)
    if task.done():
        await task
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        async with asyncio.timeout(DEADLINE_S):
            await task
