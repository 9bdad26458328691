"""The calls of one external MCP server's tools: each waits for the connection, and its failure is explained.

The server's owner task (`hub.py`) makes the connections.
"""

import asyncio
from contextlib import suppress
from typing import Literal, Protocol

import mcp_types as types

from agent.core.errors import ToolError, ToolOutcomeUnknownError, ToolTimeoutError
from mcp_tools.client.authentication import ServerAuthentication
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.connection import Connection, ConnectionSlot
from mcp_tools.client.errors import (
    OUTCOME_UNKNOWN,
    RETIRED,
    ConnectionEndedError,
    LostAnswerError,
    SessionUnknownError,
    add_reason,
    make_call_error,
    make_retired_error,
)
from mcp_tools.client.http_refusals import may_mean_unknown_session
from mcp_tools.client.idle_stop import UsageTracker
from mcp_tools.client.remote_tool import RemoteCall
from mcp_tools.client.server_requests import ServerRequests
from mcp_tools.client.starting import StartClock
from mcp_tools.client.tool_registration import ToolRegistration
from mcp_tools.client.transports import execute_call, is_session_known

END_REASON_WAIT_S = 1.0
"""How long a failed call waits for the reason why its server ended."""

Status = Literal["connecting", "ready", "idle", "down", "disabled"]


class CalledServer(Protocol):
    """The part of a server that its calls use."""

    name: str
    config: McpServerConfig
    status: Status
    reason: str


class ServerCalls:
    """Calls the tools of one server over its current connection."""

    def __init__(
        self,
        server: CalledServer,
        slot: ConnectionSlot,
        start: StartClock,
        usage: UsageTracker,
        registration: ToolRegistration,
        authentication: ServerAuthentication,
        requests: ServerRequests,
        went_down: asyncio.Event,
    ) -> None:
        """`went_down` is set while the server is down."""
        self._server, self._slot, self._start, self._usage = server, slot, start, usage
        self._registration, self._authentication, self._requests = registration, authentication, requests
        self._went_down = went_down

    async def call(self, call: RemoteCall) -> types.CallToolResult:
        """Calls a tool of this server.

        Raises `ToolError` with the server's problem, `ToolOutcomeUnknownError` if the answer to a call that may change
        something never came, and `ToolQuarantinedError` if the tool has changed since the caller looked it up.
        """
        with self._usage.track_call():
            try:
                try:
                    return await self._call_once(call)
                except SessionUnknownError:  # a restarted server rejected the call without executing it
                    return await self._call_once(call)
            except (LostAnswerError, ToolTimeoutError) as error:
                if not call.may_change:
                    raise
                ending = "" if error.message.endswith(OUTCOME_UNKNOWN) else OUTCOME_UNKNOWN
                raise ToolOutcomeUnknownError(f"{error.message}{ending}", agent_id=self._server.name) from error

    async def _call_once(self, call: RemoteCall) -> types.CallToolResult:
        connection = await self._wait_for_connection(call)
        self._registration.require_unchanged(call.tool, call.definition)
        name, limit = self._server.name, self._server.config.timeout
        try:
            with self._requests.track_call(call):
                return await execute_call(connection.client, call, limit)
        except Exception as error:
            if self._slot.is_closed:
                raise make_retired_error(name) from error
            failure = make_call_error(name, error, limit, self._authentication.problem)
            if may_mean_unknown_session(error) and not await is_session_known(connection.client):
                problem = f"MCP server {name!r} does not know our session: {failure.message}"
                failure = SessionUnknownError(problem, agent_id=name)
            if isinstance(failure, SessionUnknownError | ConnectionEndedError):
                self._slot.drop(connection)
            if isinstance(failure, ConnectionEndedError):
                failure = await self._add_end_reason(failure)
            raise failure from error

    async def _add_end_reason(self, failure: ConnectionEndedError) -> ConnectionEndedError:
        """The failure with the reason why the server ended, which the owner task learns a moment later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_REASON_WAIT_S):
                await self._went_down.wait()
        return add_reason(failure, self._server.name, self._server.reason) if self._server.status == "down" else failure

    async def _wait_for_connection(self, call: RemoteCall) -> Connection:
        """The connection. Waits for it while the server starts, and else for a short time."""
        server = self._server
        try:
            connection = await self._slot.wait(server.config, self._start, call.report_progress)
        except TimeoutError as error:
            why = self._start.describe() or server.reason or "it has not responded yet"
            raise ToolError(
                f"MCP server {server.name!r} is {server.status}: {why}; see `stepgate mcp-servers test {server.name}`",
                agent_id=server.name,
            ) from error
        if connection is None:
            state = f"no longer used: {RETIRED}" if self._slot.is_closed else f"down: {server.reason}"
            raise ToolError(f"MCP server {server.name!r} is {state}", agent_id=server.name)
        return connection
