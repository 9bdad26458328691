"""`MappedStream`: a read stream of the MCP SDK that changes, or looks at, each message it receives."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from mcp.shared._stream_protocols import ReadStream
from mcp.shared.message import SessionMessage

Item = SessionMessage | Exception
"""An item of a stream: a message, or the error of one that could not be parsed."""


class MappedStream:
    """The stream, whose items pass through `change`; one that it changes to None is left out."""

    def __init__(self, stream: ReadStream[Item], change: Callable[[Item], Item | None]) -> None:
        self._stream = stream
        self._change = change

    @property
    def last_context(self) -> Any:
        """The context of the sender, which the SDK's dispatcher restores."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Item:
        """The next item. Raises what the stream raises at its end."""
        while (item := self._change(await self._stream.receive())) is None:
            pass
        return item

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while (item := self._change(await self._stream.__anext__())) is None:
            pass
        return item

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, traceback)
