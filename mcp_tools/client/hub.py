"""The MCP client side: external servers, whose tools are registered as `server__tool`.

One task owns each server: it connects, lists the tools, waits until the connection breaks, and starts again. A broken
server never stops or slows the gateway; its last good tool list stays, with the server's status. A server with
`idle_stop` is stopped after that many seconds without a call and started by the next one. Only tools that a person
accepted are registered (`tool_pins.py`). The owner task checks every `PIN_POLL_SECONDS` for decisions made in this or
another process. A server that is removed, disabled or changed is retired first, which ends its use at once, and then
its owner task is cancelled.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from time import monotonic

import mcp_types as types

from agent.core.errors import ToolError
from agent.net import SafeClient
from agent.storage.credentials import Credentials
from agent.tools import ToolRegistry
from mcp_tools.client.authentication import ServerAuthentication
from mcp_tools.client.config import McpServerConfig, to_tool_alphabet
from mcp_tools.client.connection import Connection, ConnectionSlot, end_owner_tasks
from mcp_tools.client.errors import RETIRED, describe_cause
from mcp_tools.client.http_refusals import may_be_older_transport
from mcp_tools.client.idle_stop import UsageTracker
from mcp_tools.client.lenient_results import ResultRepairs
from mcp_tools.client.remote_tool import RemoteCall
from mcp_tools.client.resources import find_resource_tools
from mcp_tools.client.server_calls import ServerCalls, Status
from mcp_tools.client.server_requests import ServerRequests
from mcp_tools.client.starting import StartClock, StartQueue
from mcp_tools.client.status_line import format_status_line
from mcp_tools.client.tool_pin_store import PinSettings
from mcp_tools.client.tool_registration import ToolRegistration
from mcp_tools.client.transports import CONNECT_TIMEOUT_S, fetch_tools, make_client

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""The pause between two attempts to connect. It doubles each time, and a call ends it."""
STABLE_CONNECTION_S = 10.0
"""A connection that lasted so long was good: after it the pauses start at the shortest again."""
OLDER_TRANSPORT_S = 5.0
"""How long a server that refuses the streamable transport may take to connect by the older one: others may hold the
request for events open for ever."""
RELIST_SECONDS = 300.0
"""How often the tool list is fetched from a server that announces no changes."""
LIST_PAUSE_S = 1.0
"""The shortest time between two fetches, however often a server announces changes."""
PIN_POLL_SECONDS = 2.0
"""How soon a running gateway applies a decision of `stepgate mcp-servers review`."""


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
        starts: StartQueue | None = None,
    ) -> None:
        """`starts` limits how many servers start at the same time."""
        self.name, self.config = name, config
        self.status: Status = "disabled" if config.disabled else "connecting"
        self.reason = ""
        # A room's server is stored under its whole name: `x@a.b` and `x@a_b` may belong to different owners.
        file_name = to_tool_alphabet(name) if config.room is None else name
        self._registration = ToolRegistration(self, registry, cache / f"{file_name}.json", pinning)
        self._authentication = ServerAuthentication(cache, credentials, safe if config.public_only else None)
        self._usage = UsageTracker(config.idle_stop)
        self._requests, self._repairs = ServerRequests(name), ResultRepairs(name)
        self._starts, self._start = starts or StartQueue(), StartClock(config.startup_limit_s)
        self._slot = ConnectionSlot()
        self._listed_at = 0.0
        self._has_resources = False
        self._skips_probe = False
        """Whether the next connection begins with the handshake of older protocols."""
        self._probe_failure: Exception | None = None
        """How the current start failed with the probe, if it goes on without it."""
        self._has_older_transport = False
        """Whether the server at a `url` has the transport of 2024, with server-sent events."""
        self._went_down = asyncio.Event()
        """Set while the server is down."""
        self._calls = ServerCalls(
            self, self._slot, self._start, self._usage, self._registration, self._authentication, self._requests,
            self._went_down,
        )  # fmt: skip

    @property
    def _connection(self) -> Connection | None:
        return self._slot.connection

    def _is_retired(self) -> bool:
        return self._slot.is_closed

    @property
    def tools(self) -> tuple[types.Tool, ...]:
        """The registered tools."""
        return self._registration.tools

    @property
    def instructions(self) -> str:
        """The server's instructions; empty until somebody has accepted them."""
        return self._registration.instructions

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Tools that may not be used until `stepgate mcp-servers review`: the reason for each name."""
        return self._registration.quarantined

    @property
    def status_line(self) -> str:
        """The state in one line for people: status, number of tools, problems, quarantined tools."""
        return format_status_line(self.status, len(self.tools), self._start.describe(), self.reason, self.quarantined)

    @property
    def origin(self) -> str:
        """The origin of this server's tools in the registry."""
        return f"mcp:{self.name}"

    async def restore_cached_tools(self) -> None:
        """Registers the accepted tools of the last good list, so that plans can use them before the server answers.

        Raises `StoreError`.
        """
        await self._registration.restore_cached_tools()

    def retire(self) -> None:
        """Ends the server for good, because it was removed, disabled or changed.

        When this returns, its tools are unregistered and stay so, calls are refused, also those of runs that hold its
        tools or that wait for it, and no request or credential is sent. Its owner task is still to be cancelled.
        """
        self._start.stop()
        self.status, self.reason = "disabled", RETIRED
        self._authentication.revoke()
        self._registration.close()
        self._slot.close()

    async def run(self) -> None:
        """Connects and serves, again and again, until cancelled or retired."""
        pause = FIRST_PAUSE_S
        while not self._is_retired():
            began = monotonic()
            try:
                await self._serve_once()
                pause = FIRST_PAUSE_S
                await self._wait_for_call()
            except Exception as error:  # noqa: BLE001 - boundary to external code: any failure becomes the server's status
                if self._is_retired():
                    return
                self.status, self.reason = "down", self._authentication.problem or describe_cause(error)
                self._went_down.set()
                log.warning("MCP server %r is down: %s", self.name, self.reason)
                pause = FIRST_PAUSE_S if monotonic() - began > STABLE_CONNECTION_S else pause
                await self._pause_before_retry(pause)
                pause = min(LONGEST_PAUSE_S, 2 * pause)

    async def call(self, call: RemoteCall) -> types.CallToolResult:
        """Calls a tool of this server. Raises `ToolError`; see `ServerCalls.call`."""
        return await self._calls.call(call)

    async def _serve_once(self) -> None:
        """Opens one connection, serves until it is no longer needed, and closes it, all in the owner task."""
        self.status = "connecting"
        async with AsyncExitStack() as stack:
            connection = await self._start_connection(stack)
            if self._is_retired():
                return
            self.status = "ready"
            self._show_problems()
            self._usage.restart_idle_timer()
            self._went_down.clear()
            self._slot.set(connection)
            try:
                await self._watch_connection(connection)
            finally:
                self._slot.clear()

    async def _start_connection(self, stack: AsyncExitStack) -> Connection:
        """A connection with its tools registered, opened on the stack when it is the server's turn.

        Raises `ToolError` if this takes longer than the server's `startup_timeout`, and what the client raises.
        """
        limit_s = self.config.startup_limit_s
        try:
            self._start.wait()
            async with self._starts.wait_for_turn(self._usage), asyncio.timeout(limit_s) as limit:
                self._start.start()
                connection = await self._open_connection(stack)
                await self._refresh_tools(connection)
                return connection
        except TimeoutError as error:
            if not limit.expired():
                raise
            self._skips_probe = self._repairs.is_probe_unanswered
            problem = f"no answer within {limit_s:g} s; `startup_timeout` sets another limit"
            if self._probe_failure is not None:
                problem = f"{describe_cause(self._probe_failure)}; tried once more with an older protocol: {problem}"
            raise ToolError(problem, agent_id=self.name) from error
        finally:
            self._start.stop()

    async def _open_connection(self, stack: AsyncExitStack) -> Connection:
        """A connection with a connected client, opened on the stack.

        Some servers end the connection at any request before `initialize`, or ignore it: they are asked once more
        without the probe for newer protocols, and first so from then on. So are those that refuse the streamable
        transport, by that of older servers.
        """
        config, refusal, self._probe_failure = self.config, None, None
        if self._has_older_transport:
            config = _with_older_transport(config)
        self._has_older_transport = False
        while True:
            skips_probe, self._skips_probe = self._skips_probe, False
            # Events of each attempt, and before the handshake: the list may change while it is being fetched.
            broken, changed = asyncio.Event(), asyncio.Event()
            client = make_client(
                self.name, config, partial(self._on_message, broken, changed), access=self._authentication,
                ended=broken.set, requests=self._requests, repairs=self._repairs, skips_probe=skips_probe,
            )  # fmt: skip
            try:
                async with asyncio.timeout(None if refusal is None else OLDER_TRANSPORT_S):
                    await stack.enter_async_context(client)
            except Exception as error:
                if refusal is not None:
                    problem = f"{describe_cause(refusal)}, and it serves no events either: check its `url`"
                    raise ToolError(problem, agent_id=self.name) from refusal
                if self._authentication.problem:
                    raise
                if config.transport == "http" and may_be_older_transport(error):
                    config, refusal = _with_older_transport(config), error
                elif self._repairs.was_probed:
                    self._skips_probe, self._probe_failure = True, error
                    if config.transport == "stdio" and self._start.is_half_over:
                        raise  # the next start begins without the probe, and has the whole time
                else:
                    raise
                continue
            self._has_older_transport = config.transport != self.config.transport
            self._skips_probe = skips_probe or self._repairs.is_probe_unanswered
            return Connection(client, broken, changed)

    async def _watch_connection(self, connection: Connection) -> None:
        """Follows changes of the tool list and the pins. Returns when the server is idle for too long; raises
        `ConnectionError` when the connection breaks.
        """
        broken = asyncio.ensure_future(connection.broken.wait())
        try:
            while not broken.done() and not self._is_retired():
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
                    self._show_problems()
                    continue
                await asyncio.wait((broken,), timeout=max(0.0, LIST_PAUSE_S - since))
                connection.changed.clear()
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await self._refresh_tools(connection)
                self._show_problems()
        finally:
            broken.cancel()
        raise ConnectionError("the connection was lost")

    async def _wait_for_call(self) -> None:
        """Stays stopped until somebody calls."""
        if not self._is_retired():
            self.status = "idle"
        while not self._is_retired() and not await self._usage.wait_for_call(PIN_POLL_SECONDS):
            await self._registration.refresh_pins()
            self._show_problems()

    async def _pause_before_retry(self, seconds: float) -> None:
        """Waits before the next attempt to connect; shorter if somebody calls."""
        await asyncio.sleep(min(seconds, FIRST_PAUSE_S))
        await self._usage.wait_for_call(seconds - FIRST_PAUSE_S)

    async def _refresh_tools(self, connection: Connection) -> None:
        tools, faults = await fetch_tools(connection.client)
        resources = await find_resource_tools(connection.client, tools)
        self._has_resources = bool(resources)
        self._listed_at = monotonic()
        faults = (*faults, *self._repairs.take_faults())
        await self._registration.update_offers([*tools, *resources], connection.client.instructions or "", faults)

    async def _on_message(self, broken: asyncio.Event, changed: asyncio.Event, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()
        elif isinstance(message, types.ResourceListChangedNotification) and not self._has_resources:
            changed.set()  # its first resources: add the tools that read them
        elif isinstance(message, Exception) and self._connection is not None:
            broken.set()

    def _show_problems(self) -> None:
        self.reason = RETIRED if self._is_retired() else self._registration.problems


def _with_older_transport(config: McpServerConfig) -> McpServerConfig:
    return config.model_copy(update={"transport": "sse"})


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
        starts = StartQueue()

        def build(name: str, config: McpServerConfig) -> McpServer:
            return McpServer(name, config, registry, cache, pinning, credentials, safe or SafeClient(), starts)

        self._build = build
        self.servers = {name: build(name, config) for name, config in servers.items()}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()

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
        await self.stop_outdated(servers)
        for name, config in servers.items():
            if name in self.servers:
                continue
            server = self._build(name, config)
            if not config.disabled:
                await server.restore_cached_tools()
            self.servers[name] = server
            self._start_server(server)

    async def stop_outdated(self, servers: Mapping[str, McpServerConfig]) -> None:
        """Stops the servers that differ from these. Their use has ended before this first waits, and each task has
        ended afterwards, or will at its next step, within `CLOSE_TIMEOUT_S`. Their calls in progress fail.
        """
        outdated = [name for name, server in self.servers.items() if servers.get(name) != server.config]
        for name in outdated:
            self.servers.pop(name).retire()
        stopping = {self._tasks.pop(name) for name in outdated if name in self._tasks}
        self._stopping |= stopping
        self._stopping -= stopping - await end_owner_tasks(stopping)

    async def aclose(self) -> None:
        """Closes every connection."""
        await end_owner_tasks({*self._tasks.values(), *self._stopping})

    def _start_server(self, server: McpServer) -> None:
        if server.status != "disabled":
            self._tasks[server.name] = asyncio.create_task(server.run(), name=f"mcp {server.name}")
