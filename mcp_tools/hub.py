"""The MCP client side: other people's servers, their tools in our registry as `server__tool`.

One owner task a server: it connects, lists, waits until the connection breaks, and begins again. A broken server
never stops or slows the gateway; its last good list stays, with its status. One with `idle_stop` is stopped when
nobody has called it for that long, and started by the next call. Only tools that are as a person accepted them are
mounted (`pins.py`); the owner task looks every `PIN_SECONDS` whether somebody has decided since, in this process or
another.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Literal

import mcp_types as types
from mcp import Client

from agent.core.credentials import Credentials
from agent.core.errors import ToolError
from agent.tools import ToolRegistry
from mcp_tools.hub_access import Access
from mcp_tools.hub_client import CONNECT_SECONDS, asked, make_client, tools_of
from mcp_tools.hub_demand import Demand
from mcp_tools.hub_failures import ConnectionEndedError, NotTakenError, cause, failure_of
from mcp_tools.hub_mount import Mount
from mcp_tools.hub_resources import resource_tools
from mcp_tools.hub_tool import ForeignCall, patience_with, plain
from mcp_tools.mcp_config import McpServerConfig
from mcp_tools.pins_store import Pinning
from mcp_tools.sanitize import names_of

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Between two tries to connect: twice as long each time, unless a call wants the server."""
SOUND_S = 10.0
"""A connection that has lived for so long was a good one: the pauses begin anew after it."""
END_TOLD_S = 1.0
"""How long a call that broke off waits to be told how its server ended."""
RELIST_SECONDS = 300.0
"""How often the list is fetched again from a server that announces no changes."""
LIST_PAUSE_S = 1.0
"""Between two lists, however often a server says that its list has changed."""
PIN_SECONDS = 2.0
"""How soon a decision of `stepgate mcp-servers review` is known to a gateway that is running."""

Status = Literal["connecting", "ready", "idle", "down", "disabled"]


@dataclass
class _Connection:
    """The live client of a server, and the event that ends it."""

    client: Client
    broken: asyncio.Event
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class McpServer:
    """One server: its owner task, its status, its tools."""

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        registry: ToolRegistry,
        cache: Path,
        pinning: Pinning | None,
        credentials: Credentials | None = None,
    ) -> None:
        self.name = name
        self.config = config
        self.status: Status = "disabled" if config.disabled else "connecting"
        self.reason = ""
        self._mount = Mount(self, registry, cache / f"{plain(name)}.json", pinning)
        self._access = Access(cache, credentials)
        self._demand = Demand(config.idle_stop)
        self._listed = 0.0
        self._has_resources = False
        self._connection: _Connection | None = None
        self._ready = asyncio.Event()
        self._ended = asyncio.Event()
        """Set while it is down."""

    @property
    def tools(self) -> tuple[types.Tool, ...]:
        """The tools in use."""
        return self._mount.tools

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Tools that may not be used, by name, and why: until `stepgate mcp-servers review`."""
        return self._mount.quarantined

    @property
    def standing(self) -> str:
        """How it is, in one line for people: status, tools, what is wrong, what is in quarantine."""
        told = f"{self.status}, {len(self.tools)} {'tool' if len(self.tools) == 1 else 'tools'}"
        told += " (stopped while nobody uses it; a call starts it)" if self.status == "idle" else ""
        told += f": {self.reason}" if self.reason else ""
        if self.quarantined:
            told += f"; in quarantine: {names_of(self.quarantined)} (see `stepgate mcp-servers review`)"
        return told

    @property
    def origin(self) -> str:
        """What the registry knows this server's tools by."""
        return f"mcp:{self.name}"

    async def recall(self) -> None:
        """Mount the last good list, as far as it is accepted: plans may be made before the server has answered.
        Raises `StoreError`."""
        await self._mount.recall()

    async def own(self) -> None:
        """Connect, serve, and begin again, until cancelled."""
        pause = FIRST_PAUSE_S
        while True:
            began = monotonic()
            try:
                await self._serve_once()
                pause = FIRST_PAUSE_S
                await self._sleep()
            except Exception as error:  # noqa: BLE001 - the border to foreign code: whatever breaks is its status
                self._down(self._access.problem or cause(error))
                log.warning("MCP server %r is down: %s", self.name, self.reason)
                pause = FIRST_PAUSE_S if monotonic() - began > SOUND_S else pause
                await self._rest(pause)
                pause = min(LONGEST_PAUSE_S, 2 * pause)

    async def call(self, call: ForeignCall) -> types.CallToolResult:
        """Call a tool of this server. Raises `ToolError` saying what is wrong with it, `ToolQuarantinedError` when it
        is not any more what it was when the caller got hold of it."""
        with self._demand.caller():
            try:
                return await self._call_once(call)
            except NotTakenError:  # refused unread, by a server that was restarted: nothing was done
                return await self._call_once(call)

    async def _call_once(self, call: ForeignCall) -> types.CallToolResult:
        connection = await self._connected()
        self._mount.must_be(call.tool, call.definition)
        limit = self.config.timeout
        try:
            return await asked(connection.client, call, limit)
        except Exception as error:
            failure = failure_of(self.name, error, limit, self._access.problem, self._access.status)
            if isinstance(failure, NotTakenError | ConnectionEndedError):
                self._lose(connection)
            if isinstance(failure, ConnectionEndedError):
                failure = await self._with_its_end(failure)
            raise failure from error

    async def _with_its_end(self, failure: ConnectionEndedError) -> ConnectionEndedError:
        """The failure of a call with how the server ended, which its owner finds out a moment later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_TOLD_S):
                await self._ended.wait()
        known = self.status == "down" and self.reason not in failure.message
        return ConnectionEndedError(f"{failure.message} ({self.reason})", agent_id=self.name) if known else failure

    def _lose(self, connection: _Connection) -> None:
        """Have the connection made anew; whoever calls meanwhile waits for the new one."""
        connection.broken.set()
        if self._connection is connection:
            self._ready.clear()

    async def _connected(self) -> _Connection:
        try:
            async with asyncio.timeout(patience_with(self.config)):
                await self._ready.wait()
        except TimeoutError as error:
            why = self.reason or "it has not answered yet"
            raise ToolError(
                f"MCP server {self.name!r} is {self.status}: {why}; see `stepgate mcp-servers test {self.name}`",
                agent_id=self.name,
            ) from error
        if self._connection is None:
            raise ToolError(f"MCP server {self.name!r} is down: {self.reason}", agent_id=self.name)
        return self._connection

    async def _serve_once(self) -> None:
        """One connection, from its making to its end: returns when it is not needed any more. Opened and closed here,
        in the owner's own task."""
        self.status = "connecting"
        broken = asyncio.Event()
        async with asyncio.timeout(CONNECT_SECONDS) as limit:
            client = make_client(self.name, self.config, self._message, access=self._access, ended=broken.set)
            async with client:
                connection = _Connection(client, broken)
                await self._list(connection)
                limit.reschedule(None)
                self._connection, self.status, self.reason = connection, "ready", self._mount.faults
                self._demand.begin()
                self._ended.clear()
                self._ready.set()
                try:
                    await self._watch(connection)
                finally:
                    self._ready.clear()
                    self._connection = None

    async def _watch(self, connection: _Connection) -> None:
        """Follow changes of the list, and of the pins, until the connection breaks; returns when nobody needs it."""
        broken = asyncio.ensure_future(connection.broken.wait())
        try:
            while not broken.done():
                changed = asyncio.ensure_future(connection.changed.wait())
                try:
                    await asyncio.wait((broken, changed), timeout=PIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                since = monotonic() - self._listed
                if broken.done():
                    break
                if self._demand.over:
                    return
                if not connection.changed.is_set() and since < RELIST_SECONDS:
                    await self._mount.look()
                    self.reason = self._mount.faults
                    continue
                await asyncio.wait((broken,), timeout=max(0.0, LIST_PAUSE_S - since))
                connection.changed.clear()
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._list(connection)
                self.reason = self._mount.faults
        finally:
            broken.cancel()
        raise ConnectionError("the connection was lost")

    async def _sleep(self) -> None:
        """Stay stopped until somebody calls."""
        self.status = "idle"
        while not await self._demand.comes(PIN_SECONDS):
            await self._mount.look()
            self.reason = self._mount.faults

    async def _rest(self, seconds: float) -> None:
        """Stay away from a server that is down; not for longer than a moment when somebody calls."""
        await asyncio.sleep(min(seconds, FIRST_PAUSE_S))
        await self._demand.comes(seconds - FIRST_PAUSE_S)

    async def _list(self, connection: _Connection) -> None:
        tools = await tools_of(connection.client)
        resources = await resource_tools(connection.client, tools)
        self._has_resources = bool(resources)
        self._listed = monotonic()
        await self._mount.take([*tools, *resources])

    async def _message(self, message: object) -> None:
        connection = self._connection
        if connection is None:
            return
        if isinstance(message, types.ToolListChangedNotification):
            connection.changed.set()
        elif isinstance(message, types.ResourceListChangedNotification) and not self._has_resources:
            connection.changed.set()  # its first: from now on they can be read
        elif isinstance(message, Exception):
            connection.broken.set()

    def _down(self, reason: str) -> None:
        self.status, self.reason = "down", reason
        self._ended.set()


class McpHub:
    """All configured servers."""

    def __init__(
        self,
        servers: Mapping[str, McpServerConfig],
        registry: ToolRegistry,
        cache: Path,
        pinning: Pinning | None,
        credentials: Credentials | None = None,
    ) -> None:
        self.servers = {
            name: McpServer(name, config, registry, cache, pinning, credentials) for name, config in servers.items()
        }
        self._tasks: list[asyncio.Task[None]] = []

    async def recall(self) -> None:
        """Mount what the servers last offered, without starting any. Raises `StoreError`."""
        for server in self.servers.values():
            if server.status != "disabled":
                await server.recall()

    async def start(self) -> None:
        """Mount what the servers last offered, and begin to connect. Raises `StoreError`."""
        await self.recall()
        for server in self.servers.values():
            if server.status != "disabled":
                self._tasks.append(asyncio.create_task(server.own(), name=f"mcp {server.name}"))

    async def aclose(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=10)
