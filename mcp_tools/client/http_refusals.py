"""HTTP refusals of external MCP servers as errors of the protocol, with the server's words and the status.

The SDK replaces most refusals by one sentence, in which neither the status nor the server's reason is left.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx2
import mcp_types as types
from mcp.shared.exceptions import MCPError

from mcp_tools.client.lenient_messages import JSON_TYPE, decode_json_text, find_words, parse_message

REFUSAL = "stepgate/refusal"
"""The key of a refusal in the `data` of its error."""
SESSION_HEADER = "mcp-session-id"
_STATUS, _SESSION, _ANSWERED = "status", "session", "answered"
_NOT_FOUND, _SESSION_STATUSES = 404, (400, 404)
_PHRASES = {status.value: status.phrase.lower() for status in HTTPStatus}
"""The meaning of a status that comes without a reason."""
OLDER_TRANSPORT_STATUSES = (400, 404, 405)
"""How a server of 2024, with server-sent events, refuses a first message of the later transport."""
_MAX_WORDS = 500


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An HTTP status that refuses a request, and whether the request named a session."""

    status: int
    has_session: bool
    is_answered: bool
    """Whether the body holds the server's own error, in the protocol's form."""


def make_failure(response: httpx2.Response, kind: str, body: bytes) -> bytes:
    """The error of a refused POST, as a JSON-RPC message. `kind` is the media type of the body."""
    has_session = SESSION_HEADER in response.request.headers
    error = read_protocol_error(kind, body)
    refusal = {_STATUS: response.status_code, _SESSION: has_session, _ANSWERED: error is not None}
    if error is None:
        words = find_refusal_words(response.status_code, kind, body)
        status = f"HTTP {response.status_code}"
        message = f"{words} ({status})" if words else f"it rejects the request with {status} and gives no reason"
        error = types.ErrorData(code=_choose_code(response.status_code, has_session), message=message)
    data = error.data if isinstance(error.data, Mapping) else {} if error.data is None else {"detail": error.data}
    failure = {"code": error.code, "message": error.message, "data": {**data, REFUSAL: refusal}}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": failure}).encode()


def get_refused_status(error: Exception) -> int | None:
    """The HTTP status of the response that refused a request; None if the request was answered, or had no response."""
    refusal = _read_refusal(error)
    return None if refusal is None else refusal.status


def is_unknown_method(error: MCPError) -> bool:
    """Whether the server itself says that it does not know the request: the HTTP status of a refusal, such as the 404
    of a proxy in front of it, does not say so."""
    refusal = _read_refusal(error)
    return error.code == types.METHOD_NOT_FOUND and (refusal is None or refusal.is_answered)


def may_be_older_transport(error: BaseException) -> bool:
    """Whether the refusal of a connection's first request may come from a server with the transport of 2024 (protocol
    revision 2025-03-26, "Backwards Compatibility")."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return isinstance(error, Exception) and get_refused_status(error) in OLDER_TRANSPORT_STATUSES


def may_mean_unknown_session(error: Exception) -> bool:
    """Whether a server may have refused a request because it does not know its session, for example after a restart.

    By the protocol it answers 404 then; many answer 400. A tool's own error may have the same status and any words.
    """
    refusal = _read_refusal(error)
    return refusal is not None and refusal.has_session and refusal.status in _SESSION_STATUSES


def get_server_data(data: Any) -> Any:
    """The `data` of an error as the server sent it."""
    return {key: value for key, value in data.items() if key != REFUSAL} if isinstance(data, Mapping) else data


def read_protocol_error(kind: str, body: bytes) -> types.ErrorData | None:
    """The error of the protocol in the body of a refusal; None if it is in another form."""
    message = parse_message(body) if _is_json(kind) and b'"jsonrpc"' in body else None
    return message.error if isinstance(message, types.JSONRPCError) else None


def find_refusal_words(status: int, kind: str, body: bytes) -> str:
    """The reason in the body of a refusal; empty if it has none, or only the meaning of its status."""
    words = ""
    if _is_json(kind):
        try:
            words = find_words(json.loads(decode_json_text(body)))
        except (ValueError, RecursionError):
            return ""
    elif kind == "text/plain":
        words = decode_json_text(body).strip()
    phrase = _PHRASES.get(status, "")
    return "" if words.strip(" .").lower() in {phrase, f"{status} {phrase}"} else words[:_MAX_WORDS]


def _is_json(kind: str) -> bool:
    return kind == JSON_TYPE or kind.endswith("+json")


def _choose_code(status: int, has_session: bool) -> int:
    """The code that the SDK gives to such a refusal."""
    if status == _NOT_FOUND:
        return types.INVALID_REQUEST if has_session else types.METHOD_NOT_FOUND
    return types.INTERNAL_ERROR


def _read_refusal(error: Exception) -> _Refusal | None:
    data = error.error.data if isinstance(error, MCPError) else None
    refusal = data.get(REFUSAL) if isinstance(data, Mapping) else None
    return _Refusal(refusal[_STATUS], refusal[_SESSION], refusal[_ANSWERED]) if isinstance(refusal, Mapping) else None
