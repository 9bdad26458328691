"""The errors of conversations and sub-agents, by type."""

import pytest

from agent.core.errors import AgentError, NotFoundError, SubAgentFailedError
from agent.core.subagent_result import Uncertainty
from gateway.features.pipeline_builder.engine.errors import (
    BlockingUncertaintyError,
    ConversationNotActiveError,
    LLMNotConfiguredError,
    PipelineMissingError,
)

DOUBT = Uncertainty(severity="blocking", message="no text", context={"file": "a.pdf"})


@pytest.mark.row("S000-48")
def test_every_error_of_a_conversation_is_one_of_ours() -> None:
    kinds = (LLMNotConfiguredError, SubAgentFailedError, ConversationNotActiveError, BlockingUncertaintyError)
    for kind in (*kinds, PipelineMissingError, NotFoundError):
        assert issubclass(kind, AgentError)
    for kind in kinds:
        assert not any(issubclass(kind, other) for other in kinds if other is not kind), "each is caught by itself"


@pytest.mark.row("S000-48")
def test_a_sub_agent_that_failed_says_which_why_and_what_it_had_found() -> None:
    error = SubAgentFailedError("source_analyzer", "the folder is gone", {"seen": 3})
    assert isinstance(error, AgentError)
    assert (error.agent_id, error.reason, error.partial_result) == (
        "source_analyzer",
        "the folder is gone",
        {"seen": 3},
    )
    assert (error.to_failure().agent_id, error.to_failure().error_code) == ("source_analyzer", "ERR_SUBAGENT_FAILED")
    assert SubAgentFailedError("x", "y").partial_result == {}


@pytest.mark.row("S000-48")
def test_blocking_doubts_are_carried_by_their_error() -> None:
    error = BlockingUncertaintyError([DOUBT])
    assert isinstance(error, AgentError)
    assert error.uncertainties == [DOUBT]
    assert error.to_failure().details["uncertainties"] == [DOUBT.model_dump(mode="json")]
