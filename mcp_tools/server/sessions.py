"""Sessions of protocol era 2025: whose they are, how many one caller has, and an event log for each.

A session answers only to the principal that opened it (404 for others), and ends after `IDLE_SECONDS` without
a request. With the log, a client can resume a broken stream.

Era 2026 has neither sessions nor resumption; its requests pass through unchanged.
"""

import secrets
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import (
    EventCallback,
    EventId,
    EventMessage,
    EventStore,
    StreamableHTTPServerTransport,
    StreamId,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import JSONRPCMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent.core.principal import Principal

Context = ServerRequestContext[Any, Any]

MAX_EVENTS = 200
"""Events kept for each session; a run sends a few dozen. A client that resumes later misses older ones."""
MAX_CHARS = 1_000_000
"""Characters of JSON kept for each session, so that large results do not add up."""
MAX_SESSIONS = 1_000
"""Simultaneous sessions; with `MAX_CHARS` this limits the memory that idle clients can occupy."""
MAX_CALLER_SESSIONS = 100
"""Simultaneous sessions of one key, or of all callers without a key together."""
IDLE_SECONDS = 30 * 60
"""Seconds without a request after which a session ends; an open stream is a request."""
_SESSION_NAME = "session_name"
RETRY_MS = 1_000
"""How long a client whose stream was closed should wait before it resumes."""


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int
    stream: StreamId
    message: JSONRPCMessage | None
    chars: int


class SessionEventLog(EventStore):
    """The newest events of one session, over all its streams.

    An event larger than the whole log is not kept, and neither is anything before it: a client that resumes from there
    gets an error.
    """

    def __init__(self, max_events: int = MAX_EVENTS, max_chars: int = MAX_CHARS) -> None:
        self._entries: deque[_Entry] = deque()
        self._max_events, self._max_chars = max_events, max_chars
        self._total_chars = 0
        self._last_number = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Stores an event. None marks the start of a stream."""
        self._last_number += 1
        chars = 0 if message is None else len(message.model_dump_json(by_alias=True, exclude_none=True))
        if chars > self._max_chars:  # an image would stay until the session ends; the client can repeat its call
            self._entries.clear()
            message, chars, self._total_chars = None, 0, 0
        self._entries.append(_Entry(self._last_number, stream_id, message, chars))
        self._total_chars += chars
        while len(self._entries) > self._max_events or self._total_chars > self._max_chars:
            self._total_chars -= self._entries.popleft().chars
        return str(self._last_number)

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        """Sends the events after `last_event_id` on its stream. Returns None if the session does not know that
        event."""
        last_entry = next((entry for entry in self._entries if str(entry.number) == last_event_id), None)
        if last_entry is None:
            return None
        for entry in list(self._entries):
            if entry.number > last_entry.number and entry.stream == last_entry.stream and entry.message is not None:
                await send_callback(EventMessage(entry.message, str(entry.number)))
        return last_entry.stream


def build_session_user(principal: Principal) -> AuthenticatedUser:
    """The principal in the form by which the SDK binds a session to the caller that opened it."""
    who = f"key:{principal.key_id}" if principal.key_id else f"owner:{principal.owner}"
    return AuthenticatedUser(AccessToken(token="", client_id=who, scopes=[], subject=principal.owner))


class SessionManager(StreamableHTTPSessionManager):
    """The SDK's manager with limits for each caller, and one event log for each session.

    Stream ids are request ids, which sessions share, so a common log would replay one client's results to another.
    """

    @property
    def event_store(self) -> EventStore | None:
        """A new log each time the manager opens a session."""
        return SessionEventLog()

    @event_store.setter
    def event_store(self, _: EventStore | None) -> None:
        """Ignores the value that the base class sets."""

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        """Opens a session. A caller at its limit loses the session that was idle longest; where all sessions are taken,
        the caller that has most of them does. Returns None if none of them is idle.
        """
        if len(self._list_sessions(requestor)) >= MAX_CALLER_SESSIONS and not self._end_idle_session(requestor):
            return None
        if len(self._server_instances) >= (self.max_sessions or MAX_SESSIONS):
            self._end_idle_session(self._find_largest_holder())
        return super()._admit_session(requestor)

    def _list_sessions(self, holder: AuthorizationContext | None) -> list[str]:
        return [name for name in self._server_instances if self._session_owners.get(name) == holder]

    def _find_largest_holder(self) -> AuthorizationContext | None:
        holders = [self._session_owners.get(name) for name in self._server_instances]
        return max(holders, key=holders.count)

    def _end_idle_session(self, holder: AuthorizationContext | None) -> bool:
        """Ends the session of a caller that has been without a request for longest; False if each serves one."""
        idle = {
            name: scope.deadline
            for name in self._list_sessions(holder)
            # The SDK sets the deadline when the last request of a session ends.
            if (scope := self._server_instances[name].idle_scope) is not None and scope.deadline < inf
        }
        if not idle:
            return False
        oldest = min(idle, key=idle.__getitem__)
        transport = self._server_instances.pop(oldest)
        self._session_owners.pop(oldest, None)
        assert transport.idle_scope is not None
        transport.idle_scope.cancel()
        return True


def get_session_name(context: Context) -> str | None:
    """A name for the client's session that no other session has; None in era 2026, which has no sessions."""
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return None
    name: str = get_connection(context).state.setdefault(_SESSION_NAME, f"mcp_{secrets.token_hex(16)}")
    return name


def get_connection(context: Context) -> Connection:
    """The connection of a request.

    Its `state` and `exit_stack` last as long as the session (era 2025) or the request (era 2026). The SDK documents
    both for handlers, but offers the connection only by this private name.
    """
    return context.session._connection
