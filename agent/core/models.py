"""The nouns of the product, shared by API and engine: requests, rooms, plans, outcomes, answers. All frozen."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

LOCAL_OWNER = "local"
"""The principal of a caller without a key."""

JsonObject = dict[str, JsonValue]
Tier = Literal["fast", "high"]
Mode = Literal["llm", "rules"]
Effect = Literal["read", "idempotent", "effect"]
"""`read` may be repeated freely, `idempotent` with the same key, `effect` at most once."""
Executor = Literal["skill", "agent", "litellm"]
Action = Literal["skill", "tool", "memory", "completion"]
RunStatus = Literal["queued", "running", "awaiting_approval", "succeeded", "failed", "cancelled"]
Completeness = Literal["complete", "partial", "aborted"]
JudgePolicy = Literal["checks", "auto", "always"]
ApprovalPolicy = Literal["never", "side_effects", "always"]
RouteKind = Literal["plan", "direct", "greeting", "command", "skill", "task", "tool_calls"]
Role = Literal["system", "developer", "user", "assistant", "tool"]

STEP_ID_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,31}$"


class Frozen(BaseModel):
    """A value that travels between parts; never changed in place."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Outcome(StrEnum):
    """The supervisor's word on one attempt of a step."""

    SUCCESS = "SUCCESS"
    RETRY = "RETRY"
    REPLAN = "REPLAN"
    ABORT = "ABORT"


class StepOutcome(Frozen):
    """A verdict. `by` names who gave it: the deterministic checks (`rule`) or the fast tier as judge (`model`)."""

    outcome: Outcome
    reason: str = Field(min_length=1)
    suggested_fix: str | None = None
    evidence: str = ""
    by: Literal["rule", "model"] = "rule"


class Usage(Frozen):
    """Tokens and money of one or many model calls. `cost_usd` is None where no price is known."""

    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

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
        )


class ChatMessage(Frozen):
    """One message of a conversation, in text. Images are kept apart as data or http URLs."""

    role: Role
    content: str = ""
    images: tuple[str, ...] = ()
    tool_calls: tuple[JsonObject, ...] = Field(default=(), description="calls of a client's own tools, as received")
    tool_call_id: str | None = None

    def wire(self) -> JsonObject:
        """In OpenAI's wire form."""
        message: JsonObject = {"role": self.role, "content": self.content}
        if self.images:
            parts: list[JsonValue] = [{"type": "text", "text": self.content}]
            parts += [{"type": "image_url", "image_url": {"url": url}} for url in self.images]
            message["content"] = parts
        if self.tool_calls:
            message["tool_calls"] = list(self.tool_calls)
        if self.tool_call_id:
            message["tool_call_id"] = self.tool_call_id
        return message


class ToolCallRequest(Frozen):
    """A tool call the caller asks for explicitly (`metadata.tool_calls`)."""

    tool: str = Field(min_length=1)
    args: JsonObject = Field(default_factory=dict)


RESERVED_METADATA = frozenset(
    {
        "plan", "tool_results", "runtime", "usage", "run_id", "room", "status", "gates", "uncertainties", "failure",
        "approvals", "aborted", "reason", "sources", "citations", "tailor", "verification",
    }
)  # fmt: skip
"""Keys the engine writes into the response's metadata; a caller's values under them are dropped."""


class AgentRequest(BaseModel):
    """What a door hands to the engine, and the body of `POST /v1/agent`.

    `messages` overrides the stored history of `conversation_id` for this call only. `metadata.tools` narrows the
    run to the named tools; `metadata.tool_calls` are executed and reported.
    """

    model_config = ConfigDict(frozen=True)

    prompt: str = ""
    conversation_id: str | None = Field(default=None, max_length=200)
    metadata: JsonObject = Field(default_factory=dict)
    messages: tuple[ChatMessage, ...] | None = None
    room: str | None = None
    images: tuple[str, ...] = ()
    client_tools: tuple[JsonObject, ...] = Field(
        default=(), description="tools the client would run itself; only rooms that are a plain model use them"
    )
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    options: JsonObject = Field(
        default_factory=dict,
        description="what else the model that writes the answer is asked with, in OpenAI's names: top_p, stop, seed, "
        "response_format",
    )
    stream: bool = Field(default=False, description="at /v1/agent: send every event as it happens, then the response")

    def caller_metadata(self) -> JsonObject:
        """The caller's metadata without the keys the engine writes."""
        return {key: value for key, value in self.metadata.items() if key not in RESERVED_METADATA}


class Budgets(Frozen):
    """The limits of one run. Retries are per step; everything else is per run."""

    max_steps: int = Field(default=12, ge=1, le=25)
    max_parallel: int = Field(default=8, ge=1, le=64)
    max_retries: int = Field(default=1, ge=0, le=1)
    max_replans: int = Field(default=3, ge=0, le=3)
    max_model_calls: int = Field(default=60, ge=1)
    max_tokens: int = Field(default=400_000, ge=1, description="prompt and completion tokens together")
    max_cost_usd: float | None = Field(default=None, ge=0)
    max_seconds: float = Field(default=900, gt=0)
    max_subagents: int = Field(default=8, ge=0, le=64)


GuardAction = Literal["off", "flag", "redact", "block"]


class RoomGuards(Frozen):
    """What a room does about what is found in a text: `off` does not look, `flag` reports it, `redact` takes it out,
    `block` takes nothing of the text."""

    injection: GuardAction = "off"
    pii: GuardAction = "off"
    secret: GuardAction = "off"  # noqa: S105 - what to do, no password
    hate_speech: GuardAction = "off"
    malicious_code: GuardAction = "off"


class Room(Frozen):
    """An assistant's profile. Each room is one model id in `/v1/models`."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    name: str = ""
    description: str = ""
    system_prompt: str = Field(default="", description="instructions of the operator, trusted")
    persona: str = Field(default="", description="how answers sound; makes every answer pass a completion")
    fast_model: str | None = Field(default=None, description="overrides AGENT_MODEL_FAST in this room")
    high_model: str | None = Field(default=None, description="overrides AGENT_MODEL_HIGH in this room")
    answer_tier: Tier = "fast"
    planning: bool = Field(default=True, description="false: a plain model, no plan, client tools passed through")
    skill: str | None = Field(default=None, description="the skill that carries out every request of this room")
    requires_model: bool = Field(
        default=False, description="a skill here fails with the model's error; true keeps rules from taking over"
    )
    skills: tuple[str, ...] | None = Field(default=None, description="allowed skills; null allows all")
    tools: tuple[str, ...] | None = Field(default=None, description="allowed tools; null allows all")
    supervision: JudgePolicy = "auto"
    approval: ApprovalPolicy = Field(
        default="never",
        description="what a person must allow first: nothing, what changes something, or every plan. A change with "
        "arguments that come from outside is always asked for",
    )
    memory: bool = Field(default=True, description="recall what is remembered for the user, and remember exchanges")
    guard_input: RoomGuards = Field(
        default=RoomGuards(injection="flag"), description="what is done about a prompt, by what is found in it"
    )
    knowledge: bool = Field(default=False, description="every question is looked up in the documents, and only there")
    vision: bool = False
    citations: bool = False
    gates: tuple[str, ...] = Field(
        default=(), description="verifier gates every run here must pass, or it fails; see agent/execution/gates"
    )
    required_tools: tuple[str, ...] = Field(default=(), description="tools every plan here calls; added where missing")
    incident_tools: tuple[str, ...] = Field(
        default=(), description="tools required besides where a request speaks of an incident, in their order"
    )
    subagent_depth: int = Field(
        default=1, ge=0, le=3, description="how deep sub-agents may start sub-agents; 0 allows none at all"
    )
    owner: str = LOCAL_OWNER
    budgets: Budgets = Budgets()


class PlanStep(Frozen):
    """One step of a plan, in the public form the trace shows.

    `args` may hold references to earlier results, `{"$from": "s1", "path": "output.items[0]"}`. `effect` is the
    worst effect class of what the step may call; `tier` and `provider` matter to completions.
    """

    id: str = Field(pattern=STEP_ID_PATTERN)
    executor: Executor
    action: Action
    tool: str
    args: JsonObject = Field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    intent: str = ""
    effect: Effect = "read"
    tier: Tier | None = None
    provider: str | None = Field(default=None, description="the model name a completion was sent to, by tier")

    @property
    def is_completion(self) -> bool:
        """Whether this step writes the answer with a model."""
        return self.action == "completion"

    @property
    def title(self) -> str:
        """What a person sees on a step card."""
        return "answer" if self.is_completion else self.tool


class Plan(Frozen):
    """A goal and its steps. Version 0 is the first; each replan adds one and keeps the steps that succeeded."""

    goal: str
    language: str = "en"
    steps: tuple[PlanStep, ...]
    version: int = 0
    origin: Literal["llm", "rules", "request"] = "rules"
    origin_reason: str | None = None
    reasoning: str = ""

    def step(self, step_id: str) -> PlanStep:
        """The step of this id; KeyError when there is none."""
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)


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


class TraceStep(Frozen):
    """One line of the `steps` trace, a projection of the log. Times are UTC; `duration` is in seconds."""

    type: Literal[
        "guard", "memory", "route", "plan", "step", "tool", "supervision", "completion", "gate", "translation",
        "notice", "approval", "tailor", "subagent",
    ]  # fmt: skip
    title: str
    status: Literal["running", "done", "failed", "refused", "retried", "replanned", "discarded", "unknown"]
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
