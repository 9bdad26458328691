"""Sends a request of an MCP session to the worker that holds the session.

A session of the 2025 protocol lives in one process; with several behind one port, its next request may reach another.
The session's id therefore ends with the index of its worker: `4f1c...-w1`.
"""

import logging
import re
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.worker_process import WorkerProcess

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

HEADER = "mcp-session-id"
_SUFFIX = re.compile(r"-w(\d{1,4})\Z")
_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"upgrade"})


class WorkerSessionMiddleware:
    """Adds the worker's index to session ids that it issues, and forwards requests with the id of another worker."""

    def __init__(self, app: ASGIApp, worker: WorkerProcess) -> None:
        self._app = app
        self._worker = worker
        import httpx  # noqa: PLC0415 - only where there are several workers

        # Streams of a session last as long as the client wants, and any number of them may: by default the client would
        # let the hundredth wait for the end of another. Only the time of connecting is bounded.
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=5), limits=httpx.Limits(max_keepalive_connections=20), trust_env=False
        )
        self._own_suffix = f"-w{worker.index}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or not scope["path"].startswith("/mcp"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        match = _SUFFIX.search(headers.get(HEADER, ""))
        if match is not None and int(match[1]) != self._worker.index and int(match[1]) < len(self._worker.forwarding):
            await self._forward(int(match[1]), scope, receive, send)
            return

        async def add_index(message: Message) -> None:
            if message["type"] == "http.response.start":
                response_headers = MutableHeaders(scope=message)
                if HEADER in response_headers:
                    response_headers[HEADER] += self._own_suffix
            await send(message)

        await self._app(self._without_index(scope), receive, add_index)

    def _without_index(self, scope: Scope) -> Scope:
        """The request with the id as the session's own server knows it."""
        return {**scope, "headers": list(_strip_suffix(scope["headers"], self._own_suffix.encode()))}

    async def _forward(self, index: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request to another worker and its response back, piece by piece."""
        import httpx  # noqa: PLC0415 - as above

        query = scope["query_string"].decode("latin-1")
        url = f"http://127.0.0.1:{self._worker.find_port(index)}{scope['path']}" + (f"?{query}" if query else "")
        headers = [(name, value) for name, value in scope["headers"] if name not in _HOP_BY_HOP]
        request = self._client.build_request(scope["method"], url, headers=headers, content=_read_body(receive))
        try:
            upstream = await self._client.send(request, stream=True)
        except _DisconnectedError:
            return
        except httpx.TransportError as error:
            log.warning("worker %d does not answer for its MCP session: %s", index, error)
            refused = {"code": "ERR_BUSY", "message": "the worker that holds this MCP session is being replaced; retry"}
            await JSONResponse({"error": refused}, HTTPStatus.SERVICE_UNAVAILABLE)(scope, receive, send)
            return
        response = StreamingResponse(upstream.aiter_raw(), upstream.status_code)
        response.raw_headers = [pair for pair in _lower_names(upstream.headers) if pair[0] not in _HOP_BY_HOP]
        try:
            await response(scope, receive, send)
        finally:
            await upstream.aclose()


def _strip_suffix(headers: list[tuple[bytes, bytes]], suffix: bytes) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers:
        yield name, value.removesuffix(suffix) if name == HEADER.encode() else value


def _lower_names(headers: "httpx.Headers") -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers.raw:
        yield name.lower(), value


class _DisconnectedError(Exception):
    """Raised when a client disconnects before its request is complete: the other worker drops it then."""


async def _read_body(receive: Receive) -> AsyncIterator[bytes]:
    """Yields the pieces as they arrive, because the limits are those of the worker that receives them."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _DisconnectedError
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return
