"""Renders failures as error bodies, one shape a protocol. Pure; `error_responses.py` beside it decides
which failure it is.
"""

import json
from collections.abc import Mapping

from pydantic import BaseModel

from agent.core.errors import RequestError
from agent.core.failures import FAILURES, AgentFailure, FailureKind, get_stage
from agent.core.models import DeferredModel

OPENAI_PATHS = ("/v1/chat", "/v1/conversations", "/v1/models", "/v1/responses", "/v1/embeddings", "/v1/completions")
"""Paths whose callers are OpenAI clients and read errors in OpenAI's shape."""
_OWN_ENDING = "/state"
"""Ends the paths below `/v1/conversations` that OpenAI's API does not have."""

NEAREST_ENDPOINTS: Mapping[str, str] = {
    "/v1/assistants": "POST /v1/responses with `previous_response_id` or `conversation`",
    "/v1/audio": "POST /v1/documents for files, POST /v1/chat/completions for text",
    "/v1/batches": "POST /tasks, which stores a request that runs in the background",
    "/v1/chatkit": "POST /v1/responses",
    "/v1/containers": "POST /v1/responses; its tools are those of GET /v1/tools",
    "/v1/evals": "GET /v1/runs, with the trace of every run",
    "/v1/files": "POST /v1/documents",
    "/v1/fine_tuning": "GET /v1/models, which lists the rooms; the operator chooses their models",
    "/v1/images": "POST /v1/chat/completions, which reads images if the model does",
    "/v1/moderations": "POST /v1/guardrails/check",
    "/v1/realtime": "POST /v1/responses with `stream`",
    "/v1/rerank": "POST /v1/search, which ranks the passages of your documents",
    "/v1/threads": "POST /v1/responses with `previous_response_id` or `conversation`",
    "/v1/uploads": "POST /v1/documents",
    "/v1/vector_stores": "GET /v1/collections and POST /v1/search",
    "/v1/videos": "POST /v1/chat/completions, for text only",
}
"""Endpoints of OpenAI and others that Stepgate does not have, and what is nearest to them here."""

DETAIL_PATHS = ("/api/v2/", "/tasks", "/tools")
"""Paths whose callers were written for FastAPI's own errors and read `detail`."""

MCP_PATH = "/mcp"
"""Path whose callers read errors in JSON-RPC's shape."""

DOOR_FAILURES: Mapping[str, FailureKind] = {
    "ERR_FIELD": FailureKind("a field of the body has an invalid value", "correct the named field", 422, False),
    "ERR_METHOD": FailureKind("the path does not take this method", "use a method of the `Allow` header", 405, False),
    "ERR_MEDIA_TYPE": FailureKind("the body is not sent as plain JSON", "send it uncompressed, as JSON", 415, False),
    "ERR_HEADERS": FailureKind("the request line and headers are too large", "send fewer or shorter ones", 431, False),
    "ERR_CLIENT_SLOW": FailureKind("the request did not arrive in time", "send it again without pauses", 408, True),
    "ERR_CLIENT_GONE": FailureKind(
        "the caller disconnected before the answer", "nothing; its run continues", 499, False
    ),
    "ERR_HOST": FailureKind(
        "the gateway does not answer to this host name", "add it to AGENT_ALLOWED_HOSTS", 421, False
    ),
    "ERR_ORIGIN": FailureKind(
        "a web page of this origin may not call the gateway", "add it to AGENT_CORS_ORIGINS if you trust it", 403, False
    ),
}
"""Failures specific to HTTP; the engine has the rest of the table."""


class FailureBody(DeferredModel):
    """The error body of every door but the OpenAI one."""

    error: AgentFailure


class DetailedFailureBody(FailureBody):
    """The error body of conversations and tasks, with the message where clients of FastAPI look for it."""

    detail: str


class OpenAIErrorDetail(DeferredModel):
    """OpenAI's error object."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIErrorBody(DeferredModel):
    """OpenAI's error body."""

    error: OpenAIErrorDetail


_OPENAI_CODES: Mapping[str, tuple[str, str | None]] = {
    # our code: (OpenAI's type, OpenAI's code)
    "ERR_BAD_REQUEST": ("invalid_request_error", None),
    "ERR_IDEMPOTENCY": ("idempotency_error", "idempotency_key_reused"),
    "ERR_GUARDRAIL_INJECTION": ("invalid_request_error", "content_filter"),
    "ERR_GUARDRAIL_UNSAFE": ("invalid_request_error", "content_filter"),
    "ERR_AUTH": ("invalid_request_error", "invalid_api_key"),
    "ERR_SCOPE": ("invalid_request_error", "insufficient_permissions"),
    "ERR_RATE_LIMIT": ("requests", "rate_limit_exceeded"),
    "ERR_QUOTA": ("insufficient_quota", "insufficient_quota"),
    "ERR_TOO_LARGE": ("invalid_request_error", "request_too_large"),
    "ERR_HEADERS": ("invalid_request_error", "headers_too_large"),
    "ERR_CLIENT_SLOW": ("invalid_request_error", "request_timeout"),
    "ERR_METHOD": ("invalid_request_error", "method_not_supported"),
    "ERR_MEDIA_TYPE": ("invalid_request_error", "unsupported_content_type"),
    "ERR_ROOM_UNKNOWN": ("invalid_request_error", "model_not_found"),
    "ERR_CONFLICT": ("invalid_request_error", "conflict"),
    "ERR_NOT_FOUND": ("invalid_request_error", "not_found"),
    "ERR_MODEL_CONTEXT": ("invalid_request_error", "context_length_exceeded"),
    "ERR_MODEL_REQUEST": ("invalid_request_error", None),
    "ERR_MODEL_RATE_LIMIT": ("requests", "rate_limit_exceeded"),
}


_INPUT_NAMES: Mapping[str, str] = {"/v1/responses": "input", "/v1/completions": "prompt"}
"""The parameter with the conversation, by endpoint."""


class RpcErrorDetail(DeferredModel):
    """JSON-RPC's error object. `data` is Stepgate's own failure."""

    code: int
    message: str
    data: AgentFailure


class RpcErrorBody(DeferredModel):
    """The error body of `/mcp`. It has no id: the request was refused before its id was read."""

    jsonrpc: str = "2.0"
    id: None = None
    error: RpcErrorDetail


def get_http_status(code: str) -> int:
    """The HTTP status of an error code."""
    kind = DOOR_FAILURES.get(code) or FAILURES.get(code)
    return kind.http_status if kind else 500


def render_failure(failure: AgentFailure, path: str, named: str | None = None) -> str:
    """A failure as JSON, in the shape of the door at `path`."""
    if is_openai_path(path):
        return to_json(build_openai_error(failure, named, _INPUT_NAMES.get("/".join(path.split("/")[:3]), "messages")))
    return to_json(
        build_rpc_error(failure)
        if path == MCP_PATH or path.startswith(f"{MCP_PATH}/")
        else build_native_error(failure, has_detail=path.startswith(DETAIL_PATHS))
    )


def to_json(body: BaseModel) -> str:
    """The body as ASCII JSON: a message may quote lone surrogates from the request."""
    return json.dumps(body.model_dump(mode="json"))


def build_openai_error(
    failure: AgentFailure, named: str | None = None, input_name: str = "messages"
) -> OpenAIErrorBody:
    """A failure in OpenAI's shape. `named` overrides the OpenAI code; `input_name` is the endpoint's parameter
    for what the engine calls prompt and messages.
    """
    own = "invalid_request_error" if 400 <= get_http_status(failure.error_code) < 500 else "server_error"
    kind, code = _OPENAI_CODES.get(failure.error_code, (own, failure.error_code.lower()))
    if failure.error_code == "ERR_RATE_LIMIT" and failure.details.get("limit") == "tokens":
        kind = "tokens"
    if failure.error_code == "ERR_AUTH" and failure.details.get("missing"):
        code = None
    if failure.error_code == "ERR_MODEL_REQUEST":  # the provider's own code says more than ours
        named = named or _get_text(failure.details.get("code"))
    param = failure.details.get("param")
    if failure.error_code == "ERR_ROOM_UNKNOWN":
        param = "model"
    if failure.error_code == "ERR_MODEL_CONTEXT" or (param in ("prompt", "messages") and named is None):
        param = input_name
    return OpenAIErrorBody(
        error=OpenAIErrorDetail(
            message=failure.message, type=kind, param=param if isinstance(param, str) else None, code=named or code
        )
    )


def _get_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def build_native_error(failure: AgentFailure, *, has_detail: bool = False) -> FailureBody:
    """A failure in Stepgate's own shape, with its stage and without details that are None. `has_detail` adds
    the message as `detail`.
    """
    details = {key: value for key, value in failure.details.items() if value is not None}
    error = failure.model_copy(update={"details": details, "stage": get_stage(failure)})
    return DetailedFailureBody(error=error, detail=error.message) if has_detail else FailureBody(error=error)


def build_rpc_error(failure: AgentFailure) -> RpcErrorBody:
    """A failure in JSON-RPC's shape: -32600 for a caller's fault, -32603 for ours (JSON-RPC 2.0,
    section 5.1).
    """
    code = -32600 if get_http_status(failure.error_code) < 500 else -32603
    data = build_native_error(failure).error
    return RpcErrorBody(error=RpcErrorDetail(code=code, message=failure.message, data=data))


def is_openai_path(path: str) -> bool:
    """Whether the callers of this path expect OpenAI's protocol."""
    if path.startswith(OPENAI_PATHS):
        return not path.endswith(_OWN_ENDING)
    return find_nearest_endpoint(path) is not None


def find_nearest_endpoint(path: str) -> str | None:
    """Names what is nearest to an endpoint of OpenAI's API that Stepgate does not have; None for other paths."""
    head = "/".join(path.split("/")[:3])
    return NEAREST_ENDPOINTS.get(head)


class RequestFormatError(RequestError):
    """Raised by a door for a request that does not fit its protocol; `param` is the dotted path of the faulty field."""

    code = "ERR_BAD_REQUEST"

    def __init__(self, message: str, param: str | None = None, openai_code: str | None = None) -> None:
        super().__init__(message, param=param)
        self.openai_code = openai_code
        """OpenAI's code for this fault, if it is more specific than ours."""

    @property
    def kind(self) -> FailureKind:
        """This error's row of the failure tables."""
        return DOOR_FAILURES.get(self.code) or FAILURES[self.code]
