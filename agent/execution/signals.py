"""Applies people's decisions to a run, and validates plans that a person edited."""

import time
from collections.abc import Collection
from typing import Literal

from agent.core.errors import BadRequestError, PlanInvalidError
from agent.core.events import ApprovalDecided, ApprovalRequested, CancelRequested, EventDraft, PlanProposed
from agent.core.models import JsonObject, Plan
from agent.execution.approvals import make_tool_fingerprinter
from agent.execution.catalogue import build_catalogue
from agent.planning.normalise import normalise_plan
from agent.planning.validate import finish_plan, validate_plan
from agent.policy.approval import compute_digest
from agent.run_context.run import Run
from agent.storage.journal import Signal

Decision = Literal["approved", "rejected", "answered", "expired"]


async def apply_signal(run: Run, signal: Signal) -> bool:
    """Records a person's decision as events. Returns whether it ends the run.

    Ignores a decision on a question that has an answer or was replaced.
    """
    wanted = signal.payload.get("approvals")
    ids = {str(name) for name in wanted} if isinstance(wanted, list) else set()
    by, reason = str(signal.payload.get("by") or "local"), str(signal.payload.get("reason") or "")
    for asked in run.state.pending_approvals:
        if asked.approval_id not in ids:
            continue
        if signal.kind != "approve":
            rejected = signal.kind == "reject"
            decided = _build_decision_event(asked, "rejected" if rejected else "answered", by, reason)
            ending = (
                [CancelRequested(reason=_get_rejection_reason(reason))] if rejected and asked.call_id is None else []
            )
            await run.emit(_place_decision(run, asked, decided), *ending)
        elif compute_digest(asked.items, asked.plan_version, make_tool_fingerprinter(run)) != asked.digest:
            changed = _build_decision_event(asked, "expired", by, "a tool has changed since it was shown")
            await run.emit(_place_decision(run, asked, changed))
        elif isinstance(edited := signal.payload.get("plan"), dict) and asked.call_id is None:
            await _approve_edited(run, asked, edited, by)
        else:
            await run.emit(_place_decision(run, asked, _build_decision_event(asked, "approved", by, reason)))
    return run.state.cancel_request is not None


async def expire_approvals(run: Run) -> None:
    """Ends a run whose question has expired."""
    now = time.time()
    late = [asked for asked in run.state.pending_approvals if asked.expires_at <= now]
    if not late:
        return
    drafts = [
        _place_decision(run, asked, _build_decision_event(asked, "expired", "nobody", "nobody decided in time"))
        for asked in late
    ]
    await run.emit(*drafts, CancelRequested(reason="nobody decided on the approval in time"))


def revise_plan(run: Run, data: JsonObject) -> Plan:
    """A plan that a person edited, after validation. Completed steps stay unchanged.

    Raises `BadRequestError` with every problem.
    """
    previous = run.state.plan
    steps = data.get("steps")
    if previous is None or not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise BadRequestError('plan: it must be an object with a list "steps"', param="plan")
    kept = run.state.list_succeeded_steps()
    done = {step.id for step in kept}
    open_steps = [step for step in steps if isinstance(step, dict) and step.get("id") not in done]
    tried = [name for name, step in run.state.steps.items() if step.attempts and name not in done]
    room = run.room
    plan = validate_open_steps(run, {**data, "steps": list(open_steps)}, known=done, tried=tried)
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


def validate_open_steps(run: Run, data: JsonObject, *, known: Collection[str], tried: Collection[str] = ()) -> Plan:
    """The plan of the steps that a person wrote. They may refer to the steps in `known`, which have results.

    Raises `BadRequestError` with every problem: the caller wrote the plan. The ids in `tried` are taken.
    """
    catalogue = build_catalogue(run)
    try:
        raw = normalise_plan(data, catalogue)
        again = [step.id for step in raw.steps if step.id in tried]
        if again:
            raise PlanInvalidError([f"step {name} has been tried already; give it another id" for name in again])
        return validate_plan(raw, catalogue, max_steps=run.room.budgets.max_steps, known_ids=known)
    except PlanInvalidError as error:
        message = "the edited plan cannot be carried out: " + "; ".join(error.problems)
        raise BadRequestError(message, param="plan", problems=list(error.problems)) from error


async def _approve_edited(run: Run, asked: ApprovalRequested, edited: JsonObject, by: str) -> None:
    """Replaces the plan that the person saw by the edited one, and approves it."""
    plan = revise_plan(run, edited)
    proposed = PlanProposed(
        plan=plan,
        requested="rules",
        effective="rules",
        replan_reason=f"{by} edited the plan",
        asked_for=True,
    )
    decided = _build_decision_event(asked, "approved", by, "edited").model_copy(
        update={"plan_version": plan.version, "edited": True}
    )
    await run.emit(proposed, decided)


def _build_decision_event(asked: ApprovalRequested, decision: Decision, by: str, reason: str) -> ApprovalDecided:
    return ApprovalDecided(
        approval_id=asked.approval_id, decision=decision, by=by, reason=reason, plan_version=asked.plan_version
    )


def _place_decision(run: Run, asked: ApprovalRequested, decided: ApprovalDecided) -> EventDraft:
    """The decision as an event; if it is about a call, as an event of the attempt that waits for it."""
    if asked.call_id is None:
        return EventDraft(decided)
    step_id = asked.items[0].step_id
    attempt = next(
        (a.number for a in run.state.get_step(step_id).attempts if asked.approval_id in a.pending_approvals), None
    )
    return EventDraft(decided, step_id, attempt)


def _get_rejection_reason(reason: str) -> str:
    return f"the plan was rejected: {reason}" if reason else "the plan was rejected"
