"""The result of a sub-agent. `agent/execution/subagent_runner.py` runs sub-agents; they are defined in
`agent/subagents/`.
"""

from typing import Literal

from pydantic import Field

from agent.core.models import FrozenModel, JsonObject

Severity = Literal["blocking", "notable", "info"]


class Uncertainty(FrozenModel):
    """Something a sub-agent could not decide. `context` has the files or counts it is about."""

    severity: Severity
    message: str = Field(min_length=1)
    context: JsonObject = Field(default_factory=dict)


class Undone(FrozenModel):
    """What a sub-agent was asked to change and did not: why, and the check that refused it, if one did."""

    reason: str = Field(min_length=1)
    error_code: str = ""
    stage: str = ""


class SubAgentResult(FrozenModel):
    """The result of a sub-agent. If it did not finish, `data` is what it has found so far. `undone` is None if all that
    was asked for is done."""

    success: bool
    data: JsonObject = Field(default_factory=dict)
    uncertainties: tuple[Uncertainty, ...] = ()
    summary: str = Field(default="", description="for people, in a few sentences")
    question: str = Field(default="", description="what only the user knows, if it cannot end without that")
    undone: Undone | None = None
    tainted: bool = Field(default=False, description="whether it relies on untrusted text")
