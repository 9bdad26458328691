"""Answers that take their time, made and sent outside of FastAPI: its layers, the body of the request and all that was
made of it would take a quarter of what a turn under way does."""

from collections.abc import Awaitable, Callable

from fastapi import Request
from fastapi.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.core.errors import AgentError
from gateway.errors import told

Make = Callable[[Request], Awaitable[Response]]

_KEY = "stepgate.awaited"
"""Where in the scope `Awaited` leaves what is still to be done."""


class Awaited(Response):
    """What a door returns in the place of such an answer: how to `make` it. Raises nothing itself; what `make` raises
    is answered as if the door had raised it."""

    def __init__(self, make: Make) -> None:
        super().__init__()
        self._make = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Leave it to `AwaitedMiddleware`."""
        scope[_KEY] = self._make


class AwaitedMiddleware:
    """Makes and sends what the doors have `Awaited`, once FastAPI is through with the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        inner = dict(scope)  # what FastAPI keeps in there goes with it
        try:
            await self._app(inner, receive, send)
        finally:
            scope["route"] = inner.get("route")  # for those who count and log
        make: Make | None = inner.get(_KEY)
        del inner
        if make is None:
            return
        request = Request(scope, receive)
        try:
            response = await make(request)
        except AgentError as error:
            response = told(request, error)
        await response(scope, receive, send)
