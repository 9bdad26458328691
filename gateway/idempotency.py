"""`Idempotency-Key`: a request that is sent again is answered again, and carried out once.

The first request with a key notes it before anything is done, and its answer after; a second one gets that answer, a
409 while the first is still under way, and a 422 when its body is another. Keys belong to whoever sent them. An answer
is kept for a day. What is streamed is noted, but not kept: sent again, it is a 409 that names the run.
"""

import hashlib
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.errors import BadRequestError, ConflictError
from gateway.errors import error_response
from gateway.idempotency_store import IdempotencyStore, ReusedKeyError

HEADER = b"idempotency-key"
MAX_LENGTH = 255
MAX_ANSWER_BYTES = 5_000_000
_NOTHING_DONE = frozenset({401, 403, 404, 413, 415, 429, 503})
"""Statuses of requests that were turned away: they may be tried again."""
_REPLAYED = (b"content-type", b"x-stepgate-run-id", b"x-should-retry")


class IdempotencyMiddleware:
    """Looks at POST requests that bear the header."""

    def __init__(self, app: ASGIApp, store: Callable[[], IdempotencyStore]) -> None:
        self._app = app
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        key = _header(scope, HEADER) if scope["type"] == "http" and scope["method"] == "POST" else ""
        if not key or str(scope["path"]).startswith("/mcp"):
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        who = hashlib.sha256((_header(scope, b"authorization") or _header(scope, b"x-api-key")).encode()).hexdigest()
        digest = hashlib.sha256(f"{scope['path']}?{scope['query_string']}\n".encode() + body).hexdigest()
        store = self._store()
        try:
            if len(key) > MAX_LENGTH or not key.isprintable():
                raise BadRequestError(f"Idempotency-Key: at most {MAX_LENGTH} printable characters")
            answer = await store.begin(who, key, digest)
        except (BadRequestError, ConflictError, ReusedKeyError) as error:
            headers = {"x-should-retry": "false"}
            await error_response(error, scope["path"], headers=headers)(scope, receive, send)
            return
        if answer is not None:
            await _replay(answer, send)
            return
        kept = _Kept(send)
        await self._app(scope, _again(body, receive), kept.send)
        # Not reached when the process stops meanwhile: the run may go on, and must not be begun again.
        if kept.status in _NOTHING_DONE:
            await store.forget(who, key)
        else:
            await store.finish(who, key, kept.status, kept.headers, kept.body)


class _Kept:
    """Passes an answer on, and keeps a copy of it unless it is a stream or too long."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._parts: list[bytes] = []
        self._streamed = False
        self.status = 0
        self.headers: list[list[str]] = []

    @property
    def body(self) -> bytes | None:
        """The whole body; None of a stream."""
        return None if self._streamed else b"".join(self._parts)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [[n.decode(), v.decode("latin-1")] for n, v in message["headers"] if n in _REPLAYED]
            self._streamed = any(
                n == b"content-type" and v.startswith(b"text/event-stream") for n, v in message["headers"]
            )
        elif message["type"] == "http.response.body" and not self._streamed:
            self._parts.append(message.get("body", b""))
            if sum(map(len, self._parts)) > MAX_ANSWER_BYTES:
                self._streamed = True
                self._parts.clear()
        await self._send(message)


async def _replay(answer: tuple[int, list[list[str]], bytes], send: Send) -> None:
    status, headers, body = answer
    told = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    told += [(b"content-length", str(len(body)).encode()), (b"idempotent-replayed", b"true")]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})


async def _body(receive: Receive) -> bytes:
    """The whole body; the limit on bodies lies outside of this."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, as one piece; then whatever else comes."""
    told = False

    async def repeated() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return repeated


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")
