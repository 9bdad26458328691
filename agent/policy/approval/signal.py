"""A decision on its way to the run that waits for it: the stored signal, and the events that it becomes. Pure."""

from collections.abc import Callable, Sequence
from typing import Literal

from agent.core.events import ApprovalDecided, ApprovalRequested, CancelRequested, EventDraft, PlanProposed
from agent.core.models import JsonObject, Plan
from agent.core.run_state import RunState
from agent.policy.approval.digest import ToolFingerprint, compute_digest
from agent.storage.journal import Signal

Outcome = Literal["approved", "rejected", "answered", "expired"]


def build_signal_payload(
    approval_ids: Sequence[str], *, by: str, reason: str, plan: JsonObject | None
) -> dict[str, object]:
    """The payload of a signal. `plan` is the plan as the person edited it. The journal reads `approvals` too: it lets
    nobody decide twice.
    """
    return {"approvals": list(approval_ids), "by": by, "reason": reason, "plan": plan}


def list_addressed_requests(state: RunState, signal: Signal) -> list[ApprovalRequested]:
    """The open requests that a signal names. Those that have an answer or were replaced are not among them."""
    approvals = signal.payload.get("approvals")
    ids = {str(name) for name in approvals} if isinstance(approvals, list) else set()
    return [request for request in state.pending_approvals if request.approval_id in ids]


def build_decision_events(
    state: RunState,
    request: ApprovalRequested,
    signal: Signal,
    pin: ToolFingerprint,
    revise: Callable[[JsonObject], Plan],
) -> list[EventDraft]:
    """The events that record a signal's decision on one request.

    An approval of a tool that has changed since it was shown expires the request. `revise` validates a plan that the
    person edited, which replaces the one that was shown. A rejected plan ends the run; a rejected call does not.
    """
    by, reason = str(signal.payload.get("by") or "local"), str(signal.payload.get("reason") or "")
    if signal.kind != "approve":
        return _build_refusal(state, request, by, reason, is_rejection=signal.kind == "reject")
    if compute_digest(request.items, request.plan_version, pin) != request.digest:
        expired = _build_event(request, "expired", by, "a tool has changed since it was shown")
        return [_place_event(state, request, expired)]
    edited = signal.payload.get("plan")
    if isinstance(edited, dict) and request.call_id is None:
        return _build_edit(request, revise(edited), by)
    return [_place_event(state, request, _build_event(request, "approved", by, reason))]


def build_expiry_events(state: RunState, now: float) -> list[EventDraft]:
    """The events that end a run with a request that nobody has decided on in time; none if no request is that old."""
    late = [request for request in state.pending_approvals if request.expires_at <= now]
    if not late:
        return []
    drafts = [
        _place_event(state, request, _build_event(request, "expired", "nobody", "nobody decided in time"))
        for request in late
    ]
    return [*drafts, EventDraft(CancelRequested(reason="nobody decided on the approval in time"))]


def _build_refusal(
    state: RunState, request: ApprovalRequested, by: str, reason: str, *, is_rejection: bool
) -> list[EventDraft]:
    outcome: Outcome = "rejected" if is_rejection else "answered"
    drafts = [_place_event(state, request, _build_event(request, outcome, by, reason))]
    if is_rejection and request.call_id is None:
        why = f"the plan was rejected: {reason}" if reason else "the plan was rejected"
        drafts.append(EventDraft(CancelRequested(reason=why)))
    return drafts


def _build_edit(request: ApprovalRequested, plan: Plan, by: str) -> list[EventDraft]:
    proposed = PlanProposed(
        plan=plan,
        requested="rules",
        effective="rules",
        replan_reason=f"{by} edited the plan",
        asked_for=True,
    )
    decided = _build_event(request, "approved", by, "edited").model_copy(
        update={"plan_version": plan.version, "edited": True}
    )
    return [EventDraft(proposed), EventDraft(decided)]


def _build_event(request: ApprovalRequested, outcome: Outcome, by: str, reason: str) -> ApprovalDecided:
    return ApprovalDecided(
        approval_id=request.approval_id, decision=outcome, by=by, reason=reason, plan_version=request.plan_version
    )


def _place_event(state: RunState, request: ApprovalRequested, decided: ApprovalDecided) -> EventDraft:
    """The decision as an event; if it is about a call, as an event of the attempt that waits for it."""
    if request.call_id is None:
        return EventDraft(decided)
    step_id = request.items[0].step_id
    attempts = state.get_step(step_id).attempts
    number = next((one.number for one in attempts if request.approval_id in one.pending_approvals), None)
    return EventDraft(decided, step_id, number)
