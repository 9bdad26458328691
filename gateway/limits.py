"""ASGI middleware around everything: a request id on every response, limits on headers and bodies before any parsing.

What has to be held at the connection itself is in `connections.py`."""

import asyncio
import re
from collections.abc import Awaitable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.errors import AgentError, TooLargeError
from gateway.errors import ClientSlowError, HeadersError, WireError, defect_response, error_response, new_request_id
from gateway.observe.logs import request_id as current_request

BODY_BYTES_PER_SECOND = 10_000
"""Each so many bytes of a body give its sender a second more: an upload may take long, a trickle may not."""
DROPPED_BYTES = 100_000_000
"""What a client may still send after it was refused; beyond it the connection is simply closed."""
DROP_SECONDS = 30.0
"""How long a refused client may take to send it."""

_ID = re.compile(r"^[A-Za-z0-9._:-]{1,128}$")


class RequestIdMiddleware:
    """Sets `x-request-id`: the caller's own where it is sane, else a new one. What nobody has caught is answered here,
    so that no answer is without it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        text = given.decode("latin-1")
        request_id = text if _ID.match(text) else new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        current_request.set(request_id)
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = [pair for pair in message["headers"] if pair[0] != b"x-request-id"]
                extra = scope["state"].get("extra_headers", {}).items()
                told = [(name.encode(), value.encode()) for name, value in extra]
                message["headers"] = [*headers, *told, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            if started:
                raise
            await defect_response(scope, error)(scope, receive, send_with_id)


class HeaderLimitMiddleware:
    """Refuses a request line and headers over the limit with 431, and with 400 heads that can be read in two ways,
    whatever server runs the app."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """One request. No coroutine of its own: what is let through has nothing to wait for here."""
        refused = self._refusal(scope) if scope["type"] == "http" else None
        if refused is None:
            return self._app(scope, receive, send)
        return error_response(refused, scope["path"], headers={"connection": "close"})(scope, receive, send)

    def _refusal(self, scope: Scope) -> AgentError | None:
        if _head_bytes(scope) > self._max_bytes:
            return HeadersError(self._max_bytes)
        fault = _head_fault(scope)
        return WireError(fault) if fault else None


def _head_fault(scope: Scope) -> str:
    """What makes a head ambiguous: a proxy in front of us may have read the other one of two keys."""
    keys: set[bytes] = set()
    hosts = 0
    for name, value in scope["headers"]:
        if name == b"authorization":
            keys.add(value)
        hosts += name == b"host"
    if len(keys) > 1:
        return "the request has two different Authorization headers; send one"
    if not hosts and scope.get("http_version") == "1.1":  # RFC 9112, 3.2
        return "an HTTP/1.1 request needs a Host header"
    return ""


def _head_bytes(scope: Scope) -> int:
    line = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    return line + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


class BodyLimitMiddleware:
    """Refuses bodies over the limit with 413: by their declared length, else while they come in; and with 408 those
    that come in too slowly. `uploads` are paths that take larger ones, each with its limit."""

    def __init__(
        self, app: ASGIApp, max_bytes: int, uploads: Mapping[str, int] | None = None, seconds: float = 30.0
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._uploads = uploads or {}
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        limit = self._uploads.get(path, self._max_bytes)
        setting = "AGENT_MAX_UPLOAD_BYTES" if path in self._uploads else "AGENT_MAX_BODY_BYTES"
        too_large = f"the request body is larger than {limit:,} bytes ({setting})"
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > limit:
            # What is more than would be dropped is not waited for at all.
            await _refuse(TooLargeError(too_large), scope, receive, send, complete=int(declared) > DROPPED_BYTES)
            return
        body = _Body(receive, limit, too_large, self._seconds)

        async def send_unless_refused(message: Message) -> None:
            if body.refusal is None:
                body.answering = True
            if body.answering:
                await send(message)

        try:
            await self._app(scope, body.receive, send_unless_refused)
        except AgentError as error:
            if error is not body.refusal:
                raise
        if body.refusal is not None and not body.answering:
            await _refuse(body.refusal, scope, receive, send, complete=body.complete)


class _Body:
    """The messages of a body, as long as it keeps to the limits."""

    def __init__(self, receive: Receive, max_bytes: int, too_large: str, seconds: float) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._too_large = too_large
        self._seconds = seconds
        self._began: float | None = None
        self._seen = 0
        self.complete = False
        self.answering = False
        """Whether the app began its answer before there was anything to refuse."""
        self.refusal: AgentError | None = None
        """Why no more of it is taken."""

    async def receive(self) -> Message:
        """The next message. Raises the refusal once there is one, and from then on at once: an app that asks again must
        not wait for what may never come. An app that answers already is told that its client has gone."""
        if self.complete and self.refusal is None:  # what comes after a body is that the client goes, when it likes
            return await self._receive()
        if self.refusal is None:
            try:
                return await self._next()
            except (TooLargeError, ClientSlowError) as error:
                self.refusal = error
        if self.answering:
            return {"type": "http.disconnect"}
        raise self.refusal  # whatever the app makes of it is not sent

    async def _next(self) -> Message:
        clock = asyncio.get_running_loop().time
        self._began = self._began if self._began is not None else clock()
        deadline = self._began + self._seconds + self._seen / BODY_BYTES_PER_SECOND
        try:
            async with asyncio.timeout_at(deadline):
                message = await self._receive()
        except TimeoutError as error:
            told = f"the request body did not come within {self._seconds:g} seconds (AGENT_BODY_SECONDS)"
            raise ClientSlowError(f"{told}, of which each {BODY_BYTES_PER_SECOND:,} bytes give one more") from error
        self._seen += len(message.get("body", b""))
        self.complete = message["type"] == "http.request" and not message.get("more_body", False)
        if self._seen > self._max_bytes:
            raise TooLargeError(self._too_large)
        return message


async def _refuse(error: AgentError, scope: Scope, receive: Receive, send: Send, *, complete: bool = False) -> None:
    """Answer 413 or 408. The rest of a body that is too large is read and dropped first: a client that is still sending
    would see a broken connection instead of the answer. After a `complete` body nothing more would ever come, or
    nothing that is worth to be waited for."""
    if not complete and isinstance(error, TooLargeError) and not await _drop(receive):
        return
    await error_response(error, scope["path"], headers={"connection": "close"})(scope, receive, send)


async def _drop(receive: Receive) -> bool:
    """Read the rest of a body. Whether the client is still there to be answered."""
    dropped = 0
    try:
        async with asyncio.timeout(DROP_SECONDS):
            while dropped < DROPPED_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return False
                dropped += len(message.get("body", b""))
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        pass  # answered all the same, and the connection closed
    return True
