"""What a conversation about a pipeline can end in."""

from collections.abc import Sequence

from agent.core.errors import AgentError
from agent.core.subagents import Uncertainty


class LLMNotConfiguredError(AgentError):
    """Raised where a conversation is to begin and no model stands behind the gateway, unless
    `AGENT_CONVERSATIONS_REQUIRE_LLM` is false: then rules carry it."""

    code = "ERR_LLM_NOT_CONFIGURED"


class ConversationNotActiveError(AgentError):
    """Raised for a conversation that was applied or abandoned. Begin another one, or one from its pipeline
    (`from_conversation`)."""

    code = "ERR_CONVERSATION_NOT_ACTIVE"


class PipelineMissingError(AgentError):
    """Raised where a pipeline is to be applied and none has been built yet."""

    code = "ERR_PIPELINE_MISSING"


class BlockingUncertaintyError(AgentError):
    """Raised where unresolved blocking doubts forbid to apply a pipeline. Resolve them, or apply with `force`."""

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
