"""Failures in OpenAI's shape: whose fault it is, by the status."""

import pytest

from agent.core.errors import ConflictError
from agent.core.failures import FAILURES, AgentFailure
from gateway.render.errors import build_openai_error, get_http_status, is_openai_path

OWN_TYPES = {"requests", "tokens", "insufficient_quota", "idempotency_error"}


@pytest.mark.parametrize("code", sorted(FAILURES))
def test_the_type_of_an_error_says_whose_fault_it_is(code: str) -> None:
    failure = AgentFailure(agent_id="gateway", error_code=code, message="m", recoverable=False)
    kind = build_openai_error(failure).error.type
    meant = "invalid_request_error" if 400 <= get_http_status(code) < 500 else "server_error"
    assert kind in OWN_TYPES | {meant}


def test_a_conflict_and_a_prompt_are_told_in_openais_words() -> None:
    error = build_openai_error(ConflictError("it has ended", param="prompt").to_failure()).error
    assert (error.type, error.code, error.param) == ("invalid_request_error", "conflict", "messages")


def test_a_path_that_was_nearly_meant_is_answered_in_the_shape_of_its_door() -> None:
    assert is_openai_path("/v1/chat/completionz")
    assert not is_openai_path("/v1/agent")
