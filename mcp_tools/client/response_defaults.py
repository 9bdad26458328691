"""Fills in fields that protocol version 2026-07-28 requires in results and that many servers omit.

The SDK rejects such results, so that a server without `resultType` would have no tools at all. The defaults are those
of the specification for a missing field: a complete result that must not be cached.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import mcp_types as types
from mcp.client._transport import Transport, TransportStreams
from mcp.shared.message import SessionMessage

from mcp_tools.mapped_stream import Item, MappedStream

_CACHEABLE = frozenset(("tools", "prompts", "resources", "resourceTemplates", "contents", "supportedVersions"))
"""Keys of results that carry caching hints."""
_CACHE_DEFAULTS = {"ttlMs": 0, "cacheScope": "private"}


@asynccontextmanager
async def fill_missing_fields(transport: Transport) -> AsyncIterator[TransportStreams]:
    """Opens the transport; results that it receives have the required fields."""
    async with transport as (read, write):
        yield MappedStream(read, _complete), write


def _complete(item: Item) -> Item:
    if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCResponse):
        result = item.message.result
        result.setdefault("resultType", "complete")
        if result["resultType"] == "complete" and not _CACHEABLE.isdisjoint(result):
            for name, value in _CACHE_DEFAULTS.items():
                result.setdefault(name, value)
    return item
