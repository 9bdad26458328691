"""Connections to external MCP servers: one client for each transport, with our headers and time limits.

Requests carry what the operator's file says and nothing of the caller, in particular not their token.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client._transport import Transport, TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from mcp_tools.client.authentication import ServerAuthentication
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.http_refusals import is_unknown_method, may_mean_unknown_session
from mcp_tools.client.lenient_results import ResultRepairs
from mcp_tools.client.lenient_tools import restore_schemas
from mcp_tools.client.notifications import make_log_handler, make_progress_handler
from mcp_tools.client.remote_tool import RemoteCall, get_longest_call_s
from mcp_tools.client.resources import call_resource_tool, is_resource_tool
from mcp_tools.client.server_requests import ServerRequests
from mcp_tools.client.stdio import open_stdio_transport

CONNECT_TIMEOUT_S = 15.0
"""Time limit of one HTTP connection, and of listing the tools again, in seconds."""
MAX_EVENT_BYTES = 64 * 2**20
"""Of a result in a stream. The SDK's megabyte ends calls that have had their effect, for one picture."""
MAX_TOOLS = 500
MAX_PAGES = 100
"""Pages of a list of tools that are read: a page may be empty, and a list may never end."""

OnEnd = Callable[[], None]


def _ignore_end() -> None:
    """Does nothing."""


def make_client(
    name: str,
    config: McpServerConfig,
    handler: Any = None,
    *,
    access: ServerAuthentication | None = None,
    ended: OnEnd = _ignore_end,
    requests: ServerRequests | None = None,
    repairs: ResultRepairs | None = None,
    skips_probe: bool = False,
) -> Client:
    """A client for a server, not yet connected. `ended` is called when its process has ended. `requests`
    handles what the server asks for during a call; without it, no such capability is declared. Only a trusted server
    may ask for a reply of the caller's model. `repairs` makes results valid and says what it left out. `skips_probe`
    begins with the handshake of protocols before 2026.

    Raises `ToolError` if the credential is missing.
    """

    def build_client(transport: Transport) -> Client:
        return Client(
            (repairs or ResultRepairs(name)).apply(transport),
            message_handler=handler,
            mode="legacy" if skips_probe else "auto",
            elicitation_callback=requests.elicit if requests is not None else None,
            # The reply of the caller's model goes to the server, and a prompt may ask it for anything.
            sampling_callback=requests.sample if requests is not None and config.trusted else None,
            logging_callback=make_log_handler(name),
            read_timeout_seconds=max(config.timeout, config.startup_limit_s),
            client_info=types.Implementation(name="stepgate", title="Stepgate", version=version("stepgate")),
        )

    access = access or ServerAuthentication()
    if config.transport == "stdio":
        return build_client(
            open_stdio_transport(name, config, ended, access.read_secret_env, lambda: access.is_revoked)
        )
    auth = access.make_auth(name, config)
    headers = dict(config.headers)
    if config.transport == "sse":
        return build_client(sse_client(config.url, headers, httpx_client_factory=access.make_http_client, auth=auth))
    return build_client(_open_http_transport(config, headers, access, auth))


async def fetch_tools(client: Client) -> tuple[list[types.Tool], tuple[str, ...]]:
    """The tools of a server, at most `MAX_TOOLS`, and what is wrong with its list.

    A list that repeats a cursor, goes on without end, or fails after its first page ends there. A server that does not
    know the request has none. Raises what the client raises.
    """
    tools: list[types.Tool] = []
    seen: set[str] = set()
    cursor: str | None = None
    problem = ""
    for _ in range(MAX_PAGES):
        try:
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        except MCPError as error:
            if cursor is None and is_unknown_method(error):
                return [], ("it offers no tools of its own",)  # perhaps resources
            if cursor is None or error.code == types.CONNECTION_CLOSED:
                raise
            problem = f"its list of tools ends after {len(tools)}, because the next page failed"
            break
        tools += map(restore_schemas, page.tools)
        cursor = page.next_cursor
        if not cursor or len(tools) >= MAX_TOOLS:
            break
        if cursor in seen:
            problem = f"its list of tools ends after {len(tools)}, because it repeats a page"
            break
        seen.add(cursor)
    else:
        problem = f"its list of tools ends after {len(tools)}, because it has more than {MAX_PAGES} pages"
    if len(tools) > MAX_TOOLS or (cursor and not problem):
        problem = f"only {MAX_TOOLS} of its tools are used"
    return tools[:MAX_TOOLS], (problem,) if problem else ()


async def is_session_known(client: Client) -> bool:
    """Whether the server still answers in the session of this client: it lists its tools. False only if it refuses
    that as it refuses an unknown session."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await client.list_tools(cache_mode="bypass")
    except MCPError as error:
        return error.code == types.METHOD_NOT_FOUND or not may_mean_unknown_session(error)
    except (TimeoutError, RuntimeError, ValidationError):
        return True
    return True


async def execute_call(client: Client, call: RemoteCall, limit: float) -> types.CallToolResult:
    """The result of a call, within `limit` seconds after it was sent, or after the server's last progress.

    Raises `TimeoutError` with the limit that was exceeded, and what the client raises.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + get_longest_call_s(limit)
    report = make_progress_handler(call.report_progress)
    clock = asyncio.timeout(limit)

    async def extend_limit(progress: float, total: float | None, message: str | None) -> None:
        with suppress(RuntimeError):  # the call has just ended
            clock.reschedule(min(loop.time() + limit, end))
        await report(progress, total, message)

    try:
        async with clock:
            if is_resource_tool(call.definition):
                return await call_resource_tool(client, call.definition, call.args)
            meta = types.RequestParamsMeta(**{"stepgate/idempotencyKey": call.idempotency_key})  # type: ignore[typeddict-unknown-key]
            spare = get_longest_call_s(limit) + limit  # the SDK's own limit, which must not end the call first
            return await client.call_tool(
                call.tool, call.args, read_timeout_seconds=spare, meta=meta, progress_callback=extend_limit
            )
    except TimeoutError as error:
        if not clock.expired():
            raise
        if loop.time() >= end:
            raise TimeoutError(f"did not finish within {get_longest_call_s(limit):g} s") from error
        raise TimeoutError(f"did not answer within {limit:g} s") from error


@asynccontextmanager
async def _open_http_transport(
    config: McpServerConfig, headers: dict[str, str], access: ServerAuthentication, auth: httpx2.Auth | None
) -> AsyncIterator[TransportStreams]:
    """Opens streamable HTTP with our headers. The SDK leaves closing a given HTTP client to its owner."""
    limits = httpx2.Timeout(config.timeout, connect=CONNECT_TIMEOUT_S)
    async with (
        access.make_http_client(headers, limits, auth) as http,
        streamable_http_client(config.url, http_client=http, max_sse_event_size=MAX_EVENT_BYTES) as streams,
    ):
        yield streams
