"""The log lines an operator follows the gateway by: one for each request, one for the end of each run.

What a caller sent stands in none of them: a route's pattern, not its path; a code, not its message.
"""

import logging
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.core import events as ev
from agent.core.fold import RunState
from gateway.gatekeeper import Caller
from gateway.observe.metrics import METHODS, pattern

log = logging.getLogger("gateway.requests")
run_log = logging.getLogger("gateway.runs")

PROBES = frozenset({"/health", "/ready", "/metrics"})
"""Asked every few seconds by machines: told of only where they fail."""
HANGS_UP = 499
"""nginx's number for a client that went away first."""
_FOR_OPERATORS = ("ERR_MODEL", "ERR_STORE", "ERR_EMBEDDER", "ERR_CONFIG", "ERR_INTERNAL", "ERR_VECTOR_SPACE")
"""Beginnings of the codes that somebody has to do something about."""


class RequestLogMiddleware:
    """Writes the line of each request once its last byte is out: its id is the one of the context."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or not log.isEnabledFor(logging.INFO):
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), HANGS_UP

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, seen)
        except Exception:
            status = 500
            raise
        finally:
            self._write(scope, status, perf_counter() - started)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        route = pattern(scope)
        if route in PROBES and status < 400:
            return
        method = scope["method"] if scope["method"] in METHODS else "other"
        caller = scope.get("state", {}).get("caller")
        key = caller.key.id if isinstance(caller, Caller) and caller.key is not None else None
        ms = round(seconds * 1000, 1)
        told = {"method": method, "route": route, "status": status, "ms": ms, "key": key}
        log.log(
            logging.WARNING if status >= 500 else logging.INFO,
            "%s %s %d in %s ms%s", method, route, status, ms, f" by {key}" if key else "",
            extra=told,
        )  # fmt: skip


def log_run(state: RunState, event: ev.Event) -> None:
    """An observer of runs: the end of each, as a warning where an operator has to act."""
    body = event.body
    if not body.terminal:
        return
    code = body.failure.error_code if isinstance(body, ev.RunFailed) else None
    level = logging.WARNING if code is not None and code.startswith(_FOR_OPERATORS) else logging.INFO
    if not run_log.isEnabledFor(level):
        return
    seconds = round(max(0.0, event.at - state.created_at), 3)
    told = {"run_id": event.run_id, "status": state.status, "code": code, "seconds": seconds, "room": state.room.id}
    ended = f"{state.status}, {code}," if code else state.status
    run_log.log(level, "run %s %s after %s s", event.run_id, ended, seconds, extra={**told, "key": state.key})
