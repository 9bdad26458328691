"""The failure of the tailor."""

from agent.core.errors import AgentError


class TailorHallucinationError(AgentError):
    """Recorded, not raised, when nothing a model wrote stands, not even at the second try: the answer then is that the
    documents don't say."""

    code = "ERR_TAILOR_HALLUCINATION"
