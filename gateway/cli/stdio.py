"""The MCP server on stdin and stdout. Begun by `stepgate mcp`."""

import sys
from types import TracebackType
from typing import Self

from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream
from mcp.shared.message import SessionMessage

from agent.core.config import Settings
from gateway.bootstrap import build
from gateway.doors.mcp import STATE_KEY, served_by
from mcp_tools.server import build_server

Item = SessionMessage | Exception


async def serve_stdio(settings: Settings) -> None:
    """Serve until stdin ends."""
    async with build(settings, recover=False) as stepgate:
        server = build_server(lambda: served_by(stepgate), settings.data_dir / STATE_KEY)
        async with stdio_server() as (reading, writing):
            await server.run(_Reading(reading), writing, server.create_initialization_options())


class _Reading:
    """The SDK's stream, saying on stderr which lines are no messages: the server drops them without a word."""

    def __init__(self, stream: ReadStream[Item]) -> None:
        self._stream = stream

    async def receive(self) -> Item:
        return _told(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return _told(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


def _told(item: Item) -> Item:
    if isinstance(item, Exception):
        print(
            "stepgate: a line on stdin is no JSON-RPC message and is ignored; MCP clients start `stepgate mcp`, people "
            "use `stepgate ask`",
            file=sys.stderr,
        )
    return item
