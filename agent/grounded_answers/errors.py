"""The failures of the tailor."""

from agent.core.errors import AgentError


class TailorHallucinationError(AgentError):
    """Recorded, not raised, when nothing a model wrote stands, not even at the second try: the answer then is that the
    documents don't say."""

    code = "ERR_TAILOR_HALLUCINATION"


class TailorSchemaError(AgentError):
    """Raised when an answer from documents cannot be brought into the JSON schema the caller asked for: the run fails,
    for a caller who reads by that schema can do nothing with any other answer."""

    code = "ERR_TAILOR_SCHEMA"
