"""What went wrong between us and a foreign MCP server, in words for whoever called a tool of it."""

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent.core.errors import AgentError, ToolError, ToolTimeoutError
from mcp_tools.hub_client import CONNECT_SECONDS
from mcp_tools.sanitize import cleaned

_UNKNOWN = "; whether it did what was asked is not known"
_UNTOLD = "server returned an error response"
"""The SDK's word for a status that comes without an error of the protocol."""
_ASKED = {
    # What the SDK answers in our name; we declare none of these, so a server should not ask.
    "Elicitation not supported": "asked for something to be filled in by a person (elicitation)",
    "Sampling not supported": "asked for a model's reply (sampling)",
    "List roots not supported": "asked for the folders of a client (roots)",
}


class ConnectionEndedError(ToolError):
    """Raised when the connection ended in the middle of a call. `ToolError` where the server has answered."""


class NotTakenError(ToolError):
    """Raised when the server refused the call unread, because it does not know the session: it was restarted.
    Another connection may try again. `ConnectionEndedError` where it may have begun."""


def failure_of(name: str, error: Exception, timeout: float, refused: str = "", status: int = 200) -> ToolError:
    """The failure of a call of the server `name`, which was given `timeout` seconds; `refused` says why it did not
    take our proof of who we are, where it did not, and `status` is HTTP's."""
    if refused:
        return ToolError(f"MCP server {name!r}: {refused}", agent_id=name)
    if isinstance(error, MCPError):
        return _refusal(name, error.error, timeout, status)
    if isinstance(error, RuntimeError | ValidationError):  # a result that breaks the server's own schema
        return ToolError(f"MCP server {name!r} answered wrongly: {cause(error)}", agent_id=name)
    return ConnectionEndedError(f"MCP server {name!r} broke off: {cause(error)}{_UNKNOWN}", agent_id=name)


def _refusal(name: str, error: types.ErrorData, timeout: float, status: int) -> ToolError:
    said = error.message.lower()
    # A server that does not know our session says 404, by the protocol; or 400, as many do. None has read the call.
    if said == "session terminated" or (status in (400, 404) and (said == _UNTOLD or "session" in said)):
        return NotTakenError(f"MCP server {name!r} does not know our session (HTTP {status})", agent_id=name)
    if "timed out" in said:
        return ToolTimeoutError(f"{name} did not answer within {timeout:g} s", agent_id=name)
    if "closed" in said or "terminated" in said or "stream ended" in said:
        return ConnectionEndedError(f"MCP server {name!r} broke off in the middle of the call{_UNKNOWN}", agent_id=name)
    if said == _UNTOLD:
        return ToolError(f"MCP server {name!r} refuses the call with HTTP {status}, without a reason", agent_id=name)
    if error.message in _ASKED:
        told = f"{_ASKED[error.message]} in the middle of the call, which Stepgate does not pass on"
        return ToolError(f"MCP server {name!r} {told}; give the tool all it needs as arguments", agent_id=name)
    return ToolError(f"MCP server {name!r}: {cleaned(error.message[:500]).text}", agent_id=name)


def cause(error: BaseException) -> str:
    """The innermost reason in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_SECONDS:g} s"
    told = error.message if isinstance(error, AgentError) else str(error)
    return cleaned(" ".join(told.split())[:300]).text or type(error).__name__
