"""`Idempotency-Key`: a request that is sent again is answered again, and carried out once.

The first request with a key notes it before anything is done, with the id its run will have, and its answer after; a
second one gets that answer, a 409 while the first is still under way, and a 422 when its body is another. Where the
first one's process was killed, its run goes on, and is answered with: `begun_once`. Keys belong to whoever sent them;
who may not call hears so before anything is noted or given back. An answer is kept for a day. What is streamed is
noted, but not kept: sent again, it is a 409 that names the run.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.errors import AgentError, BadRequestError, StoreError
from agent.core.models import LOCAL_OWNER
from gateway.errors import error_response
from gateway.gatekeeper import Caller
from gateway.idempotency_store import RUN_HEADER, BegunRequest, IdempotencyStore, KeptAnswer

HEADER = b"idempotency-key"
MAX_LENGTH = 255
MAX_ANSWER_BYTES = 5_000_000
_NOTHING_DONE = frozenset({400, 401, 403, 404, 405, 413, 415, 422, 429, 503})
"""Statuses of requests that were turned away: they may be tried again."""
_REPLAYED = (b"content-type", RUN_HEADER.encode(), b"x-should-retry")


@dataclass(frozen=True, slots=True)
class _Once:
    """What a door has to know of a request that is carried out once."""

    begun: BegunRequest
    note: Callable[[str], Awaitable[None]]


async def begun_once(http: Request, begin: Callable[[str | None], Awaitable[tuple[str, int]]]) -> tuple[str, int]:
    """The run that answers a request and the seq it had come to, as `begin` gives them for a new run of the id it is
    told, if any. A request whose run was begun by a process that died is answered by that run."""
    once = getattr(http.state, "once", None)
    if not isinstance(once, _Once):
        return await begin(None)
    if once.begun.began:
        return once.begun.run_id, 0
    run_id, heard = await begin(once.begun.run_id)
    if run_id != once.begun.run_id:
        await once.note(run_id)
    return run_id, heard


class IdempotencyMiddleware:
    """Looks at POST requests that bear the header."""

    def __init__(
        self, app: ASGIApp, store: Callable[[], IdempotencyStore], admit: Callable[[Headers], Awaitable[Caller]]
    ) -> None:
        self._app = app
        self._store = store
        self._admit = admit

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """One request. No coroutine of its own for those without the header, which are nearly all."""
        key = _header(scope, HEADER) if scope["type"] == "http" and scope["method"] == "POST" else ""
        if not key or str(scope["path"]).startswith("/mcp"):
            return self._app(scope, receive, send)
        return self._once(key, scope, receive, send)

    async def _once(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if body is None:  # nothing is kept under the key: the next try brings the whole body
            return
        digest = hashlib.sha256(f"{scope['path']}?{scope['query_string']}\n".encode() + body).hexdigest()
        store = self._store()
        try:
            if len(key) > MAX_LENGTH or not key.isprintable():
                raise BadRequestError(f"Idempotency-Key: at most {MAX_LENGTH} printable characters")
            who = sender(await self._admit(Headers(scope=scope)))
            begun = await store.begin(who, key, digest)
        except AgentError as error:  # a key that cannot be taken, a caller who may not call, a store that is down
            headers = {} if isinstance(error, StoreError) else {"x-should-retry": "false"}
            await error_response(error, scope["path"], headers=headers)(scope, receive, send)
            return
        if isinstance(begun, KeptAnswer):
            await _replay(begun, send)
            return

        async def note(run_id: str) -> None:
            await store.note(who, key, run_id)

        scope.setdefault("state", {})["once"] = _Once(begun, note)
        kept = _Kept(send)
        await self._app(scope, _again(body, receive), kept.send)
        # Not reached when the process stops meanwhile: the run may go on, and must not be begun again.
        if kept.status in _NOTHING_DONE and not kept.names_run:
            await store.forget(who, key)
        else:
            await store.finish(who, key, kept.status, kept.headers, kept.body)


def sender(caller: Caller) -> str:
    """Who sent a request, as it is kept: the id of their key, or `local` without one, and a hash of whose it is; the
    same however the key was sent. By the part before the slash, what is kept goes with its owner."""
    holder = LOCAL_OWNER if caller.key is None else caller.key.id
    return f"{holder}/{hashlib.sha256(caller.owner.encode()).hexdigest()}"


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

    @property
    def names_run(self) -> bool:
        """Whether a run has begun, which goes on, or has had its effects, whatever the status says."""
        return any(name == RUN_HEADER for name, _ in self.headers)

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


async def _replay(answer: KeptAnswer, send: Send) -> None:
    told = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers]
    told += [(b"content-length", str(len(answer.body)).encode()), (b"idempotent-replayed", b"true")]
    await send({"type": "http.response.start", "status": answer.status, "headers": told})
    await send({"type": "http.response.body", "body": answer.body})


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None when the client goes before it is there. The limit on bodies lies outside of this."""
    parts: list[bytes] = []
    while (message := await receive())["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
    return None


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
