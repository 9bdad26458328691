"""`Idempotency-Key`: a repeated request gets the same answer, and its run is executed once.

The first request with a key is recorded before anything is done, with the id of its run; its response is stored
afterwards. A repetition gets that response; 409 while the first is still in progress; 422 if its body differs. If the
first request's process was killed, its run continues and answers the repetition (see `start_once`). Keys belong to
their sender, which is authenticated before anything is recorded or returned. A response is kept for a day. One that was
streamed, or that holds a secret (`cache-control: no-store`), is not stored: repeated, it is a 409 that names the run or
what was made.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core.errors import AgentError, BadRequestError, StoreError
from agent.core.models import LOCAL_OWNER
from agent.runs.service import AcceptedRun
from gateway.access.authentication import Caller
from gateway.access.idempotency_store import PLACE_HEADER, RUN_HEADER, IdempotencyStore, StartedRequest, StoredResponse
from gateway.render.error_responses import build_error_response

HEADER_NAME = b"idempotency-key"
MAX_KEY_CHARS = 255
MAX_STORED_BYTES = 5_000_000
_REFUSAL_STATUSES = frozenset({400, 401, 403, 404, 405, 413, 415, 422, 429, 503})
"""Statuses of refused requests, which may be sent again with the same key."""
_REPLAYED_HEADERS = (b"content-type", RUN_HEADER.encode(), PLACE_HEADER.encode(), b"x-should-retry")


@dataclass(frozen=True, slots=True)
class _IdempotentRequest:
    """A request with an idempotency key, for its door."""

    started: StartedRequest
    record_run: Callable[[str], Awaitable[None]]


async def start_once(http: Request, owner: str, begin: Callable[[str | None], Awaitable[AcceptedRun]]) -> AcceptedRun:
    """The run that answers the request. Calls `begin(run_id)` unless a crashed process already started the run.

    `run_id` is the id recorded for a new run, or None without an idempotency key.
    """
    once = getattr(http.state, "once", None)
    if not isinstance(once, _IdempotentRequest):
        return await begin(None)
    if once.started.has_run:
        return AcceptedRun(once.started.run_id, owner)
    accepted = await begin(once.started.run_id)
    if accepted.run_id != once.started.run_id:
        await once.record_run(accepted.run_id)
    return accepted


class IdempotencyMiddleware:
    """Handles POST requests that carry the header."""

    def __init__(
        self, app: ASGIApp, store: Callable[[], IdempotencyStore], authenticate: Callable[[Headers], Awaitable[Caller]]
    ) -> None:
        self._app = app
        self._store = store
        self._authenticate = authenticate

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handles one request. Not a coroutine function: nearly all requests lack the header and need none."""
        key = _read_header(scope, HEADER_NAME) if scope["type"] == "http" and scope["method"] == "POST" else ""
        if not key or str(scope["path"]).startswith("/mcp"):
            return self._app(scope, receive, send)
        return self._handle_once(key, scope, receive, send)

    async def _handle_once(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _read_body(receive)
        if body is None:  # nothing is recorded: a repetition sends the whole body again
            return
        digest = hashlib.sha256(f"{scope['path']}?{scope['query_string']}\n".encode() + body).hexdigest()
        store = self._store()
        try:
            if len(key) > MAX_KEY_CHARS or not key.isprintable():
                raise BadRequestError(f"Idempotency-Key: at most {MAX_KEY_CHARS} printable characters")
            who = hash_caller(await self._authenticate(Headers(scope=scope)))
            result = await store.begin_request(who, key, digest)
        except AgentError as error:  # an unusable key, an unauthorised caller, or a store that is down
            headers = {} if isinstance(error, StoreError) else {"x-should-retry": "false"}
            await build_error_response(error, scope["path"], headers=headers)(scope, receive, send)
            return
        if isinstance(result, StoredResponse):
            await _send_stored_response(result, send)
            return

        async def note(run_id: str) -> None:
            await store.record_run(who, key, run_id)

        scope.setdefault("state", {})["once"] = _IdempotentRequest(result, note)
        recorder = _ResponseRecorder(send)
        try:
            await self._app(scope, _replay_body(body, receive), recorder.send)
        except Exception:  # a defect, which an outer middleware answers
            await store.release_request(who, key)
            raise
        # Not reached if the process stops meanwhile: the run may continue and must not be started again.
        if recorder.status in _REFUSAL_STATUSES and not recorder.has_run_header:
            await store.delete_request(who, key)
        else:
            await store.store_response(who, key, recorder.status, recorder.headers, recorder.body)


def hash_caller(caller: Caller) -> str:
    """A request's sender as it is stored: the id of its key (or `local`), a slash, and a hash of its owner.

    The same however the key was sent. Deleting an owner finds its rows by the part before the slash.
    """
    holder = LOCAL_OWNER if caller.key is None else caller.key.id
    return f"{holder}/{hashlib.sha256(caller.owner.encode()).hexdigest()}"


class _ResponseRecorder:
    """Passes a response on and keeps a copy, unless it is a stream, too long, or says that it must not be stored."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._chunks: list[bytes] = []
        self._is_passed_only = False
        self.status = 0
        self.headers: list[list[str]] = []

    @property
    def body(self) -> bytes | None:
        """The whole body, or None where it is not stored."""
        return None if self._is_passed_only else b"".join(self._chunks)

    @property
    def has_run_header(self) -> bool:
        """Whether a run has started, whatever the status is."""
        return any(name == RUN_HEADER for name, _ in self.headers)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [[n.decode(), v.decode("latin-1")] for n, v in message["headers"] if n in _REPLAYED_HEADERS]
            self._is_passed_only = any(
                (n == b"content-type" and v.startswith(b"text/event-stream"))
                or (n == b"cache-control" and b"no-store" in v.lower())
                for n, v in message["headers"]
            )
        elif message["type"] == "http.response.body" and not self._is_passed_only:
            self._chunks.append(message.get("body", b""))
            if sum(map(len, self._chunks)) > MAX_STORED_BYTES:
                self._is_passed_only = True
                self._chunks.clear()
        await self._send(message)


async def _send_stored_response(answer: StoredResponse, send: Send) -> None:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers]
    headers += [(b"content-length", str(len(answer.body)).encode()), (b"idempotent-replayed", b"true")]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None if the client disconnects first. An outer middleware limits its size."""
    parts: list[bytes] = []
    while (message := await receive())["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
    return None


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that repeats the body as one message, then passes on what follows."""
    is_sent = False

    async def repeated() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return repeated


def _read_header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")
