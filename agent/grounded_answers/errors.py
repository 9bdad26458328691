"""The failures of grounded answers. "Tailor" is the agent's id in traces and error codes."""

from agent.core.errors import AgentError


class TailorHallucinationError(AgentError):
    """Recorded, not raised, if no claim of a model's answer is supported, also after the rewrite."""

    code = "ERR_TAILOR_HALLUCINATION"


class TailorSchemaError(AgentError):
    """Raised if the answer cannot be expressed in the JSON schema of the request. The run fails: a caller that parses
    by that schema can use no other answer."""

    code = "ERR_TAILOR_SCHEMA"
