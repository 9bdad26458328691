"""Responses that are built after FastAPI has released the request.

A run may take minutes. FastAPI's layers, the request body and everything parsed from it would hold a tenth more of the
memory of a running request meanwhile.
"""

from collections.abc import Awaitable, Callable

from fastapi import Request
from fastapi.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.core.errors import AgentError
from gateway.render.error_responses import build_agent_error_response

BuildResponse = Callable[[Request], Awaitable[Response]]

_SCOPE_KEY = "stepgate.awaited"
"""Key in the ASGI scope under which `DeferredResponse` leaves its function."""


class DeferredResponse(Response):
    """Returned by a door in place of a slow response; holds the function that builds it.

    An `AgentError` raised by that function is answered as if the door had raised it.
    """

    def __init__(self, make: BuildResponse) -> None:
        super().__init__()
        self._make = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Leaves the response to `DeferredResponseMiddleware`."""
        scope[_SCOPE_KEY] = self._make


class DeferredResponseMiddleware:
    """Builds and sends deferred responses once FastAPI has finished with the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        inner = dict(scope)  # released with everything that FastAPI stores in it
        try:
            await self._app(inner, receive, send)
        finally:
            scope["route"] = inner.get("route")  # for metrics and access log
        make: BuildResponse | None = inner.get(_SCOPE_KEY)
        del inner
        if make is None:
            return
        request = Request(scope, receive)
        try:
            response = await make(request)
        except AgentError as error:
            response = build_agent_error_response(request, error)
        await response(scope, receive, send)
