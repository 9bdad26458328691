"""A gateway, or another server, in this process on a real port."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from agent.core.settings import Settings
from gateway.access.http_protocol import make_protocol_with_limits
from gateway.app import create_app
from gateway.bootstrap import Stepgate

DEADLINE_S = 20
"""How long its start and its end may take, in seconds."""


class _PromptServer(uvicorn.Server):
    """uvicorn's server without its naps of a tenth of a second at the end, which thousands of tests would add up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Closes the server as a signal does."""
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        """Updates the date header every second, as uvicorn does, until the end."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Closes connections once they have been answered, then the application."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - uvicorn offers only the sets
            await asyncio.sleep(0.005)
        for server in self.servers:
            await server.wait_closed()
        await self.lifespan.shutdown()


@asynccontextmanager
async def serving(settings: Settings, stepgate: Stepgate | None = None, *, port: int = 0) -> AsyncIterator[str]:
    """The URL of the gateway these settings make, or of one that is wired already; at any free port without one."""
    app = create_app(settings, stepgate)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, http=make_protocol_with_limits(settings), log_config=None, lifespan="on"
    )
    async with running(config) as url:
        yield url


@asynccontextmanager
async def running(config: uvicorn.Config) -> AsyncIterator[str]:
    """The URL of any server in this process; it has ended afterwards."""
    server = _PromptServer(config)
    task = asyncio.create_task(server._serve())
    async with asyncio.timeout(DEADLINE_S):
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn offers only the flag
            await asyncio.sleep(0.01)
    if task.done():
        await task
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.end()
        async with asyncio.timeout(DEADLINE_S):
            await task
