"""The typed events of a run. The log of these is the truth; state, trace and every door's frames derive from it.

An `Event` is the envelope (`run_id, seq, epoch, type, v, step_id, attempt, at`) around a typed body. Bodies are
versioned by `v`: a reader must accept every version that was ever written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from agent.core.errors import AgentFailure
from agent.core.models import (
    AgentRequest,
    ChatMessage,
    Citation,
    Completeness,
    Effect,
    Frozen,
    JsonObject,
    Mode,
    Plan,
    Room,
    RouteKind,
    Source,
    StepOutcome,
    TailorOutput,
    Tier,
    Uncertainty,
    Usage,
)
from agent.core.subagents import SubAgentResult

Purpose = Literal["planner", "supervisor", "skill", "completion", "translator", "task", "subagent"]


FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]
SubAgentOutcome = Literal["done", "timeout", "turns", "budget", "output", "failed"]
"""How a sub-agent ended: with its result, or out of time, turns or budget, without a readable result, by a failure."""


class EventBody(Frozen):
    """The root of all bodies. `durable` bodies must be on disk before the run goes on."""

    type: ClassVar[str]
    v: ClassVar[int] = 1
    terminal: ClassVar[bool] = False


class RunCreated(EventBody):
    """A door's request was accepted. `hidden` runs (background prompts of a chat page) are not listed."""

    type = "run.created"
    request: AgentRequest
    room: Room
    owner: str
    key: str | None = Field(default=None, description="id of the API key that pays for it")
    hidden: bool = False
    tainted: bool = Field(default=False, description="whether the prompt itself came from outside")


class RunClaimed(EventBody):
    """A worker took the run; its epoch stands in the envelope."""

    type = "run.claimed"
    worker: str
    resumed: bool = False


class RunSuspended(EventBody):
    """The owner let go of an unfinished run (drain, full disk); it can be claimed at once."""

    type = "run.suspended"
    reason: str


class CancelRequested(EventBody):
    """The run is to stop: a person's signal reached its owner, or its wall time is spent."""

    type = "run.cancel_requested"
    reason: str = "cancelled by the caller"
    by: Literal["caller", "budget"] = "caller"


class InputGuarded(EventBody):
    """The guard stage: the prompt as the rest of the run will see it."""

    type = "input.guarded"
    prompt: str
    removed_characters: int = 0
    findings: tuple[str, ...] = ()
    placeholders: dict[str, str] = Field(default_factory=dict, description="what stands for a value taken out of it")


class RequestUnderstood(EventBody):
    """The understand stage: how this request will be carried out, and why.

    `language` is the request's; `question` is in English where it was `translated`, and then the answer is to be
    translated back. `fallback_reason` says why a request in another language was not translated."""

    type = "request.understood"
    route: RouteKind
    reason: str
    question: str
    language: str = "en"
    skill: str | None = None
    translated: bool = False
    translate_answer: bool = False
    fallback_reason: str | None = None
    duration: float = 0.0


class MemoryItem(Frozen):
    """A remembered text that may matter to this request; `score` is the cosine it was found by."""

    id: str = ""
    text: str
    source: str
    score: float | None = None
    tainted: bool = False


class MemoryRetrieved(EventBody):
    """The retrieve stage: earlier turns of the conversation, and remembered items.

    `embedder` made the vectors of the search, which was to be `requested`; empty where nothing was searched."""

    type = "memory.retrieved"
    history: tuple[ChatMessage, ...] = ()
    items: tuple[MemoryItem, ...] = ()
    source: str = "none"
    requested: Literal["", "endpoint", "local"] = ""
    embedder: str = ""
    fallback_reason: str | None = None


class PlanRejected(EventBody):
    """A planner's reply that could not become a plan, with every problem found."""

    type = "plan.rejected"
    problems: tuple[str, ...]
    excerpt: str = ""


class PlanProposed(EventBody):
    """A validated plan. `requested` and `effective` differ when the rule planner had to take over."""

    type = "plan.proposed"
    plan: Plan
    requested: Mode
    effective: Mode
    fallback_reason: str | None = None
    replan_reason: str | None = None
    final: bool = Field(
        default=False, description="no other plan can be made: the request fixed it, or no model could find another"
    )
    tainted: bool = Field(default=False, description="made after text from outside had been read")
    asked_for: bool = Field(default=False, description="a person changed the plan, or said how")
    adjusted: tuple[str, ...] = Field(default=(), description="what the room's required tools changed in the plan")
    duration: float = 0.0


class ApprovalItem(Frozen):
    """One thing a person is asked to allow: a tool or skill with its arguments, and whether it changes something."""

    step_id: str
    tool: str
    args: JsonObject = Field(default_factory=dict)
    intent: str = ""
    effect: Effect = "read"
    changes: bool = False


class ApprovalRequested(EventBody):
    """A person is to decide before the run goes on: about the plan in force, or about one call (`call_id`).

    The decision is bound to `digest`: the SHA-256 of the items with their plan's version and the descriptions of the
    tools they name. `expires_at` is UTC seconds."""

    type = "approval.requested"
    approval_id: str
    digest: str
    plan_version: int
    reason: str
    items: tuple[ApprovalItem, ...]
    call_id: str | None = None
    expires_at: float


class ApprovalDecided(EventBody):
    """What became of a request for approval. `answered`: a person said something else than yes or no, which the
    planner is told; `expired`: nobody decided in time, or a tool has changed meanwhile. `plan_version` is the plan
    that was approved: the one asked about, or the person's edit of it."""

    type = "approval.decided"
    approval_id: str
    decision: Literal["approved", "rejected", "answered", "expired"]
    by: str
    reason: str = ""
    plan_version: int = 0
    edited: bool = False


class RunWaiting(EventBody):
    """The run waits for a person, and nobody holds it meanwhile."""

    type = "run.waiting"
    approvals: tuple[str, ...]


class AssistantTurn(Frozen):
    """What a model said in one turn of a skill or sub-agent, kept so that a resumed one goes on where it was."""

    text: str = ""
    tool_calls: tuple[JsonObject, ...] = ()


class ModelReturned(EventBody):
    """One model call ended, well or not. `message` is kept for the turns of skills and sub-agents only."""

    type = "model.returned"
    purpose: Purpose
    tier: Tier
    model: str
    usage: Usage
    duration: float
    requests: int = Field(default=1, description="HTTP requests, transport retries included")
    finish_reason: str | None = None
    error_code: str | None = None
    message: AssistantTurn | None = None
    span: str = Field(default="", description="the sub-agent that asked, if one did")


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


class ToolCalled(EventBody):
    """The intent: committed before the tool is called."""

    type = "tool.called"
    call_id: str
    tool: str
    args: JsonObject
    effect: Effect
    key: str = Field(description="run:plan:step:attempt[:n], the idempotency key")
    span: str = Field(default="", description="the sub-agent that calls, if one does")


class ToolReturned(EventBody):
    """The result of the intent with the same `call_id`. A value of more than 16 kB lies in `blob`."""

    type = "tool.returned"
    call_id: str
    tool: str
    output: JsonValue = None
    text: str = ""
    blob: str | None = None
    error_code: str | None = None
    error: str | None = None
    tainted: bool = False
    truncated: bool = False
    tries: int = 1
    implementation: Mode = Field(default="rules", description="llm where a model wrote the result anew")
    duration: float = 0.0
    sources: tuple[Source, ...] = ()
    span: str = ""


class ToolRefused(EventBody):
    """The model of a skill or sub-agent asked for a tool outside its scope; the tool was not called."""

    type = "tool.refused"
    call_id: str
    tool: str
    args: JsonObject
    reason: str
    span: str = ""


class SubAgentStarted(EventBody):
    """A sub-agent begins within a call of its parent. `span` is this very one: unique in the run, the same after a
    crash, and carried by its model and tool calls. `withheld` are tools it would borrow and its parent may not give."""

    type = "subagent.started"
    agent_id: str = Field(description="which sub-agent it is: source_analyzer ...")
    span: str
    parent: str = Field(default="", description="the span of the sub-agent that started it, if one did")
    depth: int = 1
    task: JsonObject = Field(default_factory=dict)
    tools: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    max_turns: int
    timeout_s: float
    tainted: bool = False


class SubAgentFinished(EventBody):
    """A sub-agent ended. But for `done`, `result` holds what it had found by then. Data of more than 16 kB lie in
    `blob`. `usage` is that of its own model calls, which count for the run too."""

    type = "subagent.finished"
    agent_id: str
    span: str
    outcome: SubAgentOutcome
    result: SubAgentResult
    blob: str | None = None
    turns: int = 0
    usage: Usage = Usage()
    effective: Mode = "llm"
    fallback_reason: str | None = None
    duration: float = 0.0


class StepOutput(Frozen):
    """What an attempt produced: a JSON value and its text, or an error. `text` is what people and models read."""

    value: JsonValue = None
    text: str = ""
    blob: str | None = None
    tainted: bool = False
    error_code: str | None = None
    error: str | None = None
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


class GateChecked(EventBody):
    """One verification gate over the whole run."""

    type = "gate.checked"
    gate: str
    passed: bool
    reason: str
    failures: tuple[str, ...] = Field(default=(), description="the single faults, where the gate did not pass")
    redo: tuple[str, ...] = Field(default=(), description="tools whose results the next plan must not keep")


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


class RunSucceeded(EventBody):
    """The run ended with an answer, complete, partial or aborted."""

    type = "run.succeeded"
    terminal = True
    completeness: Completeness = "complete"
    reason: str = ""


class RunFailed(EventBody):
    """The run ended without an answer."""

    type = "run.failed"
    terminal = True
    failure: AgentFailure


class RunCancelled(EventBody):
    """The run was stopped on request; what was known stands in the answer."""

    type = "run.cancelled"
    terminal = True
    reason: str


_BODIES: tuple[type[EventBody], ...] = (
    RunCreated, RunClaimed, RunSuspended, CancelRequested, InputGuarded, RequestUnderstood, MemoryRetrieved,
    PlanRejected, PlanProposed, ApprovalRequested, ApprovalDecided, RunWaiting, ModelReturned, StepStarted,
    StepSpeculative, ToolCalled, ToolReturned, ToolRefused, SubAgentStarted, SubAgentFinished, StepFinished, StepJudged,
    StepDiscarded, StepUnknown,
    GateChecked, AnswerStarted, AnswerDelta, AnswerChecked, AnswerTranslated, AnswerFinished, RunSucceeded, RunFailed,
    RunCancelled,
)  # fmt: skip

BODY_TYPES: Mapping[str, type[EventBody]] = {body.type: body for body in _BODIES}
TERMINAL_TYPES = frozenset(name for name, body in BODY_TYPES.items() if body.terminal)


@dataclass(frozen=True, slots=True)
class Event:
    """One immutable fact of a run. `at` is UTC seconds since 1970; `seq` starts at 1 and has no gaps."""

    run_id: str
    seq: int
    epoch: int
    at: float
    body: EventBody
    step_id: str | None = None
    attempt: int | None = None

    @property
    def type(self) -> str:
        """The body's type, as stored."""
        return self.body.type

    @property
    def when(self) -> datetime:
        """`at` as an aware datetime."""
        return datetime.fromtimestamp(self.at, UTC)

    def wire(self) -> JsonObject:
        """The public JSON form, as `/v1/runs/{id}/events` sends it."""
        return {
            "run_id": self.run_id,
            "seq": self.seq,
            "epoch": self.epoch,
            "type": self.type,
            "v": self.body.v,
            "step_id": self.step_id,
            "attempt": self.attempt,
            "data": self.body.model_dump(mode="json"),
            "at": self.when.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that has no place in the log yet."""

    body: EventBody
    step_id: str | None = None
    attempt: int | None = None
