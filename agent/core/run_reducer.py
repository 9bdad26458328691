"""`fold(events) -> RunState`: how each event changes the state of a run. Pure: no clock, no randomness, no I/O."""

from collections.abc import Iterable
from typing import Any, TypeVar

from agent.core import events as ev
from agent.core.run_state import AttemptState, CallState, RunState, StepState, SubAgentState

T = TypeVar("T", bound="RunState | StepState | AttemptState | CallState | SubAgentState")


def replace_fields(old: T, **changes: Any) -> T:
    """Returns a copy of `old` with these fields changed. Does what `dataclasses.replace` does in a tenth of the time:
    states are copied for every event. It needs `__dict__`, so the states have no slots.
    """
    new = object.__new__(type(old))
    fields = old.__dict__.copy()
    fields.update(changes)
    object.__setattr__(new, "__dict__", fields)
    return new


def fold(run_id: str, events: Iterable[ev.Event]) -> RunState:
    """Returns the state after `events`, which must be this run's events in order of seq."""
    state = RunState(run_id)
    for event in events:
        state = apply(state, event)
    return state


def apply(state: RunState, event: ev.Event) -> RunState:  # noqa: C901, PLR0912 - one case an event
    """Returns the state after one more event."""
    state = replace_fields(state, seq=event.seq, epoch=event.epoch, updated_at=event.at)
    body = event.body
    match body:
        case ev.RunCreated():
            return replace_fields(state, created=body, created_at=event.at, tainted=body.tainted)
        case ev.RunClaimed():
            return replace_fields(state, status="running")
        case ev.RunSuspended():
            return replace_fields(state, status="queued")
        case ev.RunWaiting():
            return replace_fields(state, status="awaiting_approval")
        case ev.ApprovalRequested():
            return _apply_step(replace_fields(state, approvals=(*state.approvals, body)), event)
        case ev.ApprovalDecided():
            return _apply_step(replace_fields(state, decisions={**state.decisions, body.approval_id: body}), event)
        case ev.CancelRequested():
            return replace_fields(state, cancel_request=body)
        case ev.InputGuarded():
            return replace_fields(state, input_guard=body)
        case ev.RequestUnderstood():
            return replace_fields(state, understanding=body)
        case ev.MemoryRetrieved():
            return replace_fields(state, retrieval=body, tainted=state.tainted or body.tainted)
        case ev.IntentClassified():
            return replace_fields(state, classified=body)
        case ev.PlanProposed():
            return replace_fields(state, plans=(*state.plans, body), gates=(), answer=None, translation=None)
        case ev.InputRequested():
            return replace_fields(state, input_request=body)
        case ev.ClientToolsCalled():
            return replace_fields(state, client_calls=body)
        case ev.GateChecked():
            return replace_fields(state, gates=(*state.gates, body))
        case ev.AnswerStarted():
            return replace_fields(state, answer_start=body)
        case ev.AnswerChecked():
            return replace_fields(state, answer_checks=(*state.answer_checks, body))
        case ev.AnswerTranslated():
            return replace_fields(state, translation=body)
        case ev.AnswerFinished():
            return replace_fields(state, answer=body)
        case ev.RunSucceeded():
            return replace_fields(state, status=body.status, completeness=body.completeness, end_reason=body.reason)
        case ev.RunFailed():
            return replace_fields(state, status="failed", failure=body.failure, end_reason=body.failure.message)
        case ev.RunCancelled():
            return replace_fields(state, status="cancelled", end_reason=body.reason)
        case ev.ModelReturned():
            state = replace_fields(
                state, usage=state.usage + body.usage, model_usage=(*state.model_usage, (body.model, body.usage))
            )
            if body.failed_upstreams:
                state = _apply_fallback(state, body)
            if body.span:
                return _apply_subagent(state, body.span, body)
            return _apply_step(state, event) if body.message is not None else state
        case ev.SubAgentStarted():
            known = state.subagents.get(body.span)
            return replace_fields(state, subagents={**state.subagents, body.span: known or SubAgentState(body)})
        case ev.SubAgentFinished():
            return _apply_subagent(state, body.span, body)
        case ev.PlanRejected() | ev.AnswerDelta() | ev.OutputGuarded():
            return state
        case _:
            return _apply_step(state, event)


def _apply_fallback(state: RunState, body: ev.ModelReturned) -> RunState:
    """Applies a call that was not answered by the model it was meant for."""
    state = replace_fields(state, failed_upstreams=(*state.failed_upstreams, *body.failed_upstreams))
    if body.purpose not in ("completion", "task") or body.error_code is not None or state.answer_start is None:
        return state
    return replace_fields(state, answer_start=state.answer_start.model_copy(update={"model": body.model}))


def _apply_subagent(state: RunState, span: str, body: ev.ModelReturned | ev.SubAgentFinished) -> RunState:
    """Applies an event of a sub-agent. Ignores one that never started."""
    known = state.subagents.get(span)
    if known is None:
        return state
    if isinstance(body, ev.SubAgentFinished):
        changed = replace_fields(known, end=body)
    else:
        turns = (*known.turns, body.message) if body.message is not None else known.turns
        changed = replace_fields(known, usage=known.usage + body.usage, turns=turns)
    return replace_fields(state, subagents={**state.subagents, span: changed})


def _apply_step(state: RunState, event: ev.Event) -> RunState:
    """Applies an event that belongs to an attempt of a step."""
    if event.step_id is None or event.attempt is None:
        return state
    step = state.steps.get(event.step_id) or StepState(event.step_id)
    attempt = next((a for a in step.attempts if a.number == event.attempt), None)
    changed = _apply_attempt(attempt or AttemptState(event.attempt, event.at), event)
    if attempt is None:
        attempts = (*step.attempts, changed)
    else:
        attempts = tuple(changed if a.number == event.attempt else a for a in step.attempts)
    return replace_fields(state, steps={**state.steps, event.step_id: replace_fields(step, attempts=attempts)})


def _apply_attempt(attempt: AttemptState, event: ev.Event) -> AttemptState:  # noqa: C901, PLR0912 - one case an event
    body = event.body
    match body:
        case ev.StepStarted():
            return replace_fields(
                attempt, args=body.args, feedback=body.feedback, tainted=body.tainted, taken_from=body.taken_from
            )
        case ev.StepSpeculative():
            return replace_fields(attempt, is_speculative=True, depends_on_attempts=body.grounds)
        case ev.ToolCalled():
            if attempt.find_call(body.call_id):  # repeated on resume under the same key
                return attempt
            return replace_fields(attempt, calls=(*attempt.calls, CallState(body)))
        case ev.ApprovalRequested():
            return replace_fields(attempt, pending_approvals=attempt.pending_approvals | {body.approval_id})
        case ev.ApprovalDecided():
            return replace_fields(attempt, pending_approvals=attempt.pending_approvals - {body.approval_id})
        case ev.ToolRefused():
            return replace_fields(attempt, refused_calls=attempt.refused_calls | {body.call_id})
        case ev.ToolReturned() if attempt.find_call(body.call_id) is None:
            return replace_fields(attempt, refused_calls=attempt.refused_calls | {body.call_id})
        case ev.ToolReturned():
            return replace_fields(attempt, calls=_replace_call(attempt, body.call_id, returned=body))
        case ev.StepUnknown():
            calls = _replace_call(attempt, body.call_id, unknown=body)
            return replace_fields(attempt, calls=calls, unknown_outcome=body)
        case ev.ModelReturned(message=turn) if turn is not None:
            return replace_fields(attempt, turns=(*attempt.turns, turn))
        case ev.StepFinished():
            return replace_fields(attempt, output=body.output)
        case ev.StepJudged():
            doubt = body.rule if body.verdict.by == "rule" else ""
            return replace_fields(
                attempt,
                verdict=body.verdict,
                rule_doubt=doubt,
                unexplained_figures=body.figures,
                misfit=body.misfit,
                judge_error=body.judge_error,
            )
        case ev.StepDiscarded():
            return replace_fields(attempt, is_discarded=True)
        case _:
            return attempt


def _replace_call(
    attempt: AttemptState,
    call_id: str,
    *,
    returned: ev.ToolReturned | None = None,
    unknown: ev.StepUnknown | None = None,
) -> tuple[CallState, ...]:
    return tuple(
        replace_fields(call, result=returned or call.result, unknown_outcome=unknown or call.unknown_outcome)
        if call.intent.call_id == call_id
        else call
        for call in attempt.calls
    )
