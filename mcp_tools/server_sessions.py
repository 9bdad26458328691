"""Sessions of the 2025 era: a log of each session's events, so that a client whose stream broke can resume it.

The 2026 revision has neither sessions nor resumption; its requests pass through here untouched."""

from collections import deque
from dataclasses import dataclass
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import JSONRPCMessage

Context = ServerRequestContext[Any, Any]

MAX_EVENTS = 200
"""Kept for each session; a run tells a few dozen steps. What is older is lost to a client that comes back."""
MAX_CHARS = 1_000_000
"""Kept for each session, in characters of JSON, so that large results do not add up."""
MAX_SESSIONS = 1_000
"""Sessions at a time; with `MAX_CHARS` this bounds what idle clients can hold of the gateway's memory."""
RETRY_MS = 1_000
"""How long a client whose stream was closed should wait before it resumes."""


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int
    stream: StreamId
    message: JSONRPCMessage | None
    chars: int


class SessionLog(EventStore):
    """The newest events of one session, over all its streams. One that is larger than all that is kept is not, and
    nothing before it: who resumes from there is told that it is gone."""

    def __init__(self, max_events: int = MAX_EVENTS, max_chars: int = MAX_CHARS) -> None:
        self._entries: deque[_Entry] = deque()
        self._max_events, self._max_chars = max_events, max_chars
        self._chars = 0
        self._last = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Keep an event; None is the mark at the beginning of a stream."""
        self._last += 1
        chars = 0 if message is None else len(message.model_dump_json(by_alias=True, exclude_none=True))
        if chars > self._max_chars:  # a picture would be held until the session ends: what is lost can be called again
            self._entries.clear()
            message, chars, self._chars = None, 0, 0
        self._entries.append(_Entry(self._last, stream_id, message, chars))
        self._chars += chars
        while len(self._entries) > self._max_events or self._chars > self._max_chars:
            self._chars -= self._entries.popleft().chars
        return str(self._last)

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Send what followed on the same stream; None when this session knows no such event (any more)."""
        known = next((entry for entry in self._entries if str(entry.number) == last_event_id), None)
        if known is None:
            return None
        for entry in list(self._entries):
            if entry.number > known.number and entry.stream == known.stream and entry.message is not None:
                await send_callback(EventMessage(entry.message, str(entry.number)))
        return known.stream


class SessionManager(StreamableHTTPSessionManager):
    """The SDK's, with a log for each session: its stream ids are request ids, which sessions have in common, so that
    one log for all would replay one client's results to another."""

    @property
    def event_store(self) -> EventStore | None:
        """A new log, each time the manager opens a session."""
        return SessionLog()

    @event_store.setter
    def event_store(self, _: EventStore | None) -> None:
        """The base class sets what it was given; there is nothing to set."""


def connection_of(context: Context) -> Connection:
    """The connection a request came on: its `state` lasts as long as the session (2025) or the request (2026), and
    its `exit_stack` is unwound with it.

    The SDK documents both for handlers but hands them the connection only by this private name."""
    return context.session._connection
