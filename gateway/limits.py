"""ASGI middleware around everything: a request id on every response, a limit on every body, before any parsing."""

import re
import secrets

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.errors import TooLargeError
from gateway.errors import error_response

DROPPED_BYTES = 100_000_000
"""What a client may still send after it was refused; beyond it the connection is simply closed."""

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

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [pair for pair in message["headers"] if pair[0] != b"x-request-id"]
                message["headers"] = [*headers, (b"x-request-id", request_id.encode())]
            await send(message)

        await self._app(scope, receive, send_with_id)


class BodyLimitMiddleware:
    """Refuses bodies over the limit with 413: by their declared length, else while they come in."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > self._max_bytes:
            await self._refuse(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_bytes:
                raise TooLargeError("the request body is too large")  # whatever the app makes of it is not sent
            return message

        async def send_unless_refused(message: Message) -> None:
            if seen <= self._max_bytes:
                await send(message)

        try:
            await self._app(scope, counted, send_unless_refused)
        except TooLargeError:
            if seen <= self._max_bytes:
                raise
        if seen > self._max_bytes:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 413. The rest of the body is read and dropped first: a client that is still sending would see a
        broken connection instead of the answer."""
        dropped = 0
        while dropped < DROPPED_BYTES:
            message = await receive()
            dropped += len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body"):
                break
        error = TooLargeError(f"the request body is larger than {self._max_bytes:,} bytes (AGENT_MAX_BODY_BYTES)")
        response = error_response(error, scope["path"])
        response.headers["connection"] = "close"
        await response(scope, receive, send)
