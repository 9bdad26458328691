"""Streams of the MCP SDK with something between: `MappedStream` changes what is received, `ObservedStream` looks at
what is sent.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

Item = SessionMessage | Exception
"""An item of a stream: a message, or the error of one that could not be parsed."""
Stream = TypeVar("Stream", bound=ReadStream[Item] | WriteStream[SessionMessage])


class _StreamContext(Generic[Stream]):
    """Closes and enters the stream below."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        """Closes the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, traceback)


class MappedStream(_StreamContext[ReadStream[Item]]):
    """The stream, whose items pass through `change`; one that it changes to None is left out."""

    def __init__(self, stream: ReadStream[Item], change: Callable[[Item], Item | None]) -> None:
        super().__init__(stream)
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

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while (item := self._change(await self._stream.__anext__())) is None:
            pass
        return item


class ObservedStream(_StreamContext[WriteStream[SessionMessage]]):
    """A write stream that shows each message before it is sent."""

    def __init__(self, stream: WriteStream[SessionMessage], observe: Callable[[SessionMessage], None]) -> None:
        super().__init__(stream)
        self._observe = observe

    async def send(self, item: SessionMessage, /) -> None:
        """Sends a message. Raises what the stream raises."""
        self._observe(item)
        await self._stream.send(item)
