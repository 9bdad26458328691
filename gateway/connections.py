"""uvicorn's HTTP protocol with what it lacks: a limit on headers and on the time they take, an end for clients that do
not read, and its own refusals in the doors' shape. Used by `stepgate serve`."""

import logging
from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from agent.core.config import Settings
from agent.core.errors import AgentError
from gateway.errors import ClientSlowError, HeadersError, WireError, error_response, new_request_id

log = logging.getLogger(__name__)


class BoundedConnection(HttpToolsProtocol):
    """One connection. Whatever it waits for has an end: the head of a request, the rest of a body whose answer was
    sent already, a client that is to read."""

    # With slots for what is ours: uvicorn's own attributes are as many as Python keeps in the small.
    __slots__ = ("_between", "_in_head", "_receiving", "_stalled", "_unread")

    header_seconds: float
    stall_seconds: float
    max_header_bytes: int

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._receiving: TimerHandle | None = None
        self._stalled: TimerHandle | None = None
        self._between = True
        """Whether no part of a request has come, or all of it has."""
        self._in_head = False
        self._unread = 0
        """Bytes that came since a head was complete or a piece of a body was: a head, a trailer, a chunk's fringe."""

    def connection_made(self, transport: object) -> None:
        """The clock runs from the first moment: a client must not hold a connection by saying nothing."""
        super().connection_made(transport)  # type: ignore[arg-type]  # as uvicorn's own signature has it
        self._expect_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._received()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        self._unread += len(data)
        if self._between:  # blank lines before a request count too: they would stop uvicorn's own clock
            self._expect_more()
        super().data_received(data)
        if self._unread > self.max_header_bytes and not self.transport.is_closing():
            self._refuse(HeadersError(self.max_header_bytes))

    def on_message_begin(self) -> None:
        """A request begins."""
        self._between = False
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is there."""
        self._in_head = False
        self._received()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it is there."""
        self._between = True
        self._received()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It is answered; where its body is not all there yet, the rest of it has to come in time."""
        super().on_response_complete()
        if not self._between:
            self._expect_more()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is written to."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.stall_seconds, self._drop)

    def resume_writing(self) -> None:
        """It has read most of it."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """uvicorn's answer to what is no HTTP."""
        self._refuse(WireError(f"{msg.rstrip('.')}: this is no HTTP/1.1 the gateway can read."))

    def _should_upgrade(self) -> bool:
        """Nothing here speaks WebSocket: who asks for one is answered by a door, with a request id, and not by a
        protocol that none of these limits holds for."""
        return False

    def _unsupported_upgrade_warning(self) -> None:
        """No line in the log for what any caller may ask for."""

    def _expect_more(self) -> None:
        if self._receiving is None:
            self._receiving = self.loop.call_later(self.header_seconds, self._too_slow)

    def _received(self) -> None:
        self._unread = 0
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _too_slow(self) -> None:
        self._receiving = None
        if self._answer is not None and not self._answer.response_complete:
            self._expect_more()  # a further request, sent before the answer to the last one: that comes first
        elif self._in_head:
            told = f"the headers did not come within {self.header_seconds:g} seconds (AGENT_HEADER_SECONDS)"
            self._refuse(ClientSlowError(told))
        else:
            self.transport.close()

    @property
    def _answer(self) -> RequestResponseCycle | None:
        return self.cycle  # None before the first request, whatever uvicorn says of its type

    def _refuse(self, error: AgentError) -> None:
        """Answer in place of the app, and close."""
        last = self._answer
        if last is None or last.response_complete or not last.response_started:
            path = bytes(getattr(self, "url", b"")).decode("latin-1").partition("?")[0]
            answer = error_response(error, path, headers={"connection": "close", "x-request-id": new_request_id()})
            lines = b"".join(b"%s: %s\r\n" % pair for pair in answer.raw_headers)
            self.transport.write(STATUS_LINE[answer.status_code] + lines + b"\r\n" + bytes(answer.body))
        self.transport.close()  # where an answer stands half written, nothing fits in there

    def _drop(self) -> None:
        """Cut off a client that does not read. Its run goes on and can be followed again."""
        self._stalled = None
        log.info("a client left its answer unread for %g s (AGENT_STALL_SECONDS) and was cut off", self.stall_seconds)
        self.transport.abort()


def bounded(settings: Settings) -> type[BoundedConnection]:
    """What `uvicorn.Config(http=...)` takes: the protocol with the limits of these settings."""

    class Connection(BoundedConnection):
        __slots__ = ()

        header_seconds = settings.header_seconds
        stall_seconds = settings.stall_seconds
        max_header_bytes = settings.max_header_bytes

    return Connection
