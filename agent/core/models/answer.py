"""What comes back: the answer with its evidence and doubts, the trace of how it was found, and what it cost."""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from agent.core.models.words import Frozen, JsonObject


class Usage(Frozen):
    """Tokens and money of one or many model calls. `cost_usd` is None where no price is known; `estimated` says that
    some tokens were counted here, by characters, since the endpoint told none."""

    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=sum(known) if known else None,
            estimated=self.estimated or other.estimated,
        )


class Source(Frozen):
    """Where evidence came from: what a citation number opens."""

    id: int
    name: str
    url: str | None = None
    quotes: tuple[str, ...] = ()
    step_id: str | None = None


class SourceCitation(Frozen):
    """The words a claim rests on, exactly as they stand in a stored chunk, and where that is.

    `start` and `end` count characters of the document's text, `offset` those of the chunk: the snippet is
    `chunk[offset : offset + len(text_snippet)]`. Pages and boxes are those of the blocks the words stand in."""

    source_id: str = Field(description="the document's id")
    chunk_id: str
    text_snippet: str
    url: str | None = None
    citation_id: str = Field(default="", description="what /v1/citations/{id} knows it by")
    number: int = Field(default=1, description="the n of the [n] that cites it")
    source: str = Field(default="", description="the document as people know it")
    collection: str = ""
    page: int | None = Field(default=None, description="the page the words begin on, where pages are known")
    pages: tuple[int, ...] = ()
    start: int = 0
    end: int = 0
    offset: int = 0
    boxes: tuple[tuple[int, float, float, float, float], ...] = Field(
        default=(), description="page, x1, y1, x2, y2, in points from the page's top left"
    )
    chunk_checksum: str = Field(default="", description="SHA-256 of the chunk's text, hex")
    file_checksum: str = Field(default="", description="SHA-256 of the file's bytes, hex")


class TailorOutput(Frozen):
    """An answer whose every claim points at the words it rests on. How `confidence_score` is made up stands in
    `agent/knowledge/tailor/confidence.py`; it is no probability."""

    content: str = Field(description="the answer, citing its sources as [n]")
    citations: tuple[SourceCitation, ...] = ()
    tone_used: str = "General"
    follow_up_suggestions: tuple[str, ...] = ()
    confidence_score: float = Field(default=0.0, ge=0, le=1)


class Citation(Frozen):
    """A claim's evidence: which source, the quoted words, and where they stand."""

    source_id: int
    quote: str
    location: str = ""
    evidence: SourceCitation | None = Field(default=None, description="the place of the quote, where it is known")


class Uncertainty(Frozen):
    """Something the user should know."""

    level: Literal["blocking", "notable", "info"]
    message: str
    step_id: str | None = None


TraceType = Literal[
    "guard", "memory", "route", "plan", "step", "tool", "supervision", "completion", "gate", "translation", "notice",
    "approval", "tailor", "subagent",
]  # fmt: skip
TraceStatus = Literal["running", "done", "failed", "refused", "retried", "replanned", "discarded", "unknown", "skipped"]


class TraceStep(Frozen):
    """One line of the `steps` trace, a projection of the log. Times are UTC; `duration` is in seconds."""

    type: TraceType
    agent_id: str = Field(default="", description="which agent made it: planner, executor, supervisor, ...")
    model: str | None = Field(default=None, description="the model it asked last; null where it asked none")
    title: str
    status: TraceStatus
    started_at: datetime
    duration: float | None = None
    step_id: str | None = None
    attempt: int | None = None
    detail: JsonObject = Field(default_factory=dict)
    usage: Usage | None = None
    span: str | None = Field(default=None, description="the sub-agent this line belongs to, or is")
    parent_span: str | None = Field(default=None, description="of a sub-agent's own line: the one that started it")

    @field_validator("started_at")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value


class AgentResponse(BaseModel):
    """The answer of a run with its trace: the response contract of every door."""

    model_config = ConfigDict(frozen=True)

    response: str
    steps: tuple[TraceStep, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
