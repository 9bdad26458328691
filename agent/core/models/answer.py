"""The response: the answer with its evidence and uncertainties, the trace, and what it cost."""

from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from agent.core.models.words import FrozenModel, JsonObject


class Usage(FrozenModel):
    """Tokens and cost of one or several model calls. `cost_usd` is None if no price is known. `estimated` means that
    some tokens were estimated from characters because the endpoint reported none.

    `cached_tokens` are the prompt tokens that the provider read from its cache, `reasoning_tokens` the completion
    tokens spent on reasoning. Both are parts of their totals, and 0 where the endpoint does not report them.
    """

    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        known_costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            **{name: getattr(self, name) + getattr(other, name) for name in USAGE_COUNTS},
            cost_usd=sum(known_costs) if known_costs else None,
            estimated=self.estimated or other.estimated,
        )


USAGE_COUNTS: Final = tuple(name for name, field in Usage.model_fields.items() if field.annotation is int)
"""The counts of `Usage`. The ledger of usage sums up each, in a column of its name."""


class Source(FrozenModel):
    """Where evidence comes from: what a citation number refers to."""

    id: int
    name: str
    url: str | None = None
    quotes: tuple[str, ...] = ()
    step_id: str | None = None


class SourceCitation(FrozenModel):
    """The words that support a claim, exactly as in a stored chunk, and their place.

    `start` and `end` count characters of the document's text, `offset` those of the chunk: the snippet is `chunk[offset
    : offset + len(text_snippet)]`. Pages and boxes are those of the blocks that contain the words.
    """

    source_id: str = Field(description="the document's id")
    chunk_id: str
    text_snippet: str
    url: str | None = None
    citation_id: str = Field(default="", description="its id at /v1/citations/{id}")
    number: int = Field(default=1, description="the n of the [n] that cites it")
    source: str = Field(default="", description="the name of the document for people")
    collection: str = ""
    page: int | None = Field(default=None, description="the page on which the words start, if pages are known")
    pages: tuple[int, ...] = ()
    start: int = 0
    end: int = 0
    offset: int = 0
    boxes: tuple[tuple[int, float, float, float, float], ...] = Field(
        default=(), description="page, x1, y1, x2, y2, in points from the page's top left"
    )
    chunk_checksum: str = Field(default="", description="SHA-256 of the chunk's text, hex")
    file_checksum: str = Field(default="", description="SHA-256 of the file's bytes, hex")


class TailorOutput(FrozenModel):
    """An answer in which every claim cites the words that support it. `confidence_score` is computed from what was
    checked; it is not a probability.
    """

    content: str = Field(description="the answer, citing its sources as [n]")
    citations: tuple[SourceCitation, ...] = ()
    tone_used: str = "General"
    follow_up_suggestions: tuple[str, ...] = ()
    confidence_score: float = Field(default=0.0, ge=0, le=1)


class Citation(FrozenModel):
    """The evidence of a claim: the source, the quoted words and their place."""

    source_id: int
    quote: str
    location: str = ""
    evidence: SourceCitation | None = Field(default=None, description="the place of the quote, if it is known")


class Uncertainty(FrozenModel):
    """Something the user should know about the answer."""

    level: Literal["blocking", "notable", "info"]
    message: str
    step_id: str | None = None


TraceType = Literal[
    "guard", "memory", "route", "plan", "step", "tool", "supervision", "completion", "gate", "translation", "notice",
    "approval", "tailor", "subagent", "finalize",
]  # fmt: skip
TraceStatus = Literal["running", "done", "failed", "refused", "retried", "replanned", "discarded", "unknown", "skipped"]


class TraceStep(FrozenModel):
    """One line of the `steps` trace, a projection of the log. Times are UTC; `duration` is in seconds."""

    type: TraceType
    agent_id: str = Field(default="", description="the agent that made it: planner, executor, supervisor, ...")
    model: str | None = Field(default=None, description="the model it used last; null without one")
    title: str
    status: TraceStatus
    started_at: datetime
    duration: float | None = None
    step_id: str | None = None
    attempt: int | None = None
    detail: JsonObject = Field(default_factory=dict)
    usage: Usage | None = None
    span: str | None = Field(default=None, description="the sub-agent of this line")
    parent_span: str | None = Field(
        default=None, description="on a sub-agent's own line: the sub-agent that started it"
    )

    @field_validator("started_at")
    @classmethod
    def _set_utc(cls, value: datetime) -> datetime:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value


class AgentResponse(BaseModel):
    """The answer of a run with its trace: the response contract of every door."""

    model_config = ConfigDict(frozen=True)

    response: str
    steps: tuple[TraceStep, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
