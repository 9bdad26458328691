"""The current connection of an external MCP server, and how calls wait for it."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from mcp import Client

from agent.core.cancellation import cancel_until_ended
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.remote_tool import ReportProgress, get_connect_wait_s
from mcp_tools.client.starting import StartClock

START_REPORT_S = 5.0
"""How often a call that waits for a starting server reports it."""
CLOSE_TIMEOUT_S = 10.0
"""How long closing connections may take."""
CANCEL_AGAIN_S = 5.0
"""When a task that has not ended is cancelled again: later than a program takes to end in its own time."""


@dataclass
class Connection:
    """The live client of a server, the event that ends it, and that of a changed list."""

    client: Client
    broken: asyncio.Event
    changed: asyncio.Event


class ConnectionSlot:
    """The connection of one server; empty while there is none. Once closed, it stays empty, and nobody waits for it."""

    def __init__(self) -> None:
        self._is_closed = False
        self._ready = asyncio.Event()
        self.connection: Connection | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the server is retired: there will be no connection."""
        return self._is_closed

    def set(self, connection: Connection) -> None:
        """Gives waiting calls this connection. Does nothing once closed."""
        if not self._is_closed:
            self.connection = connection
            self._ready.set()

    def clear(self) -> None:
        """Empties the slot, because the connection has ended. Calls wait for the next one."""
        self.connection = None
        if not self._is_closed:
            self._ready.clear()

    def drop(self, connection: Connection) -> None:
        """Ends this connection, so that the owner task makes a new one. Calls wait for the new one."""
        connection.broken.set()
        if self.connection is connection and not self._is_closed:
            self._ready.clear()

    def close(self) -> None:
        """Empties the slot for good, and ends the connection and all waiting."""
        self._is_closed = True
        if self.connection is not None:
            self.connection.broken.set()
            self.connection = None
        self._ready.set()

    async def wait(self, config: McpServerConfig, start: StartClock, report: ReportProgress) -> Connection | None:
        """The connection; None if the slot is closed or was emptied meanwhile.

        Waits while the server starts, and reports that, and else for a short time. Raises `TimeoutError`.
        """
        began = reported = monotonic()
        while not self._ready.is_set():
            waited, limit = monotonic() - began, get_connect_wait_s(config, is_starting=start.is_running)
            if waited >= limit:
                raise TimeoutError
            if start.is_running and monotonic() - reported >= START_REPORT_S:
                reported = monotonic()
                report(f"the server is {start.describe()}")
            with suppress(TimeoutError):
                async with asyncio.timeout(min(limit - waited, START_REPORT_S)):
                    await self._ready.wait()
        return self.connection


async def end_owner_tasks(tasks: set["asyncio.Task[None]"]) -> "set[asyncio.Task[None]]":
    """Cancels the tasks that own connections. Returns those that have not ended within `CLOSE_TIMEOUT_S`."""
    return await cancel_until_ended(*tasks, timeout_s=CLOSE_TIMEOUT_S, again_s=CANCEL_AGAIN_S)
