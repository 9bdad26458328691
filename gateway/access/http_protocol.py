"""uvicorn's HTTP protocol with limits: header size, header time, stalled clients. Used by `stepgate serve`.

Its own refusals have the shape of the doors' errors.
"""

import logging
from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from agent.core.errors import AgentError
from agent.core.settings import Settings
from gateway.render.error_responses import ClientSlowError, HeadersError, build_error_response, make_request_id
from gateway.render.errors import RequestFormatError

log = logging.getLogger(__name__)


class BoundedConnection(HttpToolsProtocol):
    """One connection with a deadline for everything it waits for: a request's headers, the rest of a body whose answer
    was already sent, a client that must read.
    """

    header_seconds: float
    stall_seconds: float
    max_header_bytes: int

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._receive_timer: TimerHandle | None = None
        self._stall_timer: TimerHandle | None = None
        self._is_between_requests = True
        """Whether nothing of a request has arrived yet, or all of it."""
        self._is_in_head = False
        self._unparsed_bytes = 0
        """Bytes received since the last complete headers or body chunk: headers, trailers, chunk framing."""

    def connection_made(self, transport: object) -> None:
        """Starts the receive timer: a client must not hold a connection open without sending anything."""
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn's signature
        self._start_receive_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timers."""
        self._stop_receive_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handles bytes of a request."""
        self._unparsed_bytes += len(data)
        if self._is_between_requests:  # blank lines before a request count too: they would stop uvicorn's own timer
            self._start_receive_timer()
        super().data_received(data)
        if self._unparsed_bytes > self.max_header_bytes and not self.transport.is_closing():
            self._send_error_and_close(HeadersError(self.max_header_bytes))

    def on_message_begin(self) -> None:
        """Handles the beginning of a request."""
        self._is_between_requests = False
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Handles the end of the headers."""
        self._is_in_head = False
        self._stop_receive_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Handles a chunk of the body."""
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Handles the end of the request."""
        self._is_between_requests = True
        self._stop_receive_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Handles the end of the response. If the body is still incomplete, the rest must arrive in time."""
        super().on_response_complete()
        if not self._is_between_requests:
            self._start_receive_timer()

    def pause_writing(self) -> None:
        """Starts the stall timer: the client reads more slowly than the gateway writes."""
        super().pause_writing()
        if self._stall_timer is None:
            self._stall_timer = self.loop.call_later(self.stall_seconds, self._abort_stalled_client)

    def resume_writing(self) -> None:
        """Stops the stall timer."""
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Replaces uvicorn's answer to bytes that are not HTTP."""
        self._send_error_and_close(RequestFormatError(f"{msg.rstrip('.')}: the gateway cannot read this as HTTP/1.1."))

    def _should_upgrade(self) -> bool:
        """Always False: no door speaks WebSocket. A door answers the request, so that it has a request id and all
        limits apply.
        """
        return False

    def _unsupported_upgrade_warning(self) -> None:
        """Suppresses the log line: any caller can send this header."""

    def _start_receive_timer(self) -> None:
        if self._receive_timer is None:
            self._receive_timer = self.loop.call_later(self.header_seconds, self._handle_receive_timeout)

    def _stop_receive_timer(self) -> None:
        self._unparsed_bytes = 0
        if self._receive_timer is not None:
            self._receive_timer.cancel()
            self._receive_timer = None

    def _handle_receive_timeout(self) -> None:
        self._receive_timer = None
        if self._current_response is not None and not self._current_response.response_complete:
            self._start_receive_timer()  # a pipelined request; the response to the previous one comes first
        elif self._is_in_head:
            message = f"the headers did not arrive within {self.header_seconds:g} seconds"
            self._send_error_and_close(ClientSlowError(message))
        else:
            self.transport.close()

    @property
    def _current_response(self) -> RequestResponseCycle | None:
        return self.cycle  # None before the first request, despite uvicorn's annotation

    def _send_error_and_close(self, error: AgentError) -> None:
        """Sends an error in place of the application's answer and closes the connection."""
        last = self._current_response
        if last is None or last.response_complete or not last.response_started:
            path = bytes(getattr(self, "url", b"")).decode("latin-1").partition("?")[0]
            answer = build_error_response(
                error, path, headers={"connection": "close", "x-request-id": make_request_id()}
            )
            lines = b"".join(b"%s: %s\r\n" % pair for pair in answer.raw_headers)
            self.transport.write(STATUS_LINE[answer.status_code] + lines + b"\r\n" + bytes(answer.body))
        self.transport.close()  # after a half-written response nothing more can be sent

    def _abort_stalled_client(self) -> None:
        """Closes the connection of a client that does not read. Its run continues and can be followed again."""
        self._stall_timer = None
        log.info("a client left its answer unread for %g s and was disconnected", self.stall_seconds)
        self.transport.abort()


def make_protocol_with_limits(settings: Settings) -> type[BoundedConnection]:
    """The protocol class for `uvicorn.Config(http=...)`, with the limits of these settings."""

    class Connection(BoundedConnection):
        header_seconds = settings.header_seconds
        stall_seconds = settings.stall_seconds
        max_header_bytes = settings.max_header_bytes

    return Connection
