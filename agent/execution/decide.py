"""`decide(state)`: what is to be done next with the plan in force. Pure: a table of states is its whole test."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from agent.core.approval import said_of_plan
from agent.core.fold import RunState, StepState
from agent.core.models import Outcome, PlanStep, StepOutcome

Attempt = tuple[str, int]
"""A step's id and the number of the attempt, from 1."""


@dataclass(frozen=True, slots=True)
class Start:
    """Carry out an attempt. `waiting_for` names steps whose judge is still thinking (speculation); `grounds` holds the
    number of the attempt whose output each dependency lends."""

    step: PlanStep
    attempt: int
    feedback: str | None = None
    waiting_for: tuple[str, ...] = ()
    grounds: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judge:
    """Give the verdict on an attempt that has ended."""

    step: PlanStep
    attempt: int


@dataclass(frozen=True, slots=True)
class Discard:
    """Drop a speculative attempt whose ground does not hold."""

    step_id: str
    attempt: int
    reason: str


Command = Start | Judge | Discard


def decide(state: RunState, in_flight: AbstractSet[Attempt] = frozenset()) -> tuple[Command, ...]:
    """The commands that may be carried out now, given the attempts already `in_flight` (running or being judged).

    Discards come first, so that nothing is started on a ground that is about to be taken away. None, with nothing in
    flight, means that the plan in force is over: done, halted, or to be planned again.
    """
    plan = state.plan
    if plan is None or state.cancel is not None:
        return ()
    halted = _holds_back(state)
    free = state.room.budgets.max_parallel - len(in_flight)
    commands: list[Command] = []
    for step in plan.steps:
        command = _next(state, step, in_flight, halted=halted)
        if isinstance(command, Start) and free <= 0:
            continue
        if command is not None:
            commands.append(command)
            free -= not isinstance(command, Discard)
    return tuple(sorted(commands, key=lambda command: not isinstance(command, Discard)))


def confirmed(state: RunState, step: PlanStep, grounds: Mapping[str, int]) -> bool:
    """Whether every dependency was judged SUCCESS in the very attempt that `grounds` names (any, where it names
    none)."""
    return all(
        (ground := state.step(dependency)).status == "succeeded" and _same(ground, grounds)
        for dependency in step.depends_on
    )


def halting_step(state: RunState) -> PlanStep | None:
    """The step that keeps the plan in force from going on: judged REPLAN or ABORT, or of unknown outcome."""
    if state.plan is None:
        return None
    return next((s for s in state.plan.steps if state.step(s.id).status in ("replan", "aborted", "unknown")), None)


def _holds_back(state: RunState) -> bool:
    """Whether nothing new may start. A step that did not serve its purpose holds the others back as long as the planner
    can be asked again; after that, what does not depend on it is still done: the answer is then all there can be."""
    if state.plan is None or halting_step(state) is None:
        return False
    final = any(state.step(step.id).status in ("aborted", "unknown") for step in state.plan.steps)
    return final or wants_replan(state)


def wants_replan(state: RunState) -> bool:
    """Whether the planner is to be asked again, within the budget."""
    if state.plan is None or state.cancel is not None or state.plans[-1].final:
        return False
    if said_of_plan(state):
        return True
    if state.replans >= state.room.budgets.max_replans:
        return False
    statuses = {state.step(step.id).status for step in state.plan.steps}
    if statuses & {"aborted", "unknown"}:
        return False
    return "replan" in statuses or any(not gate.passed for gate in state.gates)


def replan_reason(state: RunState) -> str:
    """Why the plan must change, for the planner and the trace."""
    said = said_of_plan(state)
    if said:
        return f"the user was shown the plan before it was carried out, and said: {said}"
    step = halting_step(state)
    verdict = _verdict(state.step(step.id)) if step else None
    if step is not None and verdict is not None:
        fix = f" Suggested: {verdict.suggested_fix}" if verdict.suggested_fix else ""
        return f"step {step.id} ({step.tool}) did not serve its purpose: {verdict.reason}.{fix}"
    failed = [f"{gate.gate}: {gate.reason}" for gate in state.gates if not gate.passed]
    return "the result failed verification: " + "; ".join(failed)


def given_up(state: RunState) -> tuple[PlanStep, ...]:
    """The steps that did not serve their purpose, where the plans that came after them do nothing new, or are what the
    rules read off the request because no planner could be asked: nobody found another way. What a person had planned
    otherwise is no such thing."""
    lost: list[PlanStep] = []
    for number in range(len(state.plans) - 1, 0, -1):
        before, after = state.plans[:number], state.plans[number]
        known = {step.id for proposed in before for step in proposed.plan.steps}
        found = any(step.id not in known and not step.is_completion for step in after.plan.steps)
        if after.asked_for or (found and after.fallback_reason is None):
            break
        failed = (step for step in before[-1].plan.steps if state.step(step.id).status == "replan")
        lost[:0] = (step for step in failed if not step.is_completion)
    return tuple(lost)


def reason_of(state: RunState, step: PlanStep) -> str:
    """Why a step did not serve its purpose, as the supervisor said."""
    verdict = _verdict(state.step(step.id))
    return verdict.reason if verdict else "it did not finish"


def is_complete(state: RunState) -> bool:
    """Whether every step of the plan in force was judged SUCCESS."""
    return state.plan is not None and all(state.step(s.id).status == "succeeded" for s in state.plan.steps)


def _next(state: RunState, step: PlanStep, in_flight: AbstractSet[Attempt], *, halted: bool) -> Command | None:
    """The one command this step calls for."""
    own = state.step(step.id)
    last = own.last
    # By step, not by attempt: a task that was started has perhaps not yet written its first event.
    busy = any(step_id == step.id for step_id, _ in in_flight)
    grounds = [state.step(dependency) for dependency in step.depends_on]
    if last is not None and last.speculative and last.verdict is None:
        broken = next((g for g in grounds if _is_broken(g, last.grounds)), None)
        if broken is not None:
            return Discard(step.id, last.number, f"step {broken.step_id} was judged {_word(broken, last.grounds)}")
    if busy or own.status in ("succeeded", "replan", "aborted", "unknown"):
        return None
    if own.status == "executed" and last is not None:
        return Judge(step, last.number) if confirmed(state, step, last.grounds) else None
    if halted or (last is not None and last.asked):
        return None
    number, feedback = _attempt(own)
    rests_on = {ground.step_id: ground.last.number for ground in grounds if ground.last is not None}
    if confirmed(state, step, {}):
        return Start(step, number, feedback, grounds=rests_on)
    waiting = _speculative_grounds(state, step, grounds)
    return Start(step, number, feedback, waiting, rests_on) if waiting else None


def _attempt(step: StepState) -> tuple[int, str | None]:
    """The attempt to carry out: the interrupted one again, or the next with the supervisor's feedback."""
    last = step.last
    if last is not None and last.output is None:
        return last.number, last.feedback
    verdict = last.verdict if last else None
    feedback = None
    if verdict is not None and verdict.outcome is Outcome.RETRY:
        feedback = f"{verdict.reason}. {verdict.suggested_fix or ''}".strip()
    return len(step.attempts) + 1, feedback


def _speculative_grounds(state: RunState, step: PlanStep, grounds: list[StepState]) -> tuple[str, ...]:
    """The dependencies a read-only step may run ahead of: executed, with only the judge's word missing."""
    if step.effect != "read" or step.is_completion:
        return ()
    waiting: list[str] = []
    for ground in grounds:
        if ground.status == "succeeded":
            continue
        if ground.status != "executed" or state.plan is None:
            return ()
        deep = any(state.step(below).status != "succeeded" for below in state.plan.step(ground.step_id).depends_on)
        if deep or ground.output is None or ground.output.error_code is not None:
            return ()
        waiting.append(ground.step_id)
    return tuple(waiting)


def _is_broken(ground: StepState, grounds: Mapping[str, int]) -> bool:
    """Whether what an attempt rests on was judged away, or is being done again since."""
    return ground.status in ("retry", "replan", "aborted", "unknown") or not _same(ground, grounds)


def _same(ground: StepState, grounds: Mapping[str, int]) -> bool:
    number = grounds.get(ground.step_id)
    return number is None or (ground.last is not None and ground.last.number == number)


def _verdict(step: StepState) -> StepOutcome | None:
    return step.last.verdict if step.last else None


def _word(step: StepState, grounds: Mapping[str, int]) -> str:
    attempt = step.attempt(grounds.get(step.step_id, 0)) or step.last
    verdict = attempt.verdict if attempt else None
    return verdict.outcome.value if verdict else step.status.upper()
