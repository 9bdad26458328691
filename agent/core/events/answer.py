"""The answer: written, checked, guarded, translated, and what gates say of the run that gives it."""

from typing import Literal

from pydantic import Field

from agent.core.errors import AgentFailure
from agent.core.events.envelope import EventBody
from agent.core.models import Citation, Frozen, JsonObject, Source, TailorOutput, Tier, Uncertainty

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class AnswerStarted(EventBody):
    """The answer begins to be written. `restarted` says that an earlier stream broke and its text is void."""

    type = "answer.started"
    tier: Tier | None
    model: str | None
    reason: str
    restarted: bool = False


class AnswerDelta(EventBody):
    """A piece of the answer, coalesced; pruned when the run ends."""

    type = "answer.delta"
    text: str
    kind: Literal["text", "reasoning"] = "text"
    sources: tuple[Source, ...] = Field(default=(), description="what this piece cites, where answers are checked")


class ClaimProblem(Frozen):
    """A sentence of an answer that its passages do not bear out, and why."""

    text: str
    reason: str


class AnswerChecked(EventBody):
    """The tailor held an answer against its passages. `action` is what came of it: nothing was wrong (`accept`), what
    failed is written again under strict instructions (`retry_strict`), what still failed was left out (`drop`), or
    nothing stayed (`say_not_in_documents`). `failure` is set where it was more than single sentences."""

    type = "answer.checked"
    claims: int
    passed: int
    action: Literal["accept", "retry_strict", "drop", "say_not_in_documents"]
    problems: tuple[ClaimProblem, ...] = ()
    rewritten: int = 0
    failure: AgentFailure | None = None
    duration: float = 0.0


class OutputGuarded(EventBody):
    """What the output policy of the room found in what was to be answered, and what came of it: it is told of
    (`flag`), it was taken out (`redact`), the answer is written again under a stricter instruction (`retry_strict`), or
    there is none (`block`)."""

    type = "output.guarded"
    action: Literal["flag", "redact", "retry_strict", "block"]
    findings: tuple[str, ...]
    failure: AgentFailure | None = Field(default=None, description="where the answer was kept back")


class GateChecked(EventBody):
    """One verification gate over the whole run."""

    type = "gate.checked"
    gate: str
    passed: bool
    reason: str
    failures: tuple[str, ...] = Field(default=(), description="the single faults, where the gate did not pass")
    redo: tuple[str, ...] = Field(default=(), description="tools whose results the next plan must not keep")


class AnswerTranslated(EventBody):
    """The answer in the user's language; None where it stays as it is, and why, if that is a failure."""

    type = "answer.translated"
    language: str
    text: str | None
    fallback_reason: str | None = None
    duration: float = 0.0


class AnswerFinished(EventBody):
    """The whole answer."""

    type = "answer.finished"
    text: str
    finish_reason: FinishReason = "stop"
    sources: tuple[Source, ...] = ()
    citations: tuple[Citation, ...] = ()
    uncertainties: tuple[Uncertainty, ...] = ()
    tool_calls: tuple[JsonObject, ...] = ()
    fallback_reason: str | None = None
    tailored: TailorOutput | None = None
