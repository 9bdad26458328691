"""Calls that may have changed something and whose result never came: they are not repeated before somebody looks."""

from collections.abc import Iterator

from agent.core.models import JsonObject
from agent.core.run_state import AttemptState, CallState, RunState
from agent.tools import ToolSpec

UNKNOWN_OUTCOME = "ERR_TOOL_UNKNOWN_OUTCOME"


def find_unknown_outcome(state: RunState, spec: ToolSpec, args: JsonObject) -> str | None:
    """The reason why this change is not made: the same call of this run may have been executed. None if it may be made.

    It may be made once a later call has read something, which can show that it did not happen, or if a person requested
    the plan.
    """
    if spec.effect != "effect" or (state.plans and state.plans[-1].asked_for):
        return None
    for attempt, call in _iter_calls(state):
        if call.intent.tool != spec.name or call.intent.args != args or not _is_unknown(call):
            continue
        if not has_read_since(state, attempt):
            problem = call.result.error if call.result is not None else None
            return f"not called again, because the same call may have been executed: {problem or spec.name}"
    return None


def may_have_happened(state: RunState, attempt: AttemptState | None) -> bool:
    """Whether a call of the attempt may have changed something, and nothing has been read since."""
    return attempt is not None and any(map(_is_unknown, attempt.calls)) and not has_read_since(state, attempt)


def has_read_since(state: RunState, attempt: AttemptState) -> bool:
    """Whether a call has read something after the attempt: it started when the attempt's calls had ended."""
    ended = attempt.started_at + sum(call.result.duration for call in attempt.calls if call.result is not None)
    return any(
        call.intent.effect == "read" and call.result is not None and call.result.error_code is None
        for other, call in _iter_calls(state)
        if other.started_at >= ended
    )


def _is_unknown(call: CallState) -> bool:
    return call.unknown_outcome is not None or (call.result is not None and call.result.error_code == UNKNOWN_OUTCOME)


def _iter_calls(state: RunState) -> Iterator[tuple[AttemptState, CallState]]:
    for step in state.steps.values():
        for attempt in step.attempts:
            for call in attempt.calls:
                yield attempt, call
