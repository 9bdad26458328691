"""ASGI middleware: limits on headers and bodies before anything is parsed.

Limits that must be enforced on the connection itself are in `http_protocol.py`.
"""

import asyncio
from collections.abc import Awaitable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.errors import AgentError, TooLargeError
from gateway.render.error_responses import ClientSlowError, HeadersError, build_error_response
from gateway.render.errors import RequestFormatError

BODY_BYTES_PER_SECOND = 10_000
"""Bytes of a body that extend its deadline by one second: a large upload may take long, a slow trickle may not."""
MAX_DISCARDED_BYTES = 100_000_000
"""Most bytes that a refused client may still send; beyond that the connection is closed."""
MAX_DEPTH = 100
"""Most levels of nested objects and lists. No client nests deeper; later parsers and stores recurse."""
DISCARD_SECONDS = 30.0
"""How long a refused client may take to send them."""


class HeaderLimitMiddleware:
    """Refuses oversized headers with 431 and ambiguous ones with 400, whatever server runs the application."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handles one request. Not a coroutine function: an accepted request has nothing to await here."""
        refused = self._find_fault(scope) if scope["type"] == "http" else None
        if refused is None:
            return self._app(scope, receive, send)
        return build_error_response(refused, scope["path"], headers={"connection": "close"})(scope, receive, send)

    def _find_fault(self, scope: Scope) -> AgentError | None:
        if _count_header_bytes(scope) > self._max_bytes:
            return HeadersError(self._max_bytes)
        fault = _find_ambiguous_header(scope)
        return RequestFormatError(fault) if fault else None


def _find_ambiguous_header(scope: Scope) -> str:
    """The reason why the headers are ambiguous, or "": a proxy in front may have used the other of two keys."""
    keys = {value for name, value in scope["headers"] if name == b"authorization"}
    return "the request has two different Authorization headers; send one" if len(keys) > 1 else ""


def _count_header_bytes(scope: Scope) -> int:
    line = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    return line + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


class BodyLimitMiddleware:
    """Refuses bodies over the limit with 413, by their declared length or while they arrive, and slow ones with 408.

    `uploads` maps the paths that take larger bodies to their limits.
    """

    def __init__(
        self, app: ASGIApp, max_bytes: int, uploads: Mapping[str, int] | None = None, seconds: float = 30.0
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._uploads = uploads or {}
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        limit = self._uploads.get(path, self._max_bytes)
        setting = "AGENT_MAX_UPLOAD_BYTES" if path in self._uploads else "AGENT_MAX_BODY_BYTES"
        too_large = f"the request body is larger than {limit:,} bytes ({setting})"
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > limit:
            # A body larger than the discard limit is not waited for at all.
            await _send_refusal(
                TooLargeError(too_large), scope, receive, send, complete=int(declared) > MAX_DISCARDED_BYTES
            )
            return
        body = _LimitedBody(receive, limit, too_large, self._seconds)

        async def send_unless_refused(message: Message) -> None:
            if body.refusal is None:
                body.is_answering = True
            if body.is_answering:
                await send(message)

        try:
            await self._app(scope, body.receive, send_unless_refused)
        except AgentError as error:
            if error is not body.refusal:
                raise
        if body.refusal is not None and not body.is_answering:
            await _send_refusal(body.refusal, scope, receive, send, complete=body.is_complete)


class _LimitedBody:
    """The messages of a body, up to its limits."""

    def __init__(self, receive: Receive, max_bytes: int, too_large: str, seconds: float) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._too_large = too_large
        self._seconds = seconds
        self._started_at: float | None = None
        self._received_bytes = 0
        self.is_complete = False
        self.is_answering = False
        """Whether the application started its response before a limit was exceeded."""
        self.refusal: AgentError | None = None
        """Why the rest of the body is refused."""

    async def receive(self) -> Message:
        """The next message. Raises the refusal once there is one, and at once on every later call.

        An application that asks again must not wait for data that may never come. An application that is already
        answering learns that its client has disconnected.
        """
        if self.is_complete and self.refusal is None:  # after a complete body, only the client's disconnect can follow
            return await self._receive()
        if self.refusal is None:
            try:
                return await self._receive_in_time()
            except (TooLargeError, ClientSlowError) as error:
                self.refusal = error
        if self.is_answering:
            return {"type": "http.disconnect"}
        raise self.refusal  # the application's response to it is not sent

    async def _receive_in_time(self) -> Message:
        clock = asyncio.get_running_loop().time
        self._started_at = self._started_at if self._started_at is not None else clock()
        deadline = self._started_at + self._seconds + self._received_bytes / BODY_BYTES_PER_SECOND
        try:
            async with asyncio.timeout_at(deadline):
                message = await self._receive()
        except TimeoutError as error:
            raise ClientSlowError(
                f"the request body did not arrive within {self._seconds:g} seconds (plus "
                f"one second for every {BODY_BYTES_PER_SECOND:,} bytes)"
            ) from error
        self._received_bytes += len(message.get("body", b""))
        self.is_complete = message["type"] == "http.request" and not message.get("more_body", False)
        if self._received_bytes > self._max_bytes:
            raise TooLargeError(self._too_large)
        return message


async def _send_refusal(
    error: AgentError, scope: Scope, receive: Receive, send: Send, *, complete: bool = False
) -> None:
    """Answers 413 or 408.

    The rest of an oversized body is read and discarded first: a client that is still sending would see a broken
    connection instead of the answer. With `complete`, nothing more is expected.
    """
    if not complete and isinstance(error, TooLargeError) and not await _discard_body(receive):
        return
    await build_error_response(error, scope["path"], headers={"connection": "close"})(scope, receive, send)


async def _discard_body(receive: Receive) -> bool:
    """Reads the rest of a body. Returns whether the client is still connected."""
    dropped = 0
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            while dropped < MAX_DISCARDED_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return False
                dropped += len(message.get("body", b""))
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        pass  # the response is sent nevertheless, and the connection closed
    return True
