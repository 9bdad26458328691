"""Starts a run from a given plan (`RunCreated.given`): a fork of an earlier run, or a trial of its plan.

The run takes over how the earlier run guarded and understood its request, and the results of finished steps. The log
says of each where it comes from. All of it is appended in one transaction with the plan, so that no crash lets a step
run again whose result was taken over.
"""

from pydantic import JsonValue

from agent.core.errors import NotFoundError
from agent.core.events import (
    EventDraft,
    GivenPlan,
    PlanProposed,
    StepFinished,
    StepJudged,
    StepLabel,
    StepOutput,
    StepStarted,
)
from agent.core.json_texts import write_text
from agent.core.models import Outcome, Plan, PlanStep, StepOutcome
from agent.core.run_reducer import fold
from agent.core.run_state import AttemptState, RunState
from agent.execution.run_catalogue import list_read_claims
from agent.run_context.run import Run

GIVEN_BY_CALLER = "the result was written by the person who forked the run"


async def load_origin(run: Run, given: GivenPlan) -> RunState:
    """The state of the run whose plan is given. Raises `NotFoundError` if it was deleted meanwhile."""
    state = fold(given.from_run, await run.journal.read_events(given.from_run))
    if state.created is None or state.owner != run.state.owner:
        raise NotFoundError(f"the plan of this run is that of the run {given.from_run!r}, which was deleted")
    return state


async def take_over_request(run: Run, given: GivenPlan) -> None:
    """Records how the earlier run guarded and understood the request, and what it recalled."""
    origin = await load_origin(run, given)
    guarded, understood, recalled = origin.input_guard, origin.understanding, origin.retrieval
    if guarded is None or understood is None or recalled is None:
        raise NotFoundError(f"the run {given.from_run!r} ended before it had understood its request")
    if origin.api_key_id != run.state.api_key_id:  # what another caller has confirmed is not confirmed by this one
        recalled = recalled.model_copy(update={"confirmed": ()})
    reason = f"taken over from {given.from_run}: {understood.reason}"
    await run.note(guarded, understood.model_copy(update={"reason": reason, "duration": 0.0}), recalled)


async def build_given_plan(run: Run, given: GivenPlan) -> tuple[PlanProposed, list[EventDraft]]:
    """The given plan, and the events that take over the finished steps."""
    origin = await load_origin(run, given)
    drafts: list[EventDraft] = []
    for step in given.plan.steps:
        if step.id in given.outputs:
            drafts += _build_given_result(run, origin, step, given.outputs[step.id])
        elif step.id in given.taken:
            drafts += _build_taken_result(origin, step, given)
    last = origin.plans[-1] if origin.plans else None
    proposed = PlanProposed(
        plan=given.plan,
        requested="rules",
        effective="rules",
        final=given.final,
        tainted=run.state.tainted or (last is not None and last.tainted),
        tainted_by=last.tainted_by if last is not None else (),
        labels=_list_kept_labels(last, given.plan) if last is not None and not run.state.tainted else (),
        approval_reason=given.approval_reason,
        read_claims=list_read_claims(run, given.plan),
    )
    return proposed, drafts


def _list_kept_labels(before: PlanProposed, plan: Plan) -> tuple[StepLabel, ...]:
    """The labels of the steps that make the same call as in the earlier plan."""
    calls = {step.id: (step.tool, step.args) for step in before.plan.steps}
    same = {step.id for step in plan.steps if calls.get(step.id) == (step.tool, step.args)}
    return tuple(label for label in before.labels if label.step_id in same)


def _build_taken_result(origin: RunState, step: PlanStep, given: GivenPlan) -> list[EventDraft]:
    """The events of a step whose result is taken over. A step without a result is carried out after all."""
    last = origin.get_step(step.id).last
    if last is None or last.output is None:
        return []
    reason = f"taken over from {given.from_run}; it was not done again"
    if step.id in given.outdated:
        reason += ", although its input has changed since"
    return _build_attempt(step, _repeat_start(last), last.output, given.from_run, reason)


def _repeat_start(attempt: AttemptState) -> StepStarted:
    """The start of the attempt, as the earlier run recorded it."""
    return StepStarted(args=dict(attempt.args), tainted=attempt.tainted)


def _build_given_result(run: Run, origin: RunState, step: PlanStep, value: JsonValue) -> list[EventDraft]:
    """The events of a step whose result a person wrote. It stays untrusted if the earlier result was."""
    last = origin.get_step(step.id).last
    tainted = run.state.tainted or bool(last is not None and last.output is not None and last.output.tainted)
    text = write_text(value)
    output = StepOutput(value=value, text=text, tainted=tainted, effective="rules")
    return _build_attempt(step, StepStarted(tainted=tainted), output, origin.run_id, GIVEN_BY_CALLER)


def _build_attempt(
    step: PlanStep, start: StepStarted, output: StepOutput, origin: str, reason: str
) -> list[EventDraft]:
    begin = start.model_copy(update={"taken_from": origin})
    verdict = StepOutcome(outcome=Outcome.SUCCESS, reason=reason)
    bodies = (begin, StepFinished(output=output), StepJudged(verdict=verdict))
    return [EventDraft(body, step.id, 1) for body in bodies]
