"""The MCP server on stdin and stdout. Started by `stepgate mcp`."""

import sys
from types import TracebackType
from typing import Self

from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream
from mcp.shared.message import SessionMessage

from agent.core.settings import Settings
from gateway.bootstrap import build_gateway
from gateway.doors.mcp import STATE_KEY, build_served
from mcp_tools.server.mcp_server import build_server

Item = SessionMessage | Exception


async def serve_stdio(settings: Settings) -> None:
    """Serves until stdin ends."""
    async with build_gateway(settings, recover=False) as stepgate:
        server = build_server(lambda: build_served(stepgate), settings.data_dir / STATE_KEY)
        async with stdio_server() as (reading, writing):
            await server.run(_WarningStream(reading), writing, server.create_initialization_options())


class _WarningStream:
    """The SDK's stream. Reports invalid lines on stderr, which the server drops silently."""

    def __init__(self, stream: ReadStream[Item]) -> None:
        self._stream = stream

    async def receive(self) -> Item:
        return _warn_if_invalid(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return _warn_if_invalid(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


def _warn_if_invalid(item: Item) -> Item:
    if isinstance(item, Exception):
        print(
            "stepgate: a line on stdin is not a JSON-RPC message and is ignored; `stepgate mcp` is for MCP clients, "
            "people use `stepgate ask`",
            file=sys.stderr,
        )
    return item
