"""Requests of MCP clients that the SDK refuses or leaves without an answer, although their meaning is clear.

A client that accepts only `application/json`, or does not say what it accepts, gets the answer as JSON; the SDK would
refuse it with 406. A request whose id is null or a fraction, which JSON-RPC allows, or anything else is answered under
that id.
"""

import json
from decimal import Decimal
from secrets import token_hex
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BOTH = b"application/json, text/event-stream"
_STREAMS = ("subscriptions/listen",)
"""Methods whose answer is a stream, which cannot be given as JSON."""


class McpMessageMiddleware:
    """The SDK's endpoint for such requests too."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        """A larger body is passed on as it is: the SDK refuses it."""
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, rest = await self._read_body(receive)
        if rest is not None and rest["type"] == "http.disconnect":
            return  # nobody is there any more; the SDK would log an error
        message = _parse(body) if rest is None else None
        if message is not None and "id" in message and type(message["id"]) not in (str, int):  # a bool is an int too
            send, body = _answer_under_other_id(message, send), json.dumps(message, default=float).encode()
            scope = {**scope, "headers": [*_without(scope, b"content-length"), (b"content-length", b"%d" % len(body))]}
        if (message is None or message["method"] not in _STREAMS) and _wants_json_only(scope):
            scope = {**scope, "headers": [*_without(scope, b"accept"), (b"accept", _BOTH)]}
            send = _JsonAnswer(send).send
        await self._app(scope, _replay(body, rest, receive), send)

    async def _read_body(self, receive: Receive) -> tuple[bytes, Message | None]:
        """The body, and the message after it if it is too large or ends early; else None."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(body), message
            if len(body) + len(message.get("body", b"")) > self._max_body_bytes:
                return bytes(body), message
            body += message.get("body", b"")
            if not message.get("more_body", False):
                return bytes(body), None


def _replay(body: bytes, rest: Message | None, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, and what follows."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": rest is not None}]
    pending += [] if rest is None else [rest]

    async def receive_again() -> Message:
        return pending.pop(0) if pending else await receive()

    return receive_again


def _parse(body: bytes) -> dict[str, Any] | None:
    """A request or notification, its fractions as `Decimal`; None for everything else."""
    try:
        message = json.loads(body, parse_float=Decimal, parse_constant=_refuse_constant)
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return message if isinstance(message, dict) and isinstance(message.get("method"), str) else None


def _refuse_constant(name: str) -> None:
    """Raises `ValueError`: `NaN` and `Infinity` are not JSON."""
    raise ValueError(name)


def _without(scope: Scope, name: bytes) -> list[tuple[bytes, bytes]]:
    return [(key, value) for key, value in scope["headers"] if key.lower() != name]


def _wants_json_only(scope: Scope) -> bool:
    accepted = Headers(scope=scope).get("accept", "").lower().strip()
    if "text/event-stream" in accepted or "*/*" in accepted:
        return False
    return not accepted or "application/json" in accepted or "application/*" in accepted


def _answer_under_other_id(message: dict[str, Any], send: Send) -> Send:
    """Gives the request an id that the SDK takes. Returns a `send` that puts the client's id back."""
    stand_in, given = f"stepgate-{token_hex(16)}", message["id"]
    own = str(given) if isinstance(given, Decimal) else json.dumps(given, default=float)  # a float would change 1e400
    message["id"] = stand_in

    async def send_with_own_id(event: Message) -> None:
        if event["type"] == "http.response.body":
            event = {**event, "body": event.get("body", b"").replace(f'"{stand_in}"'.encode(), own.encode())}
        elif event["type"] == "http.response.start":
            other_headers = [(name, value) for name, value in event["headers"] if name.lower() != b"content-length"]
            event = {**event, "headers": other_headers}
        await send(event)

    return send_with_own_id


class _JsonAnswer:
    """Collects a response of server-sent events, and sends the answer in it as JSON. Other responses pass through."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._events = bytearray()

    async def send(self, event: Message) -> None:
        """Receives one event of the response."""
        if event["type"] == "http.response.start" and _is_event_stream(event):
            self._start = event
        elif self._start is None:
            await self._send(event)
        else:
            self._events += event.get("body", b"")
            if not event.get("more_body", False):
                await self._finish(self._start)

    async def _finish(self, start: Message) -> None:
        answer = _find_answer(bytes(self._events))
        replaced = (b"content-type", b"content-length", b"cache-control")
        headers = [(name, value) for name, value in start["headers"] if name.lower() not in replaced]
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await self._send({**start, "headers": headers})
        await self._send({"type": "http.response.body", "body": answer})


def _is_event_stream(start: Message) -> bool:
    kinds = [value for name, value in start["headers"] if name.lower() == b"content-type"]
    return bool(kinds) and kinds[0].startswith(b"text/event-stream")


def _find_answer(events: bytes) -> bytes:
    """The response among the events, which notifications may precede; an empty body if there is none."""
    for line in reversed(events.splitlines()):
        if line.startswith(b"data:"):
            data = line[5:].strip()
            message = json.loads(data) if data else None
            if isinstance(message, dict) and ("result" in message or "error" in message):
                return data
    return b""
