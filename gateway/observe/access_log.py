"""Log lines for operators: one for each request, one for the end of each run.

They contain nothing a caller sent: the route's pattern instead of the path, the error code instead of the message.
"""

import logging

from starlette.types import Scope

from agent.core import events as ev
from agent.core.run_state import RunState
from gateway.auth.authentication import Caller

log = logging.getLogger("gateway.requests")
run_log = logging.getLogger("gateway.runs")

PROBE_ROUTES = frozenset({"/health", "/ready", "/metrics"})
"""Routes that machines poll every few seconds; only their failures are logged."""
_OPERATOR_CODES = ("ERR_MODEL", "ERR_STORE", "ERR_EMBEDDER", "ERR_CONFIG", "ERR_INTERNAL", "ERR_VECTOR_SPACE")
"""Prefixes of the error codes that an operator must act on."""


def log_request(scope: Scope, method: str, route: str, status: int, seconds: float) -> None:
    """Logs a request after its last byte. The request id comes from the context."""
    if (route in PROBE_ROUTES and status < 400) or not log.isEnabledFor(logging.INFO):
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


def log_run(state: RunState, event: ev.Event) -> None:
    """Logs the end of a run; as a warning if an operator must act. An observer of the ends of runs."""
    body = event.body
    code = body.failure.error_code if isinstance(body, ev.RunFailed) else None
    level = logging.WARNING if code is not None and code.startswith(_OPERATOR_CODES) else logging.INFO
    if not run_log.isEnabledFor(level):
        return
    seconds = round(max(0.0, event.at - state.created_at), 3)
    fields = {"run_id": event.run_id, "status": state.status, "code": code, "seconds": seconds, "room": state.room.id}
    ended = f"{state.status}, {code}," if code else state.status
    run_log.log(level, "run %s %s after %s s", event.run_id, ended, seconds, extra={**fields, "key": state.api_key_id})
