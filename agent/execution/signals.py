"""Applies people's decisions to a run, and validates plans that a person edited."""

import time
from collections.abc import Collection

from agent.core.errors import BadRequestError, PlanInvalidError
from agent.core.models import JsonObject, Plan
from agent.core.models.plan import check_written_steps
from agent.execution.approvals import make_tool_fingerprinter
from agent.execution.run_catalogue import build_catalogue
from agent.planning.normalise import normalise_plan
from agent.planning.validate import finish_plan, validate_plan
from agent.policy.approval import build_decision_events, build_expiry_events, list_addressed_requests
from agent.run_context.run import Run
from agent.storage.journal import Signal


async def apply_signal(run: Run, signal: Signal) -> bool:
    """Records a person's decision as events. Returns whether it ends the run.

    Ignores a decision on a question that has an answer or was replaced.
    """
    pin = make_tool_fingerprinter(run)
    for request in list_addressed_requests(run.state, signal):
        await run.emit(*build_decision_events(run.state, request, signal, pin, lambda plan: revise_plan(run, plan)))
    return run.state.cancel_request is not None


async def expire_approvals(run: Run) -> None:
    """Ends a run whose question has expired."""
    if drafts := build_expiry_events(run.state, time.time()):
        await run.emit(*drafts)


def revise_plan(run: Run, data: JsonObject) -> Plan:
    """A plan that a person edited, after validation. Completed steps stay unchanged.

    Raises `BadRequestError` with every problem.
    """
    previous = run.state.plan
    steps = data.get("steps")
    if previous is None or not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise BadRequestError('plan: it must be an object with a list "steps"', param="plan")
    check_written_steps(steps)
    succeeded_steps = run.state.list_succeeded_steps()
    done = {step.id for step in succeeded_steps}
    open_steps = [step for step in steps if isinstance(step, dict) and step.get("id") not in done]
    started_ids = [name for name, step in run.state.steps.items() if step.attempts and name not in done]
    room = run.room
    plan = validate_open_steps(run, {**data, "steps": list(open_steps)}, known=done, started_ids=started_ids)
    needs = bool(succeeded_steps) or bool(room.persona) or room.citations
    plan = finish_plan(plan, needs_completion=needs, has_model=run.has_model, used_ids={*done, *started_ids})
    return plan.model_copy(
        update={
            "goal": plan.goal or previous.goal,
            "steps": (*succeeded_steps, *plan.steps),
            "version": previous.version + 1,
            "origin": "request",
            "origin_reason": "edited by the person who approved it",
        }
    )


def validate_open_steps(
    run: Run, data: JsonObject, *, known: Collection[str], started_ids: Collection[str] = ()
) -> Plan:
    """The plan of the steps that a person wrote. They may refer to the steps in `known`, which have results.

    Raises `BadRequestError` with every problem: the caller wrote the plan. The ids in `started_ids` are taken.
    """
    catalogue = build_catalogue(run)
    try:
        raw = normalise_plan(data, catalogue)
        again = [step.id for step in raw.steps if step.id in started_ids]
        if again:
            raise PlanInvalidError([f"step {name} has been tried already; give it another id" for name in again])
        return validate_plan(raw, catalogue, max_steps=run.room.budgets.max_steps, known_ids=known)
    except PlanInvalidError as error:
        message = "the edited plan cannot be carried out: " + "; ".join(error.problems)
        raise BadRequestError(message, param="plan", problems=list(error.problems)) from error
