"""Recognises a call that failed for good earlier in the run: it is not made again under another plan. Pure."""

from collections.abc import Iterator

from agent.core.models import JsonObject, Outcome, PlanStep
from agent.core.run_state import AttemptState, RunState
from agent.run_context.outputs import SHOWN_ARG_CHARS, shorten_args

LASTING_ERRORS = frozenset(
    {"ERR_TOOL_INPUT", "ERR_TOOL_UNKNOWN", "ERR_TOOL_DENIED", "ERR_SKILL_UNKNOWN", "ERR_REFERENCE"}
)
"""Codes of failures in which the same call with the same arguments ends again."""


def find_lasting_failure(state: RunState, step: PlanStep, args: JsonObject) -> str | None:
    """Returns why this very call failed for good before, or None where it may be made.

    It may be made again once something was changed since, and where a person asked for the plan."""
    if state.plans[-1].asked_for or any(isinstance(v, str) and len(v) > SHOWN_ARG_CHARS for v in args.values()):
        return None  # of longer texts the log keeps only the beginning: they cannot be told apart
    shown = shorten_args(args)
    for attempt in _earlier_attempts(state, step):
        reason = _lasting_failure(step, attempt)
        if reason is not None and dict(attempt.args) == shown and not _has_effect_since(state, attempt):
            return reason
    return None


def _earlier_attempts(state: RunState, step: PlanStep) -> Iterator[AttemptState]:
    """Yields the last attempt of every other step that calls the same tool, of all plans."""
    others = {other.id for proposed in state.plans for other in proposed.plan.steps if other.tool == step.tool}
    for step_id in others - {step.id}:
        last = state.get_step(step_id).last
        if last is not None:
            yield last


def _lasting_failure(step: PlanStep, attempt: AttemptState) -> str | None:
    """Returns the reason of a failure that a repetition would not change."""
    output, verdict = attempt.output, attempt.verdict
    if output is None or verdict is None or verdict.outcome is Outcome.SUCCESS:
        return None
    if output.error_code in LASTING_ERRORS:
        return output.error or verdict.reason
    # What is read a second time is the same, and was not of use.
    was_refused = step.effect == "read" and output.error_code is None and verdict.by == "model"
    return verdict.reason if was_refused else None


def _has_effect_since(state: RunState, attempt: AttemptState) -> bool:
    """Returns whether a tool that changes something was called after the attempt began."""
    return any(
        call.intent.effect != "read"
        for step in state.steps.values()
        for other in step.attempts
        if other.started_at >= attempt.started_at and other is not attempt
        for call in other.calls
    )
