"""The MCP client side: external servers, whose tools are registered as `server__tool`.

One task owns each server: it connects, lists the tools, waits until the connection breaks, and starts again. A broken
server never stops or slows the gateway; its last good tool list stays, with the server's status. A server with
`idle_stop` is stopped after that many seconds without a call and started by the next one. Only tools that a person
accepted are registered (`tool_pins.py`). The owner task checks every `PIN_POLL_SECONDS` for decisions made in this or
another process.
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

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import ToolError
from agent.net import SafeClient
from agent.storage.credentials import Credentials
from agent.tools import ToolRegistry
from mcp_tools.client.authentication import ServerAuthentication
from mcp_tools.client.config import McpServerConfig, to_tool_alphabet
from mcp_tools.client.errors import ConnectionEndedError, SessionUnknownError, describe_cause, make_call_error
from mcp_tools.client.idle_stop import UsageTracker
from mcp_tools.client.remote_tool import RemoteCall, get_connect_wait_s
from mcp_tools.client.resources import find_resource_tools
from mcp_tools.client.sanitize import format_names
from mcp_tools.client.server_requests import ServerRequests
from mcp_tools.client.tool_pin_store import PinSettings
from mcp_tools.client.tool_registration import ToolRegistration
from mcp_tools.client.transports import CONNECT_TIMEOUT_S, execute_call, fetch_tools, make_client

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""The pause between two attempts to connect. It doubles each time, and a call ends it."""
STABLE_CONNECTION_S = 10.0
"""A connection that lasted so long was good: after it the pauses start at the shortest again."""
END_REASON_WAIT_S = 1.0
"""How long a failed call waits for the reason why its server ended."""
RELIST_SECONDS = 300.0
"""How often the tool list is fetched from a server that announces no changes."""
CLOSE_TIMEOUT_S = 10.0
"""How long closing connections may take."""
LIST_PAUSE_S = 1.0
"""The shortest time between two fetches, however often a server announces changes."""
PIN_POLL_SECONDS = 2.0
"""How soon a running gateway applies a decision of `stepgate mcp-servers review`."""

Status = Literal["connecting", "ready", "idle", "down", "disabled"]


@dataclass
class _Connection:
    """The live client of a server, and the event that ends it."""

    client: Client
    broken: asyncio.Event
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class McpServer:
    """One external server: its owner task, status and tools."""

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        registry: ToolRegistry,
        cache: Path,
        pinning: PinSettings | None,
        credentials: Credentials | None = None,
        safe: SafeClient | None = None,
    ) -> None:
        self.name = name
        self.config = config
        self.status: Status = "disabled" if config.disabled else "connecting"
        self.reason = ""
        # A room's server is stored under its whole name: `x@a.b` and `x@a_b` may belong to different owners.
        file_name = to_tool_alphabet(name) if config.room is None else name
        self._registration = ToolRegistration(self, registry, cache / f"{file_name}.json", pinning)
        self._authentication = ServerAuthentication(cache, credentials, safe if config.public_only else None)
        self._usage = UsageTracker(config.idle_stop)
        self._requests = ServerRequests(name)
        self._listed_at = 0.0
        self._has_resources = False
        self._connection: _Connection | None = None
        self._ready = asyncio.Event()
        self._went_down = asyncio.Event()
        """Set while the server is down."""

    @property
    def tools(self) -> tuple[types.Tool, ...]:
        """The registered tools."""
        return self._registration.tools

    @property
    def instructions(self) -> str:
        """What the server says about its use; empty before somebody accepted it."""
        return self._registration.instructions

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Tools that may not be used until `stepgate mcp-servers review`: the reason for each name."""
        return self._registration.quarantined

    @property
    def status_line(self) -> str:
        """The state in one line for people: status, number of tools, problems, quarantined tools."""
        line = f"{self.status}, {len(self.tools)} {'tool' if len(self.tools) == 1 else 'tools'}"
        line += " (stopped while unused; a call starts it)" if self.status == "idle" else ""
        line += f": {self.reason}" if self.reason else ""
        if self.quarantined:
            line += f"; quarantined: {format_names(self.quarantined)} (see `stepgate mcp-servers review`)"
        return line

    @property
    def origin(self) -> str:
        """The origin of this server's tools in the registry."""
        return f"mcp:{self.name}"

    async def restore_cached_tools(self) -> None:
        """Registers the accepted tools of the last good list, so that plans can use them before the server answers.

        Raises `StoreError`.
        """
        await self._registration.restore_cached_tools()

    def unregister_tools(self) -> None:
        """Removes the server's tools from the registry, because it is no longer configured."""
        self.status, self.reason = "disabled", "it was removed from the configuration, or changed there"
        self._registration.unregister_all()

    async def run(self) -> None:
        """Connects and serves, again and again, until cancelled."""
        pause = FIRST_PAUSE_S
        while True:
            began = monotonic()
            try:
                await self._serve_once()
                pause = FIRST_PAUSE_S
                await self._wait_for_call()
            except Exception as error:  # noqa: BLE001 - boundary to external code: any failure becomes the server's status
                self._mark_down(self._authentication.problem or describe_cause(error))
                log.warning("MCP server %r is down: %s", self.name, self.reason)
                pause = FIRST_PAUSE_S if monotonic() - began > STABLE_CONNECTION_S else pause
                await self._pause_before_retry(pause)
                pause = min(LONGEST_PAUSE_S, 2 * pause)

    async def call(self, call: RemoteCall) -> types.CallToolResult:
        """Calls a tool of this server.

        Raises `ToolError` with the server's problem, and `ToolQuarantinedError` if the tool has changed since the
        caller looked it up.
        """
        with self._usage.track_call():
            try:
                return await self._call_once(call)
            except SessionUnknownError:  # a restarted server rejected the call without executing it
                return await self._call_once(call)

    async def _call_once(self, call: RemoteCall) -> types.CallToolResult:
        connection = await self._wait_for_connection()
        self._registration.require_unchanged(call.tool, call.definition)
        limit = self.config.timeout
        try:
            with self._requests.track_call(call):
                return await execute_call(connection.client, call, limit)
        except Exception as error:
            failure = make_call_error(
                self.name, error, limit, self._authentication.problem, self._authentication.last_status
            )
            if isinstance(failure, SessionUnknownError | ConnectionEndedError):
                self._drop_connection(connection)
            if isinstance(failure, ConnectionEndedError):
                failure = await self._add_end_reason(failure)
            raise failure from error

    async def _add_end_reason(self, failure: ConnectionEndedError) -> ConnectionEndedError:
        """Returns the failure with the reason why the server ended, which the owner task learns a moment later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_REASON_WAIT_S):
                await self._went_down.wait()
        is_new_reason = self.status == "down" and self.reason not in failure.message
        return (
            ConnectionEndedError(f"{failure.message} ({self.reason})", agent_id=self.name) if is_new_reason else failure
        )

    def _drop_connection(self, connection: _Connection) -> None:
        """Ends the connection so that a new one is made. Calls wait for the new one."""
        connection.broken.set()
        if self._connection is connection:
            self._ready.clear()

    async def _wait_for_connection(self) -> _Connection:
        try:
            async with asyncio.timeout(get_connect_wait_s(self.config)):
                await self._ready.wait()
        except TimeoutError as error:
            why = self.reason or "it has not responded yet"
            raise ToolError(
                f"MCP server {self.name!r} is {self.status}: {why}; see `stepgate mcp-servers test {self.name}`",
                agent_id=self.name,
            ) from error
        if self._connection is None:
            raise ToolError(f"MCP server {self.name!r} is down: {self.reason}", agent_id=self.name)
        return self._connection

    async def _serve_once(self) -> None:
        """Opens one connection, serves until it is no longer needed, and closes it, all in the owner task."""
        self.status = "connecting"
        broken = asyncio.Event()
        async with asyncio.timeout(CONNECT_TIMEOUT_S) as limit:
            client = make_client(
                self.name,
                self.config,
                self._on_message,
                access=self._authentication,
                ended=broken.set,
                requests=self._requests,
            )
            async with client:
                connection = _Connection(client, broken)
                await self._refresh_tools(connection)
                limit.reschedule(None)
                self._connection, self.status, self.reason = connection, "ready", self._registration.problems
                self._usage.restart_idle_timer()
                self._went_down.clear()
                self._ready.set()
                try:
                    await self._watch_connection(connection)
                finally:
                    self._ready.clear()
                    self._connection = None

    async def _watch_connection(self, connection: _Connection) -> None:
        """Follows changes of the tool list and the pins. Returns when the server is idle for too long; raises
        `ConnectionError` when the connection breaks.
        """
        broken = asyncio.ensure_future(connection.broken.wait())
        try:
            while not broken.done():
                changed = asyncio.ensure_future(connection.changed.wait())
                try:
                    await asyncio.wait((broken, changed), timeout=PIN_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                since = monotonic() - self._listed_at
                if broken.done():
                    break
                if self._usage.is_idle_too_long:
                    return
                if not connection.changed.is_set() and since < RELIST_SECONDS:
                    await self._registration.refresh_pins()
                    self.reason = self._registration.problems
                    continue
                await asyncio.wait((broken,), timeout=max(0.0, LIST_PAUSE_S - since))
                connection.changed.clear()
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await self._refresh_tools(connection)
                self.reason = self._registration.problems
        finally:
            broken.cancel()
        raise ConnectionError("the connection was lost")

    async def _wait_for_call(self) -> None:
        """Stays stopped until somebody calls."""
        self.status = "idle"
        while not await self._usage.wait_for_call(PIN_POLL_SECONDS):
            await self._registration.refresh_pins()
            self.reason = self._registration.problems

    async def _pause_before_retry(self, seconds: float) -> None:
        """Waits before the next attempt to connect; shorter if somebody calls."""
        await asyncio.sleep(min(seconds, FIRST_PAUSE_S))
        await self._usage.wait_for_call(seconds - FIRST_PAUSE_S)

    async def _refresh_tools(self, connection: _Connection) -> None:
        tools = await fetch_tools(connection.client)
        resources = await find_resource_tools(connection.client, tools)
        self._has_resources = bool(resources)
        self._listed_at = monotonic()
        await self._registration.update_offers([*tools, *resources], connection.client.instructions or "")

    async def _on_message(self, message: object) -> None:
        connection = self._connection
        if connection is None:
            return
        if isinstance(message, types.ToolListChangedNotification):
            connection.changed.set()
        elif isinstance(message, types.ResourceListChangedNotification) and not self._has_resources:
            connection.changed.set()  # its first resources: add the tools that read them
        elif isinstance(message, Exception):
            connection.broken.set()

    def _mark_down(self, reason: str) -> None:
        self.status, self.reason = "down", reason
        self._went_down.set()


class McpHub:
    """All configured servers. `servers` changes in place when the configuration does."""

    def __init__(
        self,
        servers: Mapping[str, McpServerConfig],
        registry: ToolRegistry,
        cache: Path,
        pinning: PinSettings | None,
        credentials: Credentials | None = None,
        safe: SafeClient | None = None,
    ) -> None:
        """`safe` decides which addresses servers with `public_only` may have."""

        def build(name: str, config: McpServerConfig) -> McpServer:
            return McpServer(name, config, registry, cache, pinning, credentials, safe or SafeClient())

        self._build = build
        self.servers = {name: build(name, config) for name, config in servers.items()}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def restore_cached_tools(self) -> None:
        """Registers the cached tools of all servers without starting any. Raises `StoreError`."""
        for server in self.servers.values():
            if server.status != "disabled":
                await server.restore_cached_tools()

    async def start(self) -> None:
        """Registers the cached tools and starts to connect. Raises `StoreError`."""
        await self.restore_cached_tools()
        for server in self.servers.values():
            self._start_server(server)

    async def apply(self, servers: Mapping[str, McpServerConfig]) -> None:
        """Makes these the configured servers: stops those that are gone or changed, starts new and changed ones.

        The others keep their connections. Raises `StoreError`; then a later call completes the change.
        """
        for name in [name for name, server in self.servers.items() if servers.get(name) != server.config]:
            await self._stop_server(name)
        for name, config in servers.items():
            if name in self.servers:
                continue
            server = self._build(name, config)
            if not config.disabled:
                await server.restore_cached_tools()
            self.servers[name] = server
            self._start_server(server)

    async def aclose(self) -> None:
        """Closes every connection."""
        await cancel_and_wait(*self._tasks.values(), timeout_s=CLOSE_TIMEOUT_S)

    def _start_server(self, server: McpServer) -> None:
        if server.status != "disabled":
            self._tasks[server.name] = asyncio.create_task(server.run(), name=f"mcp {server.name}")

    async def _stop_server(self, name: str) -> None:
        """Closes a server's connection and removes its tools. Its calls in progress fail."""
        self.servers.pop(name).unregister_tools()
        task = self._tasks.get(name)
        if task is not None:
            await cancel_and_wait(task, timeout_s=CLOSE_TIMEOUT_S)
            del self._tasks[name]  # not before: `aclose` waits for it if this is cancelled
