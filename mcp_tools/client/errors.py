"""Converts failures of calls to external MCP servers to errors for the caller of the tool."""

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent.core import failures
from agent.core.errors import AgentError, ToolError, ToolTimeoutError
from mcp_tools.client.http_refusals import get_refused_status, get_server_data
from mcp_tools.client.lenient_messages import find_words
from mcp_tools.client.sanitize import sanitize_text
from mcp_tools.client.transports import CONNECT_TIMEOUT_S

MAX_ERROR_CHARS = 500
OUTCOME_UNKNOWN = f"; {failures.OUTCOME_UNKNOWN}"
RETIRED = "it was removed from the configuration, disabled or changed there"
"""Why a server is no longer used."""
_CREDENTIAL_STATUSES = (401, 403)
_UNREADABLE = ("Failed to parse JSON response", "Failed to parse SSE message")
"""How the SDK's messages about answers that are not JSON-RPC begin."""
_UNREADABLE_TYPES = ("Unexpected content type", "server answered a request with 202")
"""The same about answers of another media type, and about requests that a server only accepts. A web page is not an
answer: it is what stands before the server."""
_CLIENT_REQUESTS = {
    # The SDK's replies on our behalf: we declare none of these capabilities, so a server should not send the requests.
    "Elicitation not supported": "sent a form for a person (elicitation)",
    "Sampling not supported": "requested a model's reply (sampling)",
    "List roots not supported": "requested the client's folders (roots)",
}


class LostAnswerError(ToolError):
    """Raised when the answer to a call that was sent cannot be read, so its outcome is unknown. Use `ToolError` if the
    server answered."""


class ConnectionEndedError(LostAnswerError):
    """Raised when the connection ends during a call."""


class SessionUnknownError(ToolError):
    """Raised when the server rejects a call because it does not know the session, for example after a restart.

    The call was not executed, so it can be repeated. Use `ConnectionEndedError` if it may have started.
    """


def make_call_error(name: str, error: Exception, timeout: float, refused: str = "") -> ToolError:
    """The error for a failed call of server `name` with a time limit of `timeout` seconds.

    `refused` says why the server rejected our credential, if it did.
    """
    status = get_refused_status(error)
    if refused and (status is None or status in _CREDENTIAL_STATUSES):
        return ToolError(f"MCP server {name!r}: {refused}", agent_id=name)
    if isinstance(error, TimeoutError):
        return ToolTimeoutError(f"{name} {error}" if str(error) else _describe_limit(name, timeout), agent_id=name)
    if isinstance(error, MCPError):
        return _convert_protocol_error(name, error.error, timeout)
    if isinstance(error, RuntimeError | ValidationError):  # a result that breaks the server's own schema
        return ToolError(f"MCP server {name!r} returned an invalid result: {describe_cause(error)}", agent_id=name)
    return ConnectionEndedError(
        f"MCP server {name!r} closed the connection: {describe_cause(error)}{OUTCOME_UNKNOWN}", agent_id=name
    )


def make_retired_error(name: str) -> ConnectionEndedError:
    """The error for a call in progress of a server that is no longer used."""
    return ConnectionEndedError(
        f"MCP server {name!r} was stopped during the call: {RETIRED}{OUTCOME_UNKNOWN}", agent_id=name
    )


def add_reason(failure: ConnectionEndedError, name: str, reason: str) -> ConnectionEndedError:
    """The failure with the reason why the server ended, unless it says so already."""
    if reason in failure.message:
        return failure
    return ConnectionEndedError(f"{failure.message} ({reason})", agent_id=name)


def _convert_protocol_error(name: str, error: types.ErrorData, timeout: float) -> ToolError:
    message = error.message.lower()
    # The SDK's own errors, by its words: a server's "the account is closed" is about something else.
    if message.startswith("request ") and message.endswith("timed out"):
        return ToolTimeoutError(_describe_limit(name, timeout), agent_id=name)
    if message.startswith(("connection closed", "sse stream")):
        return ConnectionEndedError(
            f"MCP server {name!r} closed the connection during the call{OUTCOME_UNKNOWN}", agent_id=name
        )
    if error.message in _CLIENT_REQUESTS:
        problem = f"{_CLIENT_REQUESTS[error.message]} during the call, which Stepgate does not forward"
        return ToolError(f"MCP server {name!r} {problem}; give the tool all data as arguments", agent_id=name)
    if error.code == types.PARSE_ERROR and error.message.startswith(_UNREADABLE):
        problem = f"MCP server {name!r} sent an answer that cannot be read{OUTCOME_UNKNOWN}"
        return LostAnswerError(problem, agent_id=name)
    if error.message.startswith(_UNREADABLE_TYPES) and "text/html" not in error.message:
        problem = f"MCP server {name!r} sent no answer that can be read: {error.message}{OUTCOME_UNKNOWN}"
        return LostAnswerError(problem, agent_id=name)
    message, details = error.message.strip(), find_words(get_server_data(error.data))
    words = ": ".join(dict.fromkeys(filter(None, (message, "" if details in message else details))))
    clean_text = sanitize_text(words[:MAX_ERROR_CHARS]).text or "it reports an error without a message"
    return ToolError(f"MCP server {name!r}: {clean_text}", agent_id=name)


def _describe_limit(name: str, timeout: float) -> str:
    return f"{name} did not answer within {timeout:g} s"


def describe_cause(error: BaseException) -> str:
    """The innermost reason of an error in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_TIMEOUT_S:g} s"
    problem = error.message if isinstance(error, AgentError) else str(error)
    return sanitize_text(" ".join(problem.split())[:300]).text or type(error).__name__
