"""Attempts of a step: started, finished, judged or discarded."""

from pydantic import Field, JsonValue

from agent.core.events.answer import FinishReason
from agent.core.events.envelope import EventBody
from agent.core.models import FrozenModel, JsonObject, Mode, Source, StepOutcome, TailorOutput


class StepStarted(EventBody):
    """An attempt of a step starts. Its references are resolved; long values are shortened for the trace."""

    type = "step.started"
    args: JsonObject = Field(default_factory=dict)
    feedback: str | None = None
    tainted: bool = False
    taken_from: str = Field(default="", description="the run whose result of this step is taken over; nothing is done")


class StepSpeculative(EventBody):
    """This attempt started before the judge decided on the steps in `waiting_for`.

    `grounds` maps each dependency to the attempt this one relies on. If that attempt is repeated, this one is
    discarded.
    """

    type = "step.speculative"
    waiting_for: tuple[str, ...]
    grounds: dict[str, int] = Field(default_factory=dict)


class EntriesSelected(EventBody):
    """Which entries of the list that a step returned the request asks about, as a small model reads them. "" if that is
    all of them."""

    type = "entries.selected"
    text: str = ""
    heading: str = Field(default="", description="what these entries have in common")


class StepOutput(FrozenModel):
    """The result of an attempt: a JSON value and its text for people and models, or an error."""

    value: JsonValue = None
    text: str = ""
    blob: str | None = None
    whole_blob: str | None = Field(
        default=None,
        description="the result before personal data was removed; only arguments of later steps are made of it",
    )
    tainted: bool = False
    error_code: str | None = None
    error: str | None = None
    error_stage: str = Field(default="", description="the check that refused the call, such as `check_config`")
    error_param: str | None = Field(default=None, description="the parameter that a provider refuses")
    error_detail: str | None = Field(default=None, description="the provider's own code of the error")
    retry_after_s: float | None = Field(default=None, description="how long a provider asked to be left alone")
    sources: tuple[Source, ...] = ()
    effective: Mode = "llm"
    fallback_reason: str | None = None
    finish_reason: FinishReason = "stop"
    interruption: str = Field(default="", description="the provider's own word for why a text ended unfinished")
    tailored: TailorOutput | None = Field(default=None, description="the answer with its evidence, where it has one")
    refused: bool = Field(default=False, description="whether the text is the model's own refusal")
    provider_fields: JsonObject = Field(
        default_factory=dict, description="what the provider wants back with this text: reasoning, signatures"
    )

    @property
    def unwrapped_value(self) -> JsonValue:
        """The value; where an MCP server has put one into an object because it was none, that one."""
        value = self.value
        return value["result"] if isinstance(value, dict) and value.keys() == {"result"} else value


class StepFinished(EventBody):
    """An attempt ended. It counts only after its verdict."""

    type = "step.finished"
    output: StepOutput
    duration: float = 0.0

    def list_blobs(self) -> tuple[str, ...]:
        """See `EventBody.list_blobs`."""
        return tuple(checksum for checksum in (self.output.blob, self.output.whole_blob) if checksum is not None)


class StepJudged(EventBody):
    """The supervisor's verdict on an attempt."""

    type = "step.judged"
    verdict: StepOutcome
    rule: str = Field(default="", description="the result of the deterministic checks, if a judge decided too")
    figures: tuple[str, ...] = Field(default=(), description="figures without a source in the evidence, not judged")
    misfit: str = Field(default="", description="how an accepted answer misses the form that the request asks for")
    judge_error: str = Field(default="", description="why the judge gave no verdict")
    duration: float = 0.0


class StepDiscarded(EventBody):
    """A speculative attempt whose dependency was not accepted. Its result does not count."""

    type = "step.discarded"
    reason: str


class StepUnknown(EventBody):
    """A side effect whose result was never recorded. It is never repeated; a person must check."""

    type = "step.unknown"
    call_id: str
    tool: str
    key: str
    message: str
