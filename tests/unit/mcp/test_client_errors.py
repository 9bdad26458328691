"""What went wrong between us and a foreign server, in words that say what to do."""

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from agent.core.errors import ToolTimeoutError
from mcp_tools.client.errors import ConnectionEndedError, make_call_error
from mcp_tools.client.http_refusals import REFUSAL, may_mean_unknown_session


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
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


def refused(status: int, message: str = "closed") -> MCPError:
    refusal = {REFUSAL: {"status": status, "session": True, "answered": False}, "detail": "until May"}
    return MCPError(types.INTERNAL_ERROR, message, refusal)


def test_a_refused_proof_is_the_reason_whatever_else_is_said() -> None:
    assert make_call_error("srv", refused(401), 7, "HTTP 401").message == "MCP server 'srv': HTTP 401"


def test_a_proof_that_another_request_was_refused_for_is_not_the_reason() -> None:
    assert make_call_error("srv", refused(500), 7, "HTTP 401").message == "MCP server 'srv': closed: until May"


@pytest.mark.parametrize(("status", "may"), [(400, True), (404, True), (500, False), (None, False)])
def test_a_session_that_is_not_known_is_told_from_other_refusals(status: int | None, may: bool) -> None:
    answered = MCPError(types.INTERNAL_ERROR, "no browser session of that name")
    assert may_mean_unknown_session(answered if status is None else refused(status)) is may
