"""Fills in fields that protocol version 2026-07-28 requires in results and that many servers omit.

The SDK rejects such results, so that a server without `resultType` would have no tools at all. The defaults are those
of the specification for a missing field: a complete result that must not be cached.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import mcp_types as types
from mcp.client._transport import ReadStream, Transport, TransportStreams
from mcp.shared.message import SessionMessage

_CACHEABLE = frozenset(("tools", "prompts", "resources", "resourceTemplates", "contents", "supportedVersions"))
"""Keys of results that carry caching hints."""
_CACHE_DEFAULTS = {"ttlMs": 0, "cacheScope": "private"}


@asynccontextmanager
async def fill_missing_fields(transport: Transport) -> AsyncIterator[TransportStreams]:
    """Opens the transport; results that it receives have the required fields."""
    async with transport as (read, write):
        yield _FillingStream(read), write


class _FillingStream:
    """A read stream that completes results."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception]) -> None:
        self._stream = stream

    @property
    def last_context(self) -> Any:
        """The context of the sender, which the SDK's dispatcher restores."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return _complete(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _complete(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, traceback)


def _complete(item: SessionMessage | Exception) -> SessionMessage | Exception:
    if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCResponse):
        result = item.message.result
        result.setdefault("resultType", "complete")
        if result["resultType"] == "complete" and not _CACHEABLE.isdisjoint(result):
            for name, value in _CACHE_DEFAULTS.items():
                result.setdefault(name, value)
    return item
