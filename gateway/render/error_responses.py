"""Error responses: every failure in its door's shape, with a request id and without a traceback."""

import difflib
import logging
import secrets
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from agent.core.errors import AgentError, NotFoundError, StoreError
from agent.core.value_faults import describe_fault
from gateway.render.errors import (
    RequestFormatError,
    find_nearest_endpoint,
    get_http_status,
    render_failure,
)

log = logging.getLogger(__name__)

RETRY_SECONDS = 5
_FINAL = frozenset({"ERR_QUOTA", "ERR_MODEL_REQUEST", "ERR_MODEL_CONTEXT"})
"""Errors that a retry would hit again; the response tells clients not to retry."""


class FieldError(RequestFormatError):
    """Raised for a field without a usable value, such as a task without a prompt."""

    code = "ERR_FIELD"


class MethodError(RequestFormatError):
    """Raised for a path that exists but does not allow this method."""

    code = "ERR_METHOD"


class MediaTypeError(RequestFormatError):
    """Raised for a body that is compressed, or not sent as JSON or as the form that its door takes.

    Broken JSON is a `RequestFormatError`.
    """

    code = "ERR_MEDIA_TYPE"


class HeadersError(RequestFormatError):
    """Raised for a request line and headers that together exceed the limit."""

    code = "ERR_HEADERS"

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the request line and headers are larger than {max_bytes:,} bytes")


class ClientSlowError(RequestFormatError):
    """Raised if a request does not arrive in time."""

    code = "ERR_CLIENT_SLOW"


class ClientDisconnectedError(RequestFormatError):
    """Raised if the client has disconnected before the answer. Only metrics and logs see it."""

    code = "ERR_CLIENT_GONE"


class HostError(RequestFormatError):
    """Raised for a host name that the gateway does not answer to. A malformed Host is a `RequestFormatError`."""

    code = "ERR_HOST"


class OriginError(RequestFormatError):
    """Raised for a request of a web page that may not call the gateway."""

    code = "ERR_ORIGIN"


def make_request_id() -> str:
    """An id for a request that brings none."""
    return f"req_{secrets.token_hex(12)}"


def build_error_response(
    error: AgentError,
    path: str,
    *,
    run_started: bool = False,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The HTTP response for an `AgentError`. `status` replaces the code's own status.

    After a run has started the response says `x-should-retry: false`: the official SDKs repeat 5xx and 429 by
    themselves, and a run may have had side effects.
    """
    failure = error.to_failure()
    status = status or get_http_status(failure.error_code)
    sent = dict(headers or {})
    hopeless = failure.error_code in _FINAL or failure.details.get("retry") is False
    if status in (429, 503) and not hopeless:
        stated = failure.details.get("retry_after_s")
        seconds = float(stated) if isinstance(stated, int | float) else float(RETRY_SECONDS)
        sent["retry-after"] = str(ceil(seconds))
        sent["retry-after-ms"] = str(round(seconds * 1000))
    if status == 401:
        sent["www-authenticate"] = "Bearer"
    if run_started or hopeless:
        sent["x-should-retry"] = "false"
    named = error.openai_code if isinstance(error, RequestFormatError) else None
    return Response(render_failure(failure, path, named), status, sent, media_type="application/json")


def install_error_handlers(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Registers the error handlers. `routes` are the doors' routes, used to suggest the intended path of a 404."""

    async def unserved(request: Request, error: Exception) -> Response:
        return _handle_http_exception(request, error, routes)

    app.add_exception_handler(AgentError, _handle_agent_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, unserved)
    app.add_exception_handler(Exception, _handle_defect)


async def _handle_agent_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, AgentError):
        raise error
    return build_agent_error_response(request, error)


def build_agent_error_response(request: Request, error: AgentError) -> Response:
    """The response for a request that failed with an `AgentError`, whether its run continues or not."""
    error = _hide_store_details(request, error)
    started = bool(getattr(request.state, "run_started", False))
    run_id = getattr(request.state, "run_id", None)
    headers = {"x-stepgate-run-id": str(run_id)} if run_id else {}
    return build_error_response(error, request.url.path, run_started=started, headers=headers)


def _hide_store_details(request: Request, error: AgentError) -> AgentError:
    """The error as this caller may read it.

    Where keys are required, callers do not own the machine: where the store is located goes into the log only.
    """
    stepgate = getattr(request.app.state, "stepgate", None)
    if not isinstance(error, StoreError) or stepgate is None or not stepgate.authenticator.requires_key:
        return error
    log.error("%s: %s", error.code, error.message)
    return type(error)(f"{error.kind.meaning}; the gateway's log has the details", agent_id=error.agent_id)


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    """Turns FastAPI's 422 into a 400 that names the first fault."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    return build_error_response(build_validation_error(faults), request.url.path)


def build_validation_error(faults: Sequence[Any]) -> RequestFormatError:
    """The first fault of a validation, in the words of OpenAI's API."""
    fault = faults[0] if faults else {"type": "value_error", "loc": (), "msg": "the request is not valid"}
    location = [part for part in fault["loc"] if part != "body"]
    kind = str(fault["type"])
    param = format_location(location) or None
    code: str | None = (
        "missing_required_parameter"
        if kind == "missing"
        else "invalid_type"
        if "type" in kind or "parsing" in kind
        else "invalid_value"
    )
    message = describe_fault(fault)
    if param is None:
        code = None
    elif kind == "extra_forbidden":
        code = "unknown_parameter"
        message = f"Unknown field: '{param}'."
    elif kind == "missing":
        message = f"Missing required parameter: '{param}'."
    elif kind == "too_short":
        code = "empty_array"
        message = f"Invalid '{param}': empty array. Expected at least 1 item."
    else:
        message = f"Invalid value for '{param}': {message}."
    return RequestFormatError(message, param, code)


def format_location(location: Sequence[str | int]) -> str:
    """Formats a validation's location as `messages[0].role`; leaves out the names of union members."""
    text = ""
    for part in location[:8]:  # a deeper path does not help the reader
        if isinstance(part, int):
            text += f"[{part}]"
        elif (
            not part[:1].isupper()
            and "[" not in part
            and part not in ("str", "list", "tuple", "dict", "query", "header", "path")
        ):
            text += f".{part}" if text else part
    return text


def _handle_http_exception(request: Request, error: Exception, routes: Sequence[BaseRoute]) -> Response:
    """The router's refusal in the door's shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    method, path = request.method, request.url.path
    if status == 404:
        return build_error_response(
            NotFoundError(f"there is nothing at {method} {path}{_suggest_path(request, routes)}"), path
        )
    if status == 405:
        matching = _routes_at(routes, request.scope, path)
        allowed = ", ".join(sorted({name for route in matching for name in route.methods or ()}))
        refused = MethodError(f"{method} is not allowed at {path}; use {allowed}")
        return build_error_response(refused, path, headers={"allow": allowed})
    message = str(getattr(error, "detail", "")) or "the request failed"
    failure = RequestFormatError(message) if status < 500 else AgentError(message)
    return build_error_response(failure, path, status=status, headers=getattr(error, "headers", None))


def _suggest_path(request: Request, routes: Sequence[BaseRoute]) -> str:
    """A hint with the nearest known path, or ""."""
    path = request.url.path
    if (nearest := find_nearest_endpoint(path)) is not None:
        return f"; the nearest endpoint is {nearest}"
    if path != "/" and path.endswith("/") and _routes_at(routes, request.scope, path.rstrip("/")):
        return f"; did you mean {path.rstrip('/')} (without the slash at its end)?"
    known_route_paths = [route.path for route in routes if isinstance(route, Route)]
    near = difflib.get_close_matches(path[:200], known_route_paths, n=1, cutoff=0.8)
    return f"; did you mean {near[0]}?" if near else ""


def _routes_at(routes: Sequence[BaseRoute], scope: Scope, path: str) -> list[Route]:
    """The routes at a path, whatever their methods."""
    here = {**scope, "path": path}
    return [route for route in routes if isinstance(route, Route) and route.matches(here)[0] is not Match.NONE]


async def _handle_defect(request: Request, error: Exception) -> Response:
    return build_defect_response(request.scope, error)


def build_defect_response(scope: Scope, error: Exception) -> Response:
    """Logs a defect with its traceback and returns the response without it."""
    request_id = scope.get("state", {}).get("request_id", "unknown")
    log.error("request %s: %s %s failed", request_id, scope["method"], scope["path"], exc_info=error)
    message = f"an internal error ended this request; the gateway's log has the details under request id {request_id}"
    headers = {"x-should-retry": "false", "x-request-id": str(request_id)}
    return build_error_response(AgentError(message), scope["path"], headers=headers)
