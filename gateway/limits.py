"""ASGI middleware around everything: a request id on every response, a limit on every body, before any parsing."""

import asyncio
import re
import secrets
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.errors import TooLargeError
from gateway.errors import error_response
from gateway.observe.logs import request_id as current_request

DROPPED_BYTES = 100_000_000
"""What a client may still send after it was refused; beyond it the connection is simply closed."""
DROP_SECONDS = 30.0
"""How long a refused client may take to send it."""

_ID = re.compile(r"^[A-Za-z0-9._:-]{1,128}$")


class RequestIdMiddleware:
    """Sets `x-request-id`: the caller's own where it is sane, else a new one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        text = given.decode("latin-1")
        request_id = text if _ID.match(text) else f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id

        current_request.set(request_id)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [pair for pair in message["headers"] if pair[0] != b"x-request-id"]
                extra = scope["state"].get("extra_headers", {}).items()
                told = [(name.encode(), value.encode()) for name, value in extra]
                message["headers"] = [*headers, *told, (b"x-request-id", request_id.encode())]
            await send(message)

        await self._app(scope, receive, send_with_id)


class BodyLimitMiddleware:
    """Refuses bodies over the limit with 413: by their declared length, else while they come in. `uploads` are paths
    that take larger ones, each with its limit."""

    def __init__(self, app: ASGIApp, max_bytes: int, uploads: Mapping[str, int] | None = None) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._uploads = uploads or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > self._limit(scope):
            await self._refuse(scope, receive, send)
            return
        body = _Counted(receive, self._limit(scope))

        async def send_unless_refused(message: Message) -> None:
            if not body.too_large:
                await send(message)

        try:
            await self._app(scope, body.receive, send_unless_refused)
        except TooLargeError:
            if not body.too_large:
                raise
        if body.too_large:
            await self._refuse(scope, receive, send, complete=body.complete)

    def _limit(self, scope: Scope) -> int:
        return self._uploads.get(scope["path"], self._max_bytes)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, *, complete: bool = False) -> None:
        """Answer 413. The rest of the body is read and dropped first: a client that is still sending would see a
        broken connection instead of the answer. After a `complete` body nothing more would ever come."""
        if not complete and not await _drop(receive):
            return
        setting = "AGENT_MAX_UPLOAD_BYTES" if scope["path"] in self._uploads else "AGENT_MAX_BODY_BYTES"
        error = TooLargeError(f"the request body is larger than {self._limit(scope):,} bytes ({setting})")
        response = error_response(error, scope["path"], headers={"connection": "close"})
        await response(scope, receive, send)


class _Counted:
    """The messages of a body, as long as it keeps to the limit."""

    def __init__(self, receive: Receive, max_bytes: int) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._seen = 0
        self.complete = False

    @property
    def too_large(self) -> bool:
        """Whether more came than allowed."""
        return self._seen > self._max_bytes

    async def receive(self) -> Message:
        """The next message. Raises `TooLargeError` for the one that crosses the limit, and from then on at once:
        an app that asks again must not wait for what may never come."""
        if not self.too_large:
            message = await self._receive()
            self._seen += len(message.get("body", b""))
            self.complete = message["type"] == "http.request" and not message.get("more_body", False)
            if not self.too_large:
                return message
        raise TooLargeError("the request body is too large")  # whatever the app makes of it is not sent


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
