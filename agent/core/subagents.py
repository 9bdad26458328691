"""What a sub-agent hands back. `agent/execution/subagents.py` carries them out; they live in `agent/subagents/`."""

from typing import Literal

from pydantic import Field

from agent.core.models import Frozen, JsonObject

Severity = Literal["blocking", "notable", "info"]


class Uncertainty(Frozen):
    """Something a sub-agent could not settle. `context` holds what it is about: files, counts."""

    severity: Severity
    message: str = Field(min_length=1)
    context: JsonObject = Field(default_factory=dict)


class SubAgentResult(Frozen):
    """What came of a sub-agent. Where it did not get to its end, `data` is what it had found by then."""

    success: bool
    data: JsonObject = Field(default_factory=dict)
    uncertainties: tuple[Uncertainty, ...] = ()
    summary: str = Field(default="", description="for people, in a few sentences")
    tainted: bool = Field(default=False, description="whether it rests on text from outside")
