"""A person's word on what they were asked, as the engine obeys it; and plans as they have edited them."""

import time
from typing import Literal

from agent.core.approval import digest
from agent.core.errors import BadRequestError, PlanInvalidError
from agent.core.events import ApprovalDecided, ApprovalRequested, CancelRequested, Draft, PlanProposed
from agent.core.journal import Signal
from agent.core.models import JsonObject, Plan
from agent.execution.approvals import pin_of
from agent.execution.catalogue import catalogue_of
from agent.execution.run import Run
from agent.planning.normalise import normalise
from agent.planning.validate import finish_plan, validate

Decision = Literal["approved", "rejected", "answered", "expired"]


async def obey(run: Run, signal: Signal) -> bool:
    """Turn a person's word into events; whether it ends the run. One about something that is decided already, or was
    replaced, is void."""
    wanted = signal.payload.get("approvals")
    ids = {str(name) for name in wanted} if isinstance(wanted, list) else set()
    by, reason = str(signal.payload.get("by") or "local"), str(signal.payload.get("reason") or "")
    for asked in run.state.waiting:
        if asked.approval_id not in ids:
            continue
        if signal.kind != "approve":
            rejected = signal.kind == "reject"
            decided = _decided(asked, "rejected" if rejected else "answered", by, reason)
            ending = [CancelRequested(reason=_rejection(reason))] if rejected and asked.call_id is None else []
            await run.emit(_placed(run, asked, decided), *ending)
        elif digest(asked.items, asked.plan_version, pin_of(run)) != asked.digest:
            changed = _decided(asked, "expired", by, "a tool has changed since it was shown")
            await run.emit(_placed(run, asked, changed))
        elif isinstance(edited := signal.payload.get("plan"), dict) and asked.call_id is None:
            await _approve_edited(run, asked, edited, by)
        else:
            await run.emit(_placed(run, asked, _decided(asked, "approved", by, reason)))
    return run.state.cancel is not None


async def expire(run: Run) -> None:
    """End a run whose question nobody has answered in time."""
    now = time.time()
    late = [asked for asked in run.state.waiting if asked.expires_at <= now]
    if not late:
        return
    drafts = [_placed(run, asked, _decided(asked, "expired", "nobody", "nobody decided in time")) for asked in late]
    await run.emit(*drafts, CancelRequested(reason="nobody decided on the approval in time"))


def revised(run: Run, data: JsonObject) -> Plan:
    """A plan as a person has edited it, checked like any other; the steps that are done stay as they are.

    Raises `BadRequestError` with every problem."""
    previous = run.state.plan
    steps = data.get("steps")
    if previous is None or not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise BadRequestError('plan: it must be an object with a list "steps"', param="plan")
    kept = run.state.succeeded_steps()
    done = {step.id for step in kept}
    open_steps = [step for step in steps if isinstance(step, dict) and step.get("id") not in done]
    catalogue = catalogue_of(run)
    room = run.room
    try:
        raw = normalise({**data, "steps": list(open_steps)}, catalogue)
        tried = [step.id for step in raw.steps if run.state.step(step.id).attempts]
        if tried:
            raise PlanInvalidError([f"step {name} has been tried already; give it another id" for name in tried])
        plan = validate(raw, catalogue, max_steps=room.budgets.max_steps, known_ids=done)
    except PlanInvalidError as error:  # a person's fault, not a model's
        message = "the edited plan cannot be carried out: " + "; ".join(error.problems)
        raise BadRequestError(message, param="plan", problems=list(error.problems)) from error
    needs = bool(kept) or bool(room.persona) or room.citations
    plan = finish_plan(plan, needs_completion=needs, has_model=run.has_model, used_ids=done)
    return plan.model_copy(
        update={
            "goal": plan.goal or previous.goal,
            "steps": (*kept, *plan.steps),
            "version": previous.version + 1,
            "origin": "request",
            "origin_reason": "edited by the person who approved it",
        }
    )


async def _approve_edited(run: Run, asked: ApprovalRequested, edited: JsonObject, by: str) -> None:
    """The edited plan takes the place of the one that was shown, and is approved with it."""
    plan = revised(run, edited)
    proposed = PlanProposed(
        plan=plan,
        requested="rules",
        effective="rules",
        replan_reason=f"{by} edited the plan",
        asked_for=True,
    )
    decided = _decided(asked, "approved", by, "edited").model_copy(
        update={"plan_version": plan.version, "edited": True}
    )
    await run.emit(proposed, decided)


def _decided(asked: ApprovalRequested, decision: Decision, by: str, reason: str) -> ApprovalDecided:
    return ApprovalDecided(
        approval_id=asked.approval_id, decision=decision, by=by, reason=reason, plan_version=asked.plan_version
    )


def _placed(run: Run, asked: ApprovalRequested, decided: ApprovalDecided) -> Draft:
    """A decision about a call belongs to the attempt that waits for it."""
    if asked.call_id is None:
        return Draft(decided)
    step_id = asked.items[0].step_id
    attempt = next((a.number for a in run.state.step(step_id).attempts if asked.approval_id in a.asked), None)
    return Draft(decided, step_id, attempt)


def _rejection(reason: str) -> str:
    return f"the plan was rejected: {reason}" if reason else "the plan was rejected"
