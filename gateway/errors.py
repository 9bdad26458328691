"""Errors at the doors: every failure in the door's own shape, with a request id, and never a traceback."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from agent.core.errors import FAILURES, AgentError, AgentFailure
from agent.core.models import JsonObject

log = logging.getLogger(__name__)

OPENAI_PATHS = ("/v1/chat/completions", "/v1/models", "/v1/responses", "/v1/embeddings", "/v1/completions")
"""Paths whose callers are OpenAI clients and read errors in OpenAI's shape."""

RETRY_SECONDS = 5


class FailureBody(BaseModel):
    """The error body of every door but the OpenAI one."""

    error: AgentFailure


class OpenAIErrorDetail(BaseModel):
    """OpenAI's error object."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIErrorBody(BaseModel):
    """OpenAI's error body."""

    error: OpenAIErrorDetail


_OPENAI_CODES: Mapping[str, tuple[str, str | None]] = {
    # our code: (OpenAI's type, OpenAI's code)
    "ERR_BAD_REQUEST": ("invalid_request_error", None),
    "ERR_TOO_LARGE": ("invalid_request_error", "request_too_large"),
    "ERR_ROOM_UNKNOWN": ("invalid_request_error", "model_not_found"),
    "ERR_NOT_FOUND": ("invalid_request_error", "not_found"),
    "ERR_MODEL_CONTEXT": ("invalid_request_error", "context_length_exceeded"),
    "ERR_MODEL_RATE_LIMIT": ("requests", "rate_limit_exceeded"),
}


class WireError(AgentError):
    """Raised by a door for a request that does not fit its protocol; `param` is the dotted path of the fault."""

    code = "ERR_BAD_REQUEST"

    def __init__(self, message: str, param: str | None = None, openai_code: str | None = None) -> None:
        super().__init__(message, param=param, openai_code=openai_code)


def openai_error(failure: AgentFailure) -> OpenAIErrorBody:
    """A failure in OpenAI's shape."""
    kind, code = _OPENAI_CODES.get(failure.error_code, ("server_error", failure.error_code.lower()))
    param = failure.details.get("param")
    named = failure.details.get("openai_code")
    if failure.error_code == "ERR_ROOM_UNKNOWN":
        param = "model"
    if failure.error_code == "ERR_MODEL_CONTEXT":
        param = "messages"
    return OpenAIErrorBody(
        error=OpenAIErrorDetail(
            message=failure.message,
            type=kind,
            param=param if isinstance(param, str) else None,
            code=named if isinstance(named, str) else code,
        )
    )


def error_response(error: AgentError, path: str, *, run_started: bool = False) -> Response:
    """The HTTP answer for an error of ours. After a run has started, clients are told not to send it again: the
    official SDK repeats 5xx and 429 by itself, and a run may have had side effects."""
    failure = error.failure()
    status = FAILURES[failure.error_code].http_status if failure.error_code in FAILURES else 500
    headers: dict[str, str] = {}
    if status in (429, 503):
        headers["retry-after"] = str(RETRY_SECONDS)
        headers["retry-after-ms"] = str(RETRY_SECONDS * 1000)
    if run_started:
        headers["x-should-retry"] = "false"
    body: BaseModel = openai_error(failure) if is_openai(path) else FailureBody(error=failure)
    return Response(_json(body), status, headers, media_type="application/json")


def _json(body: BaseModel) -> bytes:
    """As JSON; half characters, which a message may quote from the request, escaped."""
    return json.dumps(body.model_dump(mode="python"), default=str).encode()


def is_openai(path: str) -> bool:
    """Whether the callers of this path speak OpenAI's protocol."""
    return path.startswith(OPENAI_PATHS)


def install(app: FastAPI) -> None:
    """Register the handlers."""
    app.add_exception_handler(AgentError, _ours)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _defect)


async def _ours(request: Request, error: Exception) -> Response:
    if not isinstance(error, AgentError):
        raise error
    started = bool(getattr(request.state, "run_started", False))
    return error_response(error, request.url.path, run_started=started)


async def _validation(request: Request, error: Exception) -> Response:
    """FastAPI's 422 becomes a 400 that names the first fault; the rest is in the details."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    return error_response(wire_error(faults), request.url.path)


def wire_error(faults: Sequence[Any]) -> WireError:
    """The first fault of a validation, in the words of OpenAI's API."""
    fault = faults[0] if faults else {"type": "value_error", "loc": (), "msg": "the request is not valid"}
    location = [part for part in fault["loc"] if part != "body"]
    kind = str(fault["type"])
    if kind == "json_invalid":
        return WireError("We could not parse the JSON body of your request.")
    param = dotted(location) or None
    code: str | None = (
        "missing_required_parameter"
        if kind == "missing"
        else "invalid_type"
        if "type" in kind or "parsing" in kind
        else "invalid_value"
    )
    message = str(fault["msg"])
    if param is None:
        message = "The body must be a JSON object, sent with `content-type: application/json`."
        code = None
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


async def _http(request: Request, error: Exception) -> Response:
    """404 and 405 of the router, in the door's shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = request.url.path
    told = {
        404: f"there is nothing at {request.method} {path}",
        405: f"{request.method} is not allowed at {path}",
    }.get(status, str(getattr(error, "detail", "")) or "the request failed")
    details: JsonObject = {}
    if is_openai(path):
        kind = "invalid_request_error" if status < 500 else "server_error"
        body: BaseModel = OpenAIErrorBody(error=OpenAIErrorDetail(message=told, type=kind, code=None))
    else:
        code = "ERR_NOT_FOUND" if status == 404 else "ERR_BAD_REQUEST" if status < 500 else "ERR_INTERNAL"
        failure = AgentFailure(agent_id="gateway", error_code=code, message=told, recoverable=False, details=details)
        body = FailureBody(error=failure)
    return Response(body.model_dump_json(), status, getattr(error, "headers", None), media_type="application/json")


async def _defect(request: Request, error: Exception) -> Response:
    """A defect of ours: logged with its traceback, told without it."""
    request_id = getattr(request.state, "request_id", "unknown")
    log.error("request %s: %s %s failed", request_id, request.method, request.url.path, exc_info=error)
    message = f"a defect of Stepgate ended this request; the log has the details under request id {request_id}"
    failure = AgentFailure(agent_id="gateway", error_code="ERR_INTERNAL", message=message, recoverable=False)
    body: BaseModel = openai_error(failure) if is_openai(request.url.path) else FailureBody(error=failure)
    headers = {"x-should-retry": "false", "x-request-id": str(request_id)}
    return JSONResponse(body.model_dump(mode="json"), 500, headers)
