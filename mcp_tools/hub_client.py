"""Connections to foreign MCP servers: one client for each transport, with our headers and time limits.

What is sent is what the operator's file says, and nothing of the caller: never their token.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client._transport import Transport, TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from mcp_tools.hub_access import Access
from mcp_tools.hub_resources import answered, is_ours
from mcp_tools.hub_said import log_of, progress_to
from mcp_tools.hub_tool import ForeignCall
from mcp_tools.mcp_config import McpServerConfig
from mcp_tools.stdio import stdio

CONNECT_SECONDS = 15.0
"""A server that has not answered `initialize` by then is tried again later."""
MAX_TOOLS = 500

Ended = Callable[[], None]


def _unheard() -> None:
    """For who does not want to know."""


def make_client(
    name: str, config: McpServerConfig, handler: Any = None, *, access: Access | None = None, ended: Ended = _unheard
) -> Client:
    """A client for a server, not yet connected; `ended` is called when its process has ended. Raises `ToolError` where
    there is nothing to prove who we are with."""

    def client(transport: Transport) -> Client:
        return Client(
            transport,
            message_handler=handler,
            logging_callback=log_of(name),
            read_timeout_seconds=config.timeout,
            client_info=types.Implementation(name="stepgate", title="Stepgate", version=version("stepgate")),
        )

    if config.transport == "stdio":
        return client(stdio(name, config, ended))
    access = access or Access()
    auth = access.auth(name, config)
    headers = dict(config.headers)
    if config.transport == "sse":
        return client(sse_client(config.url, headers, httpx_client_factory=access.client, auth=auth))
    return client(_http(config, headers, access, auth))


async def tools_of(client: Client) -> list[types.Tool]:
    """All tools of a server, up to `MAX_TOOLS`. Raises what the client raises."""
    tools: list[types.Tool] = []
    cursor: str | None = None
    while len(tools) < MAX_TOOLS:
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        tools += page.tools
        if not (cursor := page.next_cursor):
            break
    return tools[:MAX_TOOLS]


async def asked(client: Client, call: ForeignCall, limit: float) -> types.CallToolResult:
    """What a call returns, within `limit` seconds. Raises what the client raises."""
    if is_ours(call.definition):
        return await answered(client, call.definition, call.args)
    meta = types.RequestParamsMeta(**{"stepgate/idempotencyKey": call.key})  # type: ignore[typeddict-unknown-key]
    progress = progress_to(call.told)
    return await client.call_tool(
        call.tool, call.args, read_timeout_seconds=limit, meta=meta, progress_callback=progress
    )


@asynccontextmanager
async def _http(
    config: McpServerConfig, headers: dict[str, str], access: Access, auth: httpx2.Auth | None
) -> AsyncIterator[TransportStreams]:
    """Streamable HTTP with our headers; the SDK leaves a client it was given to its owner to close."""
    limits = httpx2.Timeout(config.timeout, connect=CONNECT_SECONDS)
    async with (
        access.client(headers, limits, auth) as http,
        streamable_http_client(config.url, http_client=http) as streams,
    ):
        yield streams
