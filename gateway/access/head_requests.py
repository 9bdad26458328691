"""`HEAD` on every path that answers `GET` (RFC 9110, 9.3.2): the same status and headers, without a body."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.render.errors import MCP_PATH

_NO_HEAD = (MCP_PATH,)
"""Paths whose GET opens a stream of the client's session, of which there is one at a time."""


class HeadMiddleware:
    """The application, for which a HEAD is a GET that ends with its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].startswith(_NO_HEAD):
            await self._app(scope, receive, send)
            return
        ended = asyncio.Event()

        async def send_headers(event: Message) -> None:
            if event["type"] == "http.response.start":
                await send(event)
                await send({"type": "http.response.body", "body": b""})
                ended.set()

        inner = {**scope, "method": "GET"}
        answering = asyncio.ensure_future(self._app(inner, receive, send_headers))
        waiting = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait((answering, waiting), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                await answering
        finally:
            for task in (answering, waiting):  # a stream of events would not end by itself
                task.cancel()
            await asyncio.wait((answering, waiting))
            scope["route"] = inner.get("route")  # for metrics and the access log
