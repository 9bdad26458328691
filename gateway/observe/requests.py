"""ASGI middleware around every request: its id, its line in the log, its place in the metrics."""

import logging
import re
from time import perf_counter

from starlette.datastructures import State
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.access.authentication import Caller
from gateway.observe.logs import request_id as current_request
from gateway.observe.metrics import Metrics
from gateway.render.error_responses import build_defect_response, make_request_id

log = logging.getLogger("gateway.requests")

QUIET_ROUTES = frozenset({"/health", "/ready", "/metrics", "/web/{name:path}"})
"""Routes that machines poll every few seconds, and the page's sixty files; only their failures are logged."""


def log_request(scope: Scope, method: str, route: str, status: int, seconds: float) -> None:
    """Logs a request after its last byte. The request id comes from the context."""
    if (route in QUIET_ROUTES and status < 400) or not log.isEnabledFor(logging.INFO):
        return
    caller = scope["state"].get("caller")
    key = caller.key.id if isinstance(caller, Caller) and caller.key is not None else None
    ms = round(seconds * 1000, 1)
    fields = {"method": method, "route": route, "status": status, "ms": ms, "key": key}
    log.log(
        logging.WARNING if status >= 500 else logging.INFO,
        "%s %s %d in %s ms%s", method, route, status, ms, f" by {key}" if key else "",
        extra=fields,
    )  # fmt: skip


METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
"""Methods that log lines and labels may contain; the caller chooses the method."""
CLIENT_DISCONNECTED = 499
"""nginx's status for a client that disconnected first."""

_REQUEST_ID = re.compile(r"^[A-Za-z0-9._:-]{1,128}$")


class RequestMiddleware:
    """Sets `x-request-id`: the caller's own if it is well formed, else a new one. Logs and counts the request after its
    last byte.

    It also answers uncaught exceptions, so that no response lacks the id.
    """

    def __init__(self, app: ASGIApp, state: State, *, counts: bool) -> None:
        """`state` is the application's: it holds the gateway, with its metrics, once this is built."""
        self._app = app
        self._state, self._counts = state, counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = perf_counter()
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        text = given.decode("latin-1")
        request_id = text if _REQUEST_ID.match(text) else make_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        current_request.set(request_id)
        status: int | None = None

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [pair for pair in message["headers"] if pair[0] != b"x-request-id"]
                extra = scope["state"].get("extra_headers", {}).items()
                added = [(name.encode(), value.encode()) for name, value in extra]
                added += scope["state"].get("cors_headers", ())
                message["headers"] = [*headers, *added, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            if status is not None:
                status = 500
                raise
            await build_defect_response(scope, error)(scope, receive, send_with_id)
        finally:
            self._record(scope, CLIENT_DISCONNECTED if status is None else status, perf_counter() - started_at)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else "other"
        route = _get_route_pattern(scope)
        log_request(scope, method, route, status, seconds)
        if self._counts:
            metrics: Metrics = self._state.stepgate.metrics
            metrics.count_request(method, route, status, seconds)


def _get_route_pattern(scope: Scope) -> str:
    """The pattern of the route that served the request, which the router leaves in the scope. Never the path:
    the caller chooses it.
    """
    route = scope.get("route")
    if isinstance(route, Route):
        return route.path
    return "/mcp" if str(scope["path"]).partition("/mcp")[0] == "" else "other"
