"""What went wrong between us and a foreign server, in words that say what to do."""

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from agent.core.errors import ToolError, ToolTimeoutError
from mcp_tools.client.errors import ConnectionEndedError, SessionUnknownError, make_call_error


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        ("Session terminated", SessionUnknownError, "does not know our session"),
        ("Connection closed", ConnectionEndedError, "it is not known whether the call was executed"),
        ("Request timed out", ToolTimeoutError, "did not answer within 7 s"),
        ("Elicitation not supported", Exception, "sent a form for a person"),
        ("Sampling not supported", Exception, "requested a model's reply (sampling) during the call"),
        ("no such\u200b order", Exception, "MCP server 'srv': no such order"),
    ],
)
def test_a_refusal_says_what_it_means(said: str, kind: type[Exception], told: str) -> None:
    failure = make_call_error("srv", MCPError(types.INTERNAL_ERROR, said), 7)
    assert isinstance(failure, kind)
    assert told in failure.message


def test_a_refused_proof_is_the_reason_whatever_else_is_said() -> None:
    failure = make_call_error("srv", MCPError(types.INTERNAL_ERROR, "Server returned an error response"), 7, "HTTP 401")
    assert failure.message == "MCP server 'srv': HTTP 401"


@pytest.mark.parametrize(
    ("said", "status", "kind"),
    [
        ("Session not found", 404, SessionUnknownError),
        ("Bad Request: No valid session ID provided", 400, SessionUnknownError),
        ("Server returned an error response", 400, SessionUnknownError),
        ("Server returned an error response", 500, ToolError),
        ("no browser session of that name", 200, ToolError),
    ],
)
def test_a_session_that_is_not_known_is_told_from_other_refusals(said: str, status: int, kind: type[ToolError]) -> None:
    failure = make_call_error("srv", MCPError(types.INTERNAL_ERROR, said), 7, status=status)
    assert type(failure) is kind
    assert str(status) in failure.message or said in failure.message
