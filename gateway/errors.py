"""Errors at the doors: every failure in the door's own shape, with a request id, and never a traceback."""

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

from agent.core.errors import FAILURES, AgentError, FailureKind, NotFoundError, StoreError
from gateway.render.errors import DOOR_FAILURES, shaped, status_of

log = logging.getLogger(__name__)

RETRY_SECONDS = 5


class WireError(AgentError):
    """Raised by a door for a request that does not fit its protocol; `param` is the dotted path of the fault."""

    code = "ERR_BAD_REQUEST"

    def __init__(self, message: str, param: str | None = None, openai_code: str | None = None) -> None:
        super().__init__(message, param=param)
        self.openai_code = openai_code
        """What OpenAI calls this fault, where its code says more than ours."""

    @property
    def kind(self) -> FailureKind:
        """This error's row of the failure tables."""
        return DOOR_FAILURES.get(self.code) or FAILURES[self.code]


class FieldError(WireError):
    """Raised for a field whose value says nothing: a task without a prompt."""

    code = "ERR_FIELD"


class MethodError(WireError):
    """Raised for a path that exists, but not for this method."""

    code = "ERR_METHOD"


class MediaTypeError(WireError):
    """Raised for a body that is compressed or is not sent as JSON; broken JSON is a `WireError`."""

    code = "ERR_MEDIA_TYPE"


class HeadersError(WireError):
    """Raised for a request line and headers that are too large together."""

    code = "ERR_HEADERS"

    def __init__(self, max_bytes: int) -> None:
        told = f"the request line and headers are larger than {max_bytes:,} bytes (AGENT_MAX_HEADER_BYTES)"
        super().__init__(told)


class ClientSlowError(WireError):
    """Raised where a request does not come in in time."""

    code = "ERR_CLIENT_SLOW"


class ClientGoneError(WireError):
    """Raised where nobody is there any more to be answered; only counters and logs see it."""

    code = "ERR_CLIENT_GONE"


class HostError(WireError):
    """Raised where only named hosts and origins may call (`/mcp`)."""

    code = "ERR_HOST"


def new_request_id() -> str:
    """A request id for a request that brings none."""
    return f"req_{secrets.token_hex(12)}"


def error_response(
    error: AgentError,
    path: str,
    *,
    run_started: bool = False,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The HTTP answer for an error of ours. After a run has started, clients are told not to send it again: the
    official SDK repeats 5xx and 429 by itself, and a run may have had side effects. `status` replaces the code's."""
    failure = error.failure()
    status = status or status_of(failure.error_code)
    sent = dict(headers or {})
    hopeless = failure.error_code == "ERR_QUOTA" or failure.details.get("retry") is False
    if status in (429, 503) and not hopeless:
        told = failure.details.get("retry_after_s")
        seconds = float(told) if isinstance(told, int | float) else float(RETRY_SECONDS)
        sent["retry-after"] = str(ceil(seconds))
        sent["retry-after-ms"] = str(round(seconds * 1000))
    if status == 401:
        sent["www-authenticate"] = "Bearer"
    if run_started or hopeless:
        sent["x-should-retry"] = "false"
    named = error.openai_code if isinstance(error, WireError) else None
    return Response(shaped(failure, path, named), status, sent, media_type="application/json")


def install(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Register the handlers. `routes` are the doors', to tell what a path that is not served may have meant."""

    async def unserved(request: Request, error: Exception) -> Response:
        return _http(request, error, routes)

    app.add_exception_handler(AgentError, _ours)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, unserved)
    app.add_exception_handler(Exception, _defect)


async def _ours(request: Request, error: Exception) -> Response:
    if not isinstance(error, AgentError):
        raise error
    return told(request, error)


def told(request: Request, error: AgentError) -> Response:
    """The answer to a request that failed by an error of ours, whether a run of it goes on or not."""
    error = _discreet(request, error)
    started = bool(getattr(request.state, "run_started", False))
    run_id = getattr(request.state, "run_id", None)
    headers = {"x-stepgate-run-id": str(run_id)} if run_id else {}
    return error_response(error, request.url.path, run_started=started, headers=headers)


def _discreet(request: Request, error: AgentError) -> AgentError:
    """The error as this caller may read it: where keys are demanded, who calls does not own the machine, and what says
    where the store lies goes into the log only."""
    stepgate = getattr(request.app.state, "stepgate", None)
    if not isinstance(error, StoreError) or stepgate is None or not stepgate.gatekeeper.demanded:
        return error
    log.error("%s: %s", error.code, error.message)
    return type(error)(f"{error.kind.meaning}; it is in the log of this gateway's operator", agent_id=error.agent_id)


async def _validation(request: Request, error: Exception) -> Response:
    """FastAPI's 422 becomes a 400 that names the first fault; the rest is in the details."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    return error_response(wire_error(faults), request.url.path)


def wire_error(faults: Sequence[Any]) -> WireError:
    """The first fault of a validation, in the words of OpenAI's API."""
    fault = faults[0] if faults else {"type": "value_error", "loc": (), "msg": "the request is not valid"}
    location = [part for part in fault["loc"] if part != "body"]
    kind = str(fault["type"])
    param = dotted(location) or None
    code: str | None = (
        "missing_required_parameter"
        if kind == "missing"
        else "invalid_type"
        if "type" in kind or "parsing" in kind
        else "invalid_value"
    )
    message = str(fault["msg"]).removeprefix("Value error, ")
    message = message.replace("a valid tuple", "a valid list")  # JSON knows no tuples
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
    return WireError(message, param, code)


def dotted(location: Sequence[str | int]) -> str:
    """`messages[0].role` from a validation's location; names of union members are left out."""
    text = ""
    for part in location[:8]:  # deeper, a path names nothing any more
        if isinstance(part, int):
            text += f"[{part}]"
        elif (
            not part[:1].isupper()
            and "[" not in part
            and part not in ("str", "list", "tuple", "dict", "query", "header", "path")
        ):
            text += f".{part}" if text else part
    return text


def _http(request: Request, error: Exception, routes: Sequence[BaseRoute]) -> Response:
    """What the router refuses, in the door's shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    method, path = request.method, request.url.path
    if status == 404:
        return error_response(NotFoundError(f"there is nothing at {method} {path}{_hint(request, routes)}"), path)
    if status == 405:
        found = _serving(routes, request.scope, path)
        allowed = ", ".join(sorted({name for route in found for name in route.methods or ()}))
        refused = MethodError(f"{method} is not allowed at {path}; use {allowed}")
        return error_response(refused, path, headers={"allow": allowed})
    told = str(getattr(error, "detail", "")) or "the request failed"
    failed = WireError(told) if status < 500 else AgentError(told)
    return error_response(failed, path, status=status, headers=getattr(error, "headers", None))


def _hint(request: Request, routes: Sequence[BaseRoute]) -> str:
    """The path that was meant, where one is near."""
    path = request.url.path
    if path != "/" and path.endswith("/") and _serving(routes, request.scope, path.rstrip("/")):
        return f"; did you mean {path.rstrip('/')} (without the slash at its end)?"
    known = [route.path for route in routes if isinstance(route, Route)]
    near = difflib.get_close_matches(path[:200], known, n=1, cutoff=0.8)
    return f"; did you mean {near[0]}?" if near else ""


def _serving(routes: Sequence[BaseRoute], scope: Scope, path: str) -> list[Route]:
    """The routes at a path, whatever their methods."""
    here = {**scope, "path": path}
    return [route for route in routes if isinstance(route, Route) and route.matches(here)[0] is not Match.NONE]


async def _defect(request: Request, error: Exception) -> Response:
    return defect_response(request.scope, error)


def defect_response(scope: Scope, error: Exception) -> Response:
    """A defect of ours: logged with its traceback, told without it."""
    request_id = scope.get("state", {}).get("request_id", "unknown")
    log.error("request %s: %s %s failed", request_id, scope["method"], scope["path"], exc_info=error)
    message = f"a defect of Stepgate ended this request; the log has the details under request id {request_id}"
    headers = {"x-should-retry": "false", "x-request-id": str(request_id)}
    return error_response(AgentError(message), scope["path"], headers=headers)
