"""The errors of pipeline conversations."""

from collections.abc import Sequence

from agent.core.errors import RequestError
from agent.core.subagent_result import Uncertainty


class LLMNotConfiguredError(RequestError):
    """Raised when a conversation starts, or a message would start a run, and no model is configured.

    Not raised if `AGENT_CONVERSATIONS_REQUIRE_LLM` is false: rules then answer the conversation.
    """

    code = "ERR_LLM_NOT_CONFIGURED"


class ConversationNotActiveError(RequestError):
    """Raised for a conversation that was applied or abandoned. Start another one, or one from its pipeline
    (`from_conversation`)."""

    code = "ERR_CONVERSATION_NOT_ACTIVE"


class PipelineMissingError(RequestError):
    """Raised when a pipeline is applied before one was proposed."""

    code = "ERR_PIPELINE_MISSING"


class BlockingUncertaintyError(RequestError):
    """Raised when unresolved blocking uncertainties forbid applying a pipeline. Resolve them, or apply with `force`."""

    code = "ERR_BLOCKING_UNCERTAINTY"

    def __init__(self, uncertainties: Sequence[Uncertainty]) -> None:
        first = uncertainties[0].message
        more = f" (and {len(uncertainties) - 1} more)" if len(uncertainties) > 1 else ""
        super().__init__(
            f"Blocking issues unresolved: {first}{more}; resolve them, or apply with force",
            agent_id="builder",
            uncertainties=[one.model_dump(mode="json") for one in uncertainties],
        )
        self.uncertainties = list(uncertainties)
