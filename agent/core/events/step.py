"""Attempts of a step: begun, ended, judged, or come to nothing."""

from pydantic import Field, JsonValue

from agent.core.events.answer import FinishReason
from agent.core.events.envelope import EventBody
from agent.core.models import Frozen, JsonObject, Mode, Source, StepOutcome, TailorOutput


class StepStarted(EventBody):
    """An attempt of a step begins, with its references resolved (long values shortened for the trace)."""

    type = "step.started"
    args: JsonObject = Field(default_factory=dict)
    feedback: str | None = None
    tainted: bool = False


class StepSpeculative(EventBody):
    """This attempt began while the judge was still thinking about `waiting_for`.

    `grounds` holds the number of each dependency's attempt it rests on: when that one is repeated, this one falls."""

    type = "step.speculative"
    waiting_for: tuple[str, ...]
    grounds: dict[str, int] = Field(default_factory=dict)


class StepOutput(Frozen):
    """What an attempt produced: a JSON value and its text, or an error. `text` is what people and models read."""

    value: JsonValue = None
    text: str = ""
    blob: str | None = None
    tainted: bool = False
    error_code: str | None = None
    error: str | None = None
    retry_after_s: float | None = Field(default=None, description="how long a provider asked to be left alone")
    sources: tuple[Source, ...] = ()
    effective: Mode = "llm"
    fallback_reason: str | None = None
    finish_reason: FinishReason = "stop"
    tailored: TailorOutput | None = Field(default=None, description="the answer with its evidence, where it has one")


class StepFinished(EventBody):
    """An attempt ended; it counts only once it is judged."""

    type = "step.finished"
    output: StepOutput
    duration: float = 0.0


class StepJudged(EventBody):
    """The supervisor's verdict on an attempt."""

    type = "step.judged"
    verdict: StepOutcome
    rule: str = Field(default="", description="what the deterministic checks had said, when a judge spoke too")
    duration: float = 0.0


class StepDiscarded(EventBody):
    """A speculative attempt whose ground was judged not to hold; its result counts for nothing."""

    type = "step.discarded"
    reason: str


class StepUnknown(EventBody):
    """A side effect whose result was never recorded. Never repeated; a person must look."""

    type = "step.unknown"
    call_id: str
    tool: str
    key: str
    message: str
