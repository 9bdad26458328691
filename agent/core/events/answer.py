"""Events of the answer: written, checked, guarded, translated, and judged by the gates."""

from typing import Literal

from pydantic import Field

from agent.core.events.envelope import EventBody
from agent.core.events.label import TextLabel
from agent.core.failures import AgentFailure
from agent.core.models import Citation, FrozenModel, JsonObject, Source, TailorOutput, Tier, Uncertainty

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class AnswerStarted(EventBody):
    """The answer starts. `restarted` means that an earlier stream broke and its text is void."""

    type = "answer.started"
    tier: Tier | None
    model: str | None
    reason: str
    restarted: bool = False
    left_out: int = Field(default=0, description="earlier messages that the prompt did not hold")


class AnswerDelta(EventBody):
    """A piece of the answer. Pieces are coalesced, and deleted when the run ends."""

    type = "answer.delta"
    text: str
    kind: Literal["text", "reasoning", "refusal"] = "text"
    sources: tuple[Source, ...] = Field(default=(), description="what this piece cites, where answers are checked")


class ClaimProblem(FrozenModel):
    """A sentence of an answer that its passages do not support, and why."""

    text: str
    reason: str


class AnswerChecked(EventBody):
    """The answer was compared with its passages. `action` is the consequence: `accept` (nothing is wrong),
    `retry_strict` (failed sentences are written again under strict instructions), `drop` (sentences that failed again
    are left out) or `say_not_in_documents` (nothing is left). `failure` is set if more than single sentences failed.
    """

    type = "answer.checked"
    claims: int
    passed: int
    action: Literal["accept", "retry_strict", "drop", "say_not_in_documents"]
    problems: tuple[ClaimProblem, ...] = ()
    rewritten: int = 0
    failure: AgentFailure | None = None
    unchecked: str = Field(default="", description="why the meaning of the claims was not checked, if it was not")
    duration: float = 0.0


class OutputGuarded(EventBody):
    """The room's output policy found something in the answer. `action` is the consequence: `flag` (reported), `redact`
    (removed), `retry_strict` (written again under a stricter instruction) or `block` (no answer).
    """

    type = "output.guarded"
    action: Literal["flag", "redact", "retry_strict", "block"]
    findings: tuple[str, ...]
    failure: AgentFailure | None = Field(default=None, description="set if the answer was withheld")


class GateChecked(EventBody):
    """The result of one verification gate over the whole run."""

    type = "gate.checked"
    gate: str
    passed: bool
    reason: str
    failures: tuple[str, ...] = Field(default=(), description="the single faults, if the gate did not pass")
    redo: tuple[str, ...] = Field(default=(), description="tools whose results the next plan must not keep")


class AnswerTranslated(EventBody):
    """The answer in the user's language. `text` is None if it stays as it is; `fallback_reason` says why, if that is a
    failure.
    """

    type = "answer.translated"
    language: str
    text: str | None
    fallback_reason: str | None = None
    duration: float = 0.0


class AnswerFinished(EventBody):
    """The complete answer."""

    type = "answer.finished"
    text: str
    finish_reason: FinishReason = "stop"
    sources: tuple[Source, ...] = ()
    citations: tuple[Citation, ...] = ()
    uncertainties: tuple[Uncertainty, ...] = ()
    tool_calls: tuple[JsonObject, ...] = ()
    fallback_reason: str | None = None
    tailored: TailorOutput | None = None
    refused: bool = Field(default=False, description="whether the text is the model's own refusal")
    stopped: bool = Field(
        default=False, description="whether a person stopped the run: the text is what was written by then"
    )
    provider_fields: JsonObject = Field(
        default_factory=dict, description="what the provider wants back with this answer: reasoning, signatures"
    )
    label: TextLabel | None = Field(
        default=None, description="None if the conversation holds a message that nobody can vouch for"
    )
    digests: tuple[str, ...] = Field(
        default=(), description="by which the text is known when a client sends it back, if it has a label"
    )
    links: tuple[str, ...] | None = Field(
        default=None,
        description="the addresses in the text that were written in what was read or asked, or by a run that read "
        "nothing private: a later message may have them fetched. None if nobody looked",
    )
