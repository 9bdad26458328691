"""The state of a run: what its log says of the request, the plans, the steps and the answer.

`agent/core/run_reducer.py` derives it from the events.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent.core import events as ev
from agent.core.failures import AgentFailure
from agent.core.models import (
    ENDED_STATUSES,
    AgentRequest,
    Completeness,
    Effect,
    Outcome,
    Plan,
    PlanStep,
    Room,
    RunStatus,
    StepOutcome,
    Usage,
)

StepStatus = Literal["pending", "running", "executed", "succeeded", "retry", "replan", "aborted", "unknown"]
StepResult = tuple[PlanStep, ev.StepOutput]
"""A step that ran, and what it returned."""


@dataclass(frozen=True)
class CallState:
    """One tool call of an attempt: the intent, and the result once there is one."""

    intent: ev.ToolCalled
    result: ev.ToolReturned | None = None
    unknown_outcome: ev.StepUnknown | None = None


@dataclass(frozen=True)
class AttemptState:
    """One attempt of a step."""

    number: int
    started_at: float
    args: Mapping[str, object] = field(default_factory=dict)
    feedback: str | None = None
    tainted: bool = False
    taken_from: str = ""
    """The run whose result this attempt took over, if it did nothing itself."""
    is_speculative: bool = False
    depends_on_attempts: Mapping[str, int] = field(default_factory=dict)
    calls: tuple[CallState, ...] = ()
    turns: tuple[ev.AssistantTurn, ...] = ()
    output: ev.StepOutput | None = None
    verdict: StepOutcome | None = None
    rule_doubt: str = ""
    """The doubts of rules about the attempt that were not put to the judge."""
    unexplained_figures: tuple[str, ...] = ()
    """Figures of the output that have no source in its evidence, where no judge accepted them."""
    misfit: str = ""
    """How the attempt's answer misses the form that the request asks for."""
    judge_error: str = ""
    """Why the judge gave no verdict."""
    is_discarded: bool = False
    unknown_outcome: ev.StepUnknown | None = None
    pending_approvals: frozenset[str] = frozenset()
    """Ids of the approval requests this attempt waits for."""
    refused_calls: frozenset[str] = frozenset()
    """Ids of calls that were not made: refused, or failed before the intent was written."""

    def find_call(self, call_id: str) -> CallState | None:
        """The call of this id, or None."""
        return next((call for call in self.calls if call.intent.call_id == call_id), None)

    def get_step_status(self) -> StepStatus:
        """The status of the step whose newest attempt this is."""
        if self.unknown_outcome is not None:
            return "unknown"
        if self.verdict is not None:
            return _STATUS_OF[self.verdict.outcome]
        return "running" if self.output is None else "executed"


@dataclass(frozen=True)
class SubAgentState:
    """One sub-agent of the run. `turns` are its model's, so that a resumed sub-agent continues where it was."""

    start: ev.SubAgentStarted
    turns: tuple[ev.AssistantTurn, ...] = ()
    usage: Usage = field(default_factory=Usage)
    end: ev.SubAgentFinished | None = None


@dataclass(frozen=True)
class StepState:
    """The attempts of one step, oldest first."""

    step_id: str
    attempts: tuple[AttemptState, ...] = ()
    last: AttemptState | None = field(init=False)
    """The newest attempt that was not discarded."""
    status: StepStatus = field(init=False)

    def __post_init__(self) -> None:  # once, because they are read far more often than a step changes
        last = next((attempt for attempt in reversed(self.attempts) if not attempt.is_discarded), None)
        object.__setattr__(self, "last", last)
        object.__setattr__(self, "status", last.get_step_status() if last is not None else "pending")

    def find_attempt(self, number: int) -> AttemptState | None:
        """The attempt of this number, or None."""
        for attempt in self.attempts:
            if attempt.number == number:
                return attempt
        return None

    @property
    def retry_count(self) -> int:
        """How many attempts were judged RETRY."""
        return sum(1 for a in self.attempts if a.verdict is not None and a.verdict.outcome is Outcome.RETRY)

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
_CLIENT_TOOL_TYPES = ("function", "custom")
"""The types of tools that the client runs itself. No set: a client may send a list as the type."""
_OUTSIDE_INSTRUCTIONS = ev.TextLabel(source="instructions", trusted=False, private=True)


@dataclass(frozen=True)
class RunState:
    """The state of a run at one moment. Every field is derived; to change one, append an event."""

    run_id: str
    seq: int = 0
    epoch: int = 0
    status: RunStatus = "queued"
    created: ev.RunCreated | None = None
    request: AgentRequest = field(init=False, repr=False, compare=False)
    """The request; like the room and the owner, that of `created`, with which every log begins."""
    room: Room = field(init=False, repr=False, compare=False)
    """The room as it was when the run was created."""
    owner: str = field(init=False, repr=False, compare=False)
    created_at: float = 0.0
    updated_at: float = 0.0
    input_guard: ev.InputGuarded | None = None
    understanding: ev.RequestUnderstood | None = None
    retrieval: ev.MemoryRetrieved | None = None
    classified: ev.IntentClassified | None = None
    """The intents that the room's router read in the request; None in rooms without a router."""
    input_request: ev.InputRequested | None = None
    """The question to the user; the run ends with it."""
    client_calls: ev.ClientToolsCalled | None = None
    """The calls of the client's tools that the run ends with."""
    plans: tuple[ev.PlanProposed, ...] = ()
    plan: Plan | None = None
    """The current plan, the last of `plans`."""
    plan_steps: tuple[PlanStep, ...] = ()
    """The steps of the current plan; () before there is one."""
    steps: Mapping[str, StepState] = field(default_factory=dict)
    approvals: tuple[ev.ApprovalRequested, ...] = ()
    decisions: Mapping[str, ev.ApprovalDecided] = field(default_factory=dict)
    gates: tuple[ev.GateChecked, ...] = ()
    selections: Mapping[str, str] = field(default_factory=dict)
    """What the request asks about in lists, by the ids of the steps that returned them."""
    answer_start: ev.AnswerStarted | None = None
    translation: ev.AnswerTranslated | None = None
    answer: ev.AnswerFinished | None = None
    answer_checks: tuple[ev.AnswerChecked, ...] = ()
    cancel_request: ev.CancelRequested | None = None
    usage: Usage = field(default_factory=Usage)
    unread_tokens: int = 0
    """The most tokens of one prompt that an endpoint left out without an error, as estimated."""
    model_usage: tuple[tuple[str, Usage], ...] = ()
    """The model and the usage of each call, in order."""
    subagents: Mapping[str, SubAgentState] = field(default_factory=dict)
    """By span, in order of start."""
    feature_events: Mapping[str, ev.FeatureEvent] = field(default_factory=dict)
    """The newest event of each type that features have declared, by type."""
    failed_upstreams: tuple[ev.FailedUpstream, ...] = ()
    """Models that did not answer and were replaced by another one, oldest first."""
    completeness: Completeness | None = None
    end_reason: str = ""
    failure: AgentFailure | None = None
    tainted: bool = False

    @property
    def client_tool_names(self) -> frozenset[str]:
        """The names of the client's own tools that a plan of this run may use."""
        if not self.request.client_tools or not self.room.offers_client_tools:
            return frozenset()
        functions = (tool.get("function") for tool in self.request.client_tools)
        return frozenset(str(function.get("name")) for function in functions if isinstance(function, dict))

    @property
    def is_hidden(self) -> bool:
        """Whether lists leave the run out: a single tool call, or a background prompt of a chat page."""
        return self._created.hidden

    @property
    def is_one_off(self) -> bool:
        """Whether the exchange is added to no conversation: the caller sent other messages in its place."""
        return self._created.one_off

    @property
    def given(self) -> ev.GivenPlan | None:
        """The plan that the run carries out instead of making one; None for other runs."""
        return self._created.given

    @property
    def is_gated(self) -> bool:
        """Whether the room's required tools and gates apply: to all runs but background prompts of a chat page."""
        return not self.is_hidden

    @property
    def api_key_id(self) -> str | None:
        """The id of the API key that started the run."""
        return self._created.key

    @property
    def has_untrusted_prompt(self) -> bool:
        """Whether what this run was asked may be somebody else's words: nothing in it is the user's then."""
        return self._created.tainted

    @property
    def has_outside_prompt(self) -> bool:
        """Whether the prompt itself, not only its conversation, is another text's: a schedule made of a result."""
        return self.prompt_addresses is not None

    @property
    def prompt_addresses(self) -> tuple[str, ...] | None:
        """The addresses that the user wrote in a prompt from outside; None if the prompt is the user's."""
        return self._created.prompt_addresses

    @property
    def own_prompts(self) -> tuple[str, ...]:
        """What the user wrote in this request, as sent and as guarded. Of a prompt from outside, their addresses."""
        addresses = self.prompt_addresses
        return (self.prompt, self.request.prompt) if addresses is None else addresses

    @property
    def has_own_conversation(self) -> bool:
        """Whether this gateway made the conversation's id."""
        return self._created.own_conversation

    @property
    def may_skip_approval(self) -> bool:
        """Whether calls that the request names with their arguments count as approved."""
        return self._created.may_skip_approval

    @property
    def caller_scopes(self) -> tuple[str, ...] | None:
        """The scopes of the key or token that started the run; None for the machine's owner."""
        return self._created.scopes

    @property
    def caller_tools(self) -> tuple[str, ...] | None:
        """The list of tools of the key or token that started the run; None without one."""
        return self._created.tools

    @property
    def unshared(self) -> tuple[str, ...]:
        """The caller's own sources that nobody else reads, as recorded at the start; () where the room needs none."""
        return self._created.unshared

    def has_side_effect(self, tool: str, effect: Effect) -> bool:
        """Whether a step or call of this run changes something beside the user's own memory and drafts."""
        return effect != "read" and tool not in self._created.approval_exempt

    @property
    def _created(self) -> ev.RunCreated:
        if self.created is None:
            raise ValueError(f"run {self.run_id} has no run.created event")
        return self.created

    @property
    def prompt(self) -> str:
        """The prompt after the guard stage."""
        return self.input_guard.prompt if self.input_guard else self.request.prompt

    @property
    def question(self) -> str:
        """The request as the engine works on it: in English if it was translated, the recipe's if it calls one."""
        understood = self.understanding
        is_rewritten = understood is not None and (understood.translated or understood.route == "recipe")
        return understood.question if understood is not None and is_rewritten else self.prompt

    @property
    def steps_of_all_plans(self) -> dict[str, PlanStep]:
        """The steps of all plans by their ids, as the newest plan with such a step has it."""
        return {step.id: step for proposed in self.plans for step in proposed.plan.steps}

    def find_planned_step(self, step_id: str) -> PlanStep | None:
        """The step of the current plan that has this id, or None."""
        return next((step for step in self.plan_steps if step.id == step_id), None)

    @property
    def replan_count(self) -> int:
        """How many times the run was planned again. Changes that a person asked for and rounds do not count."""
        return sum(1 for proposed in self.plans[1:] if not proposed.asked_for and not proposed.is_round)

    @property
    def round_count(self) -> int:
        """How many rounds of calls were planned: plans whose last step asks for more."""
        return sum(1 for proposed in self.plans if any(step.is_plan_more for step in proposed.plan.steps))

    @property
    def pending_approvals(self) -> tuple[ev.ApprovalRequested, ...]:
        """The approval requests that are still open. Those of a replaced plan are void."""
        plan = self.plan
        if plan is None or not self.approvals:
            return ()
        version, steps = plan.version, {step.id for step in plan.steps}
        return tuple(
            request
            for request in self.approvals
            if request.approval_id not in self.decisions
            and (request.plan_version == version if request.call_id is None else request.items[0].step_id in steps)
        )

    def list_open_approvals(self, now: float) -> tuple[ev.ApprovalRequested, ...]:
        """Those of `pending_approvals` that have not expired at `now`, in UTC seconds since 1970."""
        return tuple(request for request in self.pending_approvals if request.expires_at > now)

    @property
    def message_labels(self) -> tuple[ev.TextLabel, ...]:
        """The labels of the messages that the client sent, that of the prompt if text is attached to it, and that of
        the room's instructions if they are from outside.
        """
        retrieval = self.retrieval
        labels = retrieval.labels if retrieval is not None else ()
        if retrieval is not None and retrieval.prompt_label is not None:
            labels = (*labels, retrieval.prompt_label)
        return (*labels, _OUTSIDE_INSTRUCTIONS) if self.room.from_outside else labels

    @property
    def has_outside_text(self) -> bool:
        """Whether text from outside is in the conversation or attached to the prompt, or its provider seeks such."""
        checks = (label.source != "unknown_answer" and not label.trusted for label in self.message_labels)
        return self.tainted or self.uses_hosted_tools or any(checks)

    @property
    def uses_hosted_tools(self) -> bool:
        """Whether the provider of the model may search the web, or use other tools of its own, for the answer."""
        passed_on = () if self.room.planning else self.request.client_tools
        kinds = (tool.get("type", "function") for tool in passed_on)
        return "web_search_options" in self.request.options or any(kind not in _CLIENT_TOOL_TYPES for kind in kinds)

    @property
    def has_unknown_answers(self) -> bool:
        """Whether the client sent an assistant message that is not known as an answer of this gateway."""
        return any(label.source == "unknown_answer" for label in self.message_labels)

    @property
    def is_finished(self) -> bool:
        """Whether the log contains a terminal event."""
        return self.status in ENDED_STATUSES

    def get_step(self, step_id: str) -> StepState:
        """The state of a step, an empty one if nothing has happened yet."""
        return self.steps.get(step_id, _NO_STEP)

    def list_attempts(self) -> list[AttemptState]:
        """The attempts of all steps, step by step."""
        return [attempt for step in self.steps.values() for attempt in step.attempts]

    def list_calls(self) -> list[CallState]:
        """The tool calls of all attempts, those of skills and sub-agents too."""
        return [call for attempt in self.list_attempts() for call in attempt.calls]

    def list_succeeded_steps(self) -> tuple[PlanStep, ...]:
        """The steps of the current plan that were judged SUCCESS, in plan order."""
        return tuple(step for step in self.plan_steps if self.get_step(step.id).status == "succeeded")
