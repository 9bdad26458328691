"""`fold(events) -> RunState`: what a run is, derived from its log. Pure: no clock, no randomness, no I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from agent.core import events as ev
from agent.core.errors import AgentFailure
from agent.core.models import (
    AgentRequest,
    Completeness,
    Outcome,
    Plan,
    PlanStep,
    Room,
    RunStatus,
    StepOutcome,
    Usage,
)

StepStatus = Literal["pending", "running", "executed", "succeeded", "retry", "replan", "aborted", "unknown"]


@dataclass(frozen=True)
class CallState:
    """One tool call of an attempt: the intent, and its return once there is one."""

    called: ev.ToolCalled
    returned: ev.ToolReturned | None = None
    unknown: ev.StepUnknown | None = None


@dataclass(frozen=True)
class AttemptState:
    """One attempt of a step."""

    number: int
    started_at: float
    args: Mapping[str, object] = field(default_factory=dict)
    feedback: str | None = None
    tainted: bool = False
    speculative: bool = False
    grounds: Mapping[str, int] = field(default_factory=dict)
    calls: tuple[CallState, ...] = ()
    turns: tuple[ev.AssistantTurn, ...] = ()
    output: ev.StepOutput | None = None
    verdict: StepOutcome | None = None
    doubt: str = ""
    """What a rule had doubted in the attempt, and nobody was asked about."""
    discarded: bool = False
    unknown: ev.StepUnknown | None = None
    asked: frozenset[str] = frozenset()
    """Ids of the approvals this attempt waits for."""
    refused: frozenset[str] = frozenset()
    """Ids of calls that were not made: refused, or returned without an intent."""

    def call(self, call_id: str) -> CallState | None:
        """The call of this id, if it was intended."""
        return next((call for call in self.calls if call.called.call_id == call_id), None)


@dataclass(frozen=True)
class SubAgentState:
    """One sub-agent of the run. `turns` are its model's, so that a resumed one goes on where it was."""

    started: ev.SubAgentStarted
    turns: tuple[ev.AssistantTurn, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finished: ev.SubAgentFinished | None = None


@dataclass(frozen=True)
class StepState:
    """The attempts of one step, oldest first."""

    step_id: str
    attempts: tuple[AttemptState, ...] = ()

    @property
    def last(self) -> AttemptState | None:
        """The newest attempt that was not discarded."""
        return next((attempt for attempt in reversed(self.attempts) if not attempt.discarded), None)

    def attempt(self, number: int) -> AttemptState | None:
        """The attempt of this number."""
        return next((attempt for attempt in self.attempts if attempt.number == number), None)

    @property
    def retries(self) -> int:
        """How many attempts were judged RETRY."""
        return sum(1 for a in self.attempts if a.verdict is not None and a.verdict.outcome is Outcome.RETRY)

    @property
    def status(self) -> StepStatus:
        """Where the step stands."""
        last = self.last
        if last is None:
            return "pending"
        if last.unknown is not None:
            return "unknown"
        if last.verdict is not None:
            return _STATUS_OF[last.verdict.outcome]
        return "running" if last.output is None else "executed"

    @property
    def output(self) -> ev.StepOutput | None:
        """The output of the newest attempt."""
        return self.last.output if self.last else None


_STATUS_OF: Mapping[Outcome, StepStatus] = {
    Outcome.SUCCESS: "succeeded",
    Outcome.RETRY: "retry",
    Outcome.REPLAN: "replan",
    Outcome.ABORT: "aborted",
}

_NO_STEP = StepState("")


@dataclass(frozen=True)
class RunState:
    """A run at one moment. Every field is derived; to change it, append an event."""

    run_id: str
    seq: int = 0
    epoch: int = 0
    status: RunStatus = "queued"
    created: ev.RunCreated | None = None
    created_at: float = 0.0
    updated_at: float = 0.0
    guarded: ev.InputGuarded | None = None
    understood: ev.RequestUnderstood | None = None
    retrieved: ev.MemoryRetrieved | None = None
    plans: tuple[ev.PlanProposed, ...] = ()
    steps: Mapping[str, StepState] = field(default_factory=dict)
    approvals: tuple[ev.ApprovalRequested, ...] = ()
    decisions: Mapping[str, ev.ApprovalDecided] = field(default_factory=dict)
    gates: tuple[ev.GateChecked, ...] = ()
    answering: ev.AnswerStarted | None = None
    translated: ev.AnswerTranslated | None = None
    answer: ev.AnswerFinished | None = None
    checks: tuple[ev.AnswerChecked, ...] = ()
    cancel: ev.CancelRequested | None = None
    usage: Usage = field(default_factory=Usage)
    subagents: Mapping[str, SubAgentState] = field(default_factory=dict)
    """By span, in the order they began."""
    completeness: Completeness | None = None
    end_reason: str = ""
    failure: AgentFailure | None = None
    tainted: bool = False

    @property
    def request(self) -> AgentRequest:
        """The request; every log begins with it."""
        return self._created.request

    @property
    def room(self) -> Room:
        """The room as it was when the run was created."""
        return self._created.room

    @property
    def owner(self) -> str:
        """The principal the run belongs to."""
        return self._created.owner

    @property
    def hidden(self) -> bool:
        """Whether no list shows it: a call of one tool by itself, or a background prompt of a chat page."""
        return self._created.hidden

    @property
    def gated(self) -> bool:
        """Whether the room's required tools and gates apply: to all but the background prompts of a chat page."""
        return not self.hidden

    @property
    def key(self) -> str | None:
        """The id of the API key the run was asked for with."""
        return self._created.key

    @property
    def _created(self) -> ev.RunCreated:
        if self.created is None:
            raise ValueError(f"run {self.run_id} has no run.created event")
        return self.created

    @property
    def prompt(self) -> str:
        """The prompt as the guard left it."""
        return self.guarded.prompt if self.guarded else self.request.prompt

    @property
    def question(self) -> str:
        """The request as the engine works on it: in English where it was translated."""
        return self.understood.question if self.understood and self.understood.translated else self.prompt

    @property
    def plan(self) -> Plan | None:
        """The plan in force."""
        return self.plans[-1].plan if self.plans else None

    @property
    def replans(self) -> int:
        """How many times the run had to be planned again; what a person asked for does not count."""
        return sum(1 for proposed in self.plans[1:] if not proposed.asked_for)

    @property
    def waiting(self) -> tuple[ev.ApprovalRequested, ...]:
        """The approvals a person has still to decide on; those of a plan that was replaced are void."""
        if self.plan is None:
            return ()
        version, steps = self.plan.version, {step.id for step in self.plan.steps}
        return tuple(
            asked
            for asked in self.approvals
            if asked.approval_id not in self.decisions
            and (asked.plan_version == version if asked.call_id is None else asked.items[0].step_id in steps)
        )

    @property
    def finished(self) -> bool:
        """Whether a terminal event stands in the log."""
        return self.status in ("succeeded", "failed", "cancelled")

    def step(self, step_id: str) -> StepState:
        """The state of a step; an untouched one where nothing happened yet."""
        return self.steps.get(step_id, _NO_STEP)

    def succeeded_steps(self) -> tuple[PlanStep, ...]:
        """The steps of the plan in force that were judged SUCCESS, in plan order."""
        return tuple(s for s in self.plan.steps if self.step(s.id).status == "succeeded") if self.plan else ()


T = TypeVar("T", bound="RunState | StepState | AttemptState | CallState | SubAgentState")


def evolved(old: T, **changes: Any) -> T:
    """`old` with these fields changed, as `dataclasses.replace` does it, in a tenth of the time: states are made for
    every event, and have no slots for this one's sake."""
    new = object.__new__(type(old))
    fields = old.__dict__.copy()
    fields.update(changes)
    object.__setattr__(new, "__dict__", fields)
    return new


def fold(run_id: str, events: Iterable[ev.Event]) -> RunState:
    """The state after `events`, which must be this run's, in order of seq."""
    state = RunState(run_id)
    for event in events:
        state = apply(state, event)
    return state


def apply(state: RunState, event: ev.Event) -> RunState:  # noqa: C901, PLR0912 - one case an event
    """The state after one more event."""
    state = evolved(state, seq=event.seq, epoch=event.epoch, updated_at=event.at)
    body = event.body
    match body:
        case ev.RunCreated():
            return evolved(state, created=body, created_at=event.at, tainted=body.tainted)
        case ev.RunClaimed():
            return evolved(state, status="running")
        case ev.RunSuspended():
            return evolved(state, status="queued")
        case ev.RunWaiting():
            return evolved(state, status="awaiting_approval")
        case ev.ApprovalRequested():
            return _apply_step(evolved(state, approvals=(*state.approvals, body)), event)
        case ev.ApprovalDecided():
            return _apply_step(evolved(state, decisions={**state.decisions, body.approval_id: body}), event)
        case ev.CancelRequested():
            return evolved(state, cancel=body)
        case ev.InputGuarded():
            return evolved(state, guarded=body)
        case ev.RequestUnderstood():
            return evolved(state, understood=body)
        case ev.MemoryRetrieved():
            return evolved(state, retrieved=body, tainted=state.tainted or body.tainted)
        case ev.PlanProposed():
            return evolved(state, plans=(*state.plans, body), gates=(), answer=None, translated=None)
        case ev.GateChecked():
            return evolved(state, gates=(*state.gates, body))
        case ev.AnswerStarted():
            return evolved(state, answering=body)
        case ev.AnswerChecked():
            return evolved(state, checks=(*state.checks, body))
        case ev.AnswerTranslated():
            return evolved(state, translated=body)
        case ev.AnswerFinished():
            return evolved(state, answer=body)
        case ev.RunSucceeded():
            return evolved(state, status="succeeded", completeness=body.completeness, end_reason=body.reason)
        case ev.RunFailed():
            return evolved(state, status="failed", failure=body.failure, end_reason=body.failure.message)
        case ev.RunCancelled():
            return evolved(state, status="cancelled", end_reason=body.reason)
        case ev.ModelReturned():
            state = evolved(state, usage=state.usage + body.usage)
            if body.span:
                return _apply_subagent(state, body.span, body)
            return _apply_step(state, event) if body.message is not None else state
        case ev.SubAgentStarted():
            known = state.subagents.get(body.span)
            return evolved(state, subagents={**state.subagents, body.span: known or SubAgentState(body)})
        case ev.SubAgentFinished():
            return _apply_subagent(state, body.span, body)
        case ev.PlanRejected() | ev.AnswerDelta() | ev.OutputGuarded():
            return state
        case _:
            return _apply_step(state, event)


def _apply_subagent(state: RunState, span: str, body: ev.ModelReturned | ev.SubAgentFinished) -> RunState:
    """Fold what happened in a sub-agent; nothing for one that never began."""
    known = state.subagents.get(span)
    if known is None:
        return state
    if isinstance(body, ev.SubAgentFinished):
        changed = evolved(known, finished=body)
    else:
        turns = (*known.turns, body.message) if body.message is not None else known.turns
        changed = evolved(known, usage=known.usage + body.usage, turns=turns)
    return evolved(state, subagents={**state.subagents, span: changed})


def _apply_step(state: RunState, event: ev.Event) -> RunState:
    """Fold an event that belongs to an attempt of a step."""
    if event.step_id is None or event.attempt is None:
        return state
    step = state.steps.get(event.step_id) or StepState(event.step_id)
    attempt = next((a for a in step.attempts if a.number == event.attempt), None)
    changed = _apply_attempt(attempt or AttemptState(event.attempt, event.at), event)
    if attempt is None:
        attempts = (*step.attempts, changed)
    else:
        attempts = tuple(changed if a.number == event.attempt else a for a in step.attempts)
    return evolved(state, steps={**state.steps, event.step_id: evolved(step, attempts=attempts)})


def _apply_attempt(attempt: AttemptState, event: ev.Event) -> AttemptState:  # noqa: C901, PLR0912 - one case an event
    body = event.body
    match body:
        case ev.StepStarted():
            return evolved(attempt, args=body.args, feedback=body.feedback, tainted=body.tainted)
        case ev.StepSpeculative():
            return evolved(attempt, speculative=True, grounds=body.grounds)
        case ev.ToolCalled():
            if attempt.call(body.call_id):  # repeated on resume under the same key
                return attempt
            return evolved(attempt, calls=(*attempt.calls, CallState(body)))
        case ev.ApprovalRequested():
            return evolved(attempt, asked=attempt.asked | {body.approval_id})
        case ev.ApprovalDecided():
            return evolved(attempt, asked=attempt.asked - {body.approval_id})
        case ev.ToolRefused():
            return evolved(attempt, refused=attempt.refused | {body.call_id})
        case ev.ToolReturned() if attempt.call(body.call_id) is None:
            return evolved(attempt, refused=attempt.refused | {body.call_id})
        case ev.ToolReturned():
            return evolved(attempt, calls=_with_call(attempt, body.call_id, returned=body))
        case ev.StepUnknown():
            calls = _with_call(attempt, body.call_id, unknown=body)
            return evolved(attempt, calls=calls, unknown=body)
        case ev.ModelReturned(message=turn) if turn is not None:
            return evolved(attempt, turns=(*attempt.turns, turn))
        case ev.StepFinished():
            return evolved(attempt, output=body.output)
        case ev.StepJudged():
            return evolved(attempt, verdict=body.verdict, doubt=body.rule if body.verdict.by == "rule" else "")
        case ev.StepDiscarded():
            return evolved(attempt, discarded=True)
        case _:
            return attempt


def _with_call(
    attempt: AttemptState,
    call_id: str,
    *,
    returned: ev.ToolReturned | None = None,
    unknown: ev.StepUnknown | None = None,
) -> tuple[CallState, ...]:
    return tuple(
        evolved(call, returned=returned or call.returned, unknown=unknown or call.unknown)
        if call.called.call_id == call_id
        else call
        for call in attempt.calls
    )
