"""`decide(state)`: the next commands of the current plan. Pure, so that a table of states can test it."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from agent.core.models import Outcome, Plan, PlanStep
from agent.core.plan_outcome import (
    collect_step_statuses,
    find_halting_step,
    get_last_verdict,
    is_left_undone,
    was_refused,
)
from agent.core.run_state import AttemptState, RunState, StepState, StepStatus
from agent.planning.open_parts import list_open_parts
from agent.policy.approval import get_plan_feedback

Attempt = tuple[str, int]
"""A step's id and the number of the attempt, from 1."""


@dataclass(frozen=True, slots=True)
class Start:
    """Starts an attempt of a step.

    `waiting_for` names dependencies without a verdict (speculation). `depends_on_attempts` maps each dependency to the
    number of the attempt whose output this attempt uses.
    """

    step: PlanStep
    attempt: int
    feedback: str | None = None
    waiting_for: tuple[str, ...] = ()
    depends_on_attempts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges an attempt that has ended."""

    step: PlanStep
    attempt: int


@dataclass(frozen=True, slots=True)
class Discard:
    """Discards a speculative attempt because a dependency did not succeed."""

    step_id: str
    attempt: int
    reason: str


Command = Start | Judge | Discard


def decide(state: RunState, in_flight: AbstractSet[Attempt] = frozenset()) -> tuple[Command, ...]:
    """The commands that may run now. `in_flight` are the attempts that are running or being judged.

    Discards come first, so that no step starts on an output that will be dropped. If there are no commands and nothing
    is in flight, the plan is over: done, halted, or due for a replan.
    """
    plan = state.plan
    statuses = collect_step_statuses(state)
    if plan is None or state.cancel_request is not None or statuses <= {"succeeded"}:
        return ()
    halted = _is_halted(state, statuses)
    free = state.room.budgets.max_parallel - len(in_flight)
    clients = state.client_tool_names
    # Checks the steps, not the attempts: a started task may not have emitted its first event yet.
    busy = {step_id for step_id, _ in in_flight}
    discards: list[Command] = []
    others: list[Command] = []
    for step in plan.steps:
        command = _get_next_command(state, step, busy, halted=halted)
        if isinstance(command, Discard):
            discards.append(command)
        elif command is not None and not (isinstance(command, Start) and (free <= 0 or step.tool in clients)):
            others.append(command)
            free -= 1
    return (*discards, *others)


def find_client_steps(state: RunState) -> tuple[Start, ...]:
    """The attempts that are calls of the client's own tools, of those that may start now."""
    clients = state.client_tool_names
    if not clients or state.plan is None or state.cancel_request is not None:
        return ()
    halted = _is_halted(state, collect_step_statuses(state))
    steps = (step for step in state.plan.steps if step.tool in clients)
    next_commands = (_get_next_command(state, step, frozenset(), halted=halted) for step in steps)
    return tuple(command for command in next_commands if isinstance(command, Start) and not command.waiting_for)


def have_dependencies_succeeded(state: RunState, step: PlanStep, attempts: Mapping[str, int]) -> bool:
    """Whether every dependency succeeded, in the attempt that `attempts` gives for it.

    For a dependency without an entry, any attempt counts.
    """
    for dependency in step.depends_on:
        own = state.get_step(dependency)
        if own.status != "succeeded" or not _is_same_attempt(own, attempts):
            return False
    return True


def _is_halted(state: RunState, statuses: AbstractSet[StepStatus]) -> bool:
    """Whether no step may start. `statuses` are those of the plan's steps.

    A failed step halts the others while a replan is possible. After that, independent steps still run, because a
    partial answer uses their results.
    """
    return bool(statuses & {"aborted", "unknown"}) or ("replan" in statuses and needs_replan(state))


def needs_replan(state: RunState) -> bool:
    """Whether the planner must make a new plan, within the budget."""
    if state.plan is None or state.cancel_request is not None:
        return False
    if state.plans[-1].final and not find_doubt(state, state.plan):
        return False
    if get_plan_feedback(state):
        return True
    statuses = collect_step_statuses(state)
    if statuses & {"aborted", "unknown"}:
        return False
    if "replan" not in statuses and all(gate.passed for gate in state.gates):
        return False
    if is_in_round(state):
        return not _is_settled_by_refusal(state)
    return state.replan_count < state.room.budgets.max_replans


def _is_settled_by_refusal(state: RunState) -> bool:
    """Whether a round failed only because a person did not allow its calls, and nothing else is left to do: a small
    model would try them again in another way."""
    failed = [step for step in state.plan_steps if state.get_step(step.id).status == "replan"]
    return bool(failed) and all(was_refused(state, step) for step in failed) and not list_open_parts(state)


def find_doubt(state: RunState, plan: Plan) -> str:
    """What the answer of this plan holds without evidence, if the planner is to call for it; else ""."""
    attempts = [state.get_step(step.id).last for step in plan.steps if step.is_completion]
    return next((one.rule_doubt for one in attempts if one is not None and _is_sent_back(one)), "")


def _is_sent_back(attempt: AttemptState) -> bool:
    return bool(attempt.rule_doubt) and attempt.verdict is not None and attempt.verdict.outcome is Outcome.REPLAN


def needs_round(state: RunState) -> bool:
    """Whether the planner must see the results of a round and plan on."""
    last = state.plan.steps[-1] if state.plan is not None and state.plan.steps else None
    if last is None or not last.is_plan_more or state.cancel_request is not None:
        return False
    return state.get_step(last.id).status == "succeeded"


def is_in_round(state: RunState) -> bool:
    """Whether the current plan is a round with another one to follow, within the room's budget of rounds."""
    return any(step.is_plan_more for step in state.plan_steps) and state.round_count < state.room.budgets.max_rounds


def find_replan_reason(state: RunState) -> str:
    """The reason why the plan must change, for the planner and the trace."""
    feedback = get_plan_feedback(state)
    if feedback:
        return f"the user was shown the plan before it was carried out, and said: {feedback}"
    step = find_halting_step(state)
    verdict = get_last_verdict(state.get_step(step.id)) if step else None
    if step is not None and verdict is not None:
        fix = f" Suggested: {verdict.suggested_fix}" if verdict.suggested_fix else ""
        return f"step {step.id} ({step.tool}) did not serve its purpose: {verdict.reason}.{fix}"
    failed = [f"{gate.gate}: {gate.reason}" for gate in state.gates if not gate.passed]
    return "the result failed verification: " + "; ".join(failed)


def _get_next_command(state: RunState, step: PlanStep, busy: AbstractSet[str], *, halted: bool) -> Command | None:
    """The one command this step needs now, or None. `busy` are the steps that are running or being judged."""
    own = state.get_step(step.id)
    last = own.last
    if last is not None and last.is_speculative and last.verdict is None:
        used = map(state.get_step, step.depends_on)
        broken = next((one for one in used if _is_invalidated(one, last.depends_on_attempts)), None)
        if broken is not None:
            return Discard(
                step.id,
                last.number,
                f"step {broken.step_id} was judged {_get_outcome_name(broken, last.depends_on_attempts)}",
            )
    if own.status in ("succeeded", "replan", "aborted", "unknown"):
        return None
    if step.id in busy:
        return None
    if own.status == "executed" and last is not None:
        return Judge(step, last.number) if have_dependencies_succeeded(state, step, last.depends_on_attempts) else None
    if halted or (last is not None and last.pending_approvals):
        return None
    if step.is_work and any(is_left_undone(state, dependency) for dependency in step.depends_on):
        return None  # it needs what was not done; a completion still writes what is known
    number, feedback = _get_next_attempt(own)
    dependencies = [state.get_step(dependency) for dependency in step.depends_on]
    attempts = {one.step_id: one.last.number for one in dependencies if one.last is not None}
    if have_dependencies_succeeded(state, step, {}):
        return Start(step, number, feedback, depends_on_attempts=attempts)
    waiting = _list_unjudged_dependencies(state, step, dependencies)
    return Start(step, number, feedback, waiting, attempts) if waiting else None


def _get_next_attempt(step: StepState) -> tuple[int, str | None]:
    """The number of the attempt to start and the supervisor's feedback. An interrupted attempt resumes."""
    last = step.last
    if last is not None and last.output is None:
        return last.number, last.feedback
    verdict = last.verdict if last else None
    feedback = None
    if verdict is not None and verdict.outcome is Outcome.RETRY:
        feedback = f"{verdict.reason}. {verdict.suggested_fix or ''}".strip()
    return len(step.attempts) + 1, feedback


def _list_unjudged_dependencies(state: RunState, step: PlanStep, dependencies: list[StepState]) -> tuple[str, ...]:
    """The dependencies without a verdict that a read-only step may start before."""
    if step.effect != "read" or not step.is_work:
        return ()
    waiting: list[str] = []
    for dependency in dependencies:
        if dependency.status == "succeeded":
            continue
        if dependency.status != "executed" or state.plan is None:
            return ()
        deep = any(
            state.get_step(below).status != "succeeded" for below in state.plan.get_step(dependency.step_id).depends_on
        )
        if deep or dependency.output is None or dependency.output.error_code is not None:
            return ()
        waiting.append(dependency.step_id)
    return tuple(waiting)


def _is_invalidated(dependency: StepState, attempts: Mapping[str, int]) -> bool:
    """Whether the output that an attempt uses failed its verdict, or its dependency runs again."""
    return dependency.status in ("retry", "replan", "aborted", "unknown") or not _is_same_attempt(dependency, attempts)


def _is_same_attempt(dependency: StepState, attempts: Mapping[str, int]) -> bool:
    number = attempts.get(dependency.step_id)
    return number is None or (dependency.last is not None and dependency.last.number == number)


def _get_outcome_name(step: StepState, attempts: Mapping[str, int]) -> str:
    attempt = step.find_attempt(attempts.get(step.step_id, 0)) or step.last
    verdict = attempt.verdict if attempt else None
    return verdict.outcome.value if verdict else step.status.upper()
