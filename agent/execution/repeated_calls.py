"""Calls that a run does not repeat: those that failed permanently, changes that may have been made, and reading the
same thing for several steps."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from agent.core.events import ToolReturned
from agent.core.models import JsonObject, Outcome, Plan, PlanStep
from agent.core.run_state import AttemptState, CallState, RunState
from agent.run_context.calls import CallSite, build_key
from agent.run_context.outputs import SHOWN_ARG_CHARS, shorten_args
from agent.run_context.run import Run
from agent.tools import ToolSpec

LASTING_ERRORS = frozenset(
    {"ERR_TOOL_INPUT", "ERR_TOOL_UNKNOWN", "ERR_TOOL_DENIED", "ERR_SKILL_UNKNOWN", "ERR_REFERENCE"}
)
"""Error codes of failures that the same call with the same arguments repeats."""


UNKNOWN_OUTCOME = "ERR_TOOL_UNKNOWN_OUTCOME"
"""The code of calls that may have changed something and whose result never came."""

REPEATED = "not called again, because the same call failed before: "
"""Precedes the reason of a call that is not made."""


def is_only_repeating_failures(state: RunState, plan: Plan) -> bool:
    """Whether all that a new plan adds are calls that failed permanently before."""
    known_step_ids = {step.id for proposed in state.plans for step in proposed.plan.steps}
    added = [step for step in plan.steps if step.id not in known_step_ids and step.is_work]
    return bool(added) and all(
        step.action != "skill" and find_lasting_failure(state, step, dict(step.args)) is not None for step in added
    )


def find_lasting_failure(state: RunState, step: PlanStep, args: JsonObject) -> str | None:
    """The reason why the same call failed permanently before, or None if it may run.

    It may run again after a side effect of another call, or if a person requested the plan."""
    if state.plans[-1].asked_for:
        return None
    for attempt in _iter_earlier_attempts(state, step):
        reason = _get_lasting_failure(step, attempt)
        if reason is not None and _had_args(attempt, args) and not _has_effect_since(state, attempt):
            return reason
    return None


def _had_args(attempt: AttemptState, args: JsonObject) -> bool:
    """Whether an attempt had these arguments. The log keeps only the beginning of longer texts, so they cannot
    be compared."""
    if any(isinstance(value, str) and len(value) > SHOWN_ARG_CHARS for value in args.values()):
        return False
    return dict(attempt.args) == shorten_args(args)


def _iter_earlier_attempts(state: RunState, step: PlanStep) -> Iterator[AttemptState]:
    """Yields the last attempt of every other step that calls the same tool, of all plans."""
    others = {other.id for proposed in state.plans for other in proposed.plan.steps if other.tool == step.tool}
    for step_id in others - {step.id}:
        last = state.get_step(step_id).last
        if last is not None:
            yield last


def _get_lasting_failure(step: PlanStep, attempt: AttemptState) -> str | None:
    """The reason of a failure that the same call would repeat."""
    output, verdict = attempt.output, attempt.verdict
    if output is None or verdict is None or verdict.outcome is Outcome.SUCCESS:
        return None
    if output.error_code in LASTING_ERRORS:
        return (output.error or verdict.reason).removeprefix(REPEATED)
    # Reading again returns the same content, which the judge rejected.
    was_refused = step.effect == "read" and output.error_code is None and verdict.by == "model"
    return verdict.reason if was_refused else None


def _has_effect_since(state: RunState, attempt: AttemptState) -> bool:
    """Whether a tool with side effects was called after the attempt started."""
    return any(
        call.intent.effect != "read"
        for step in state.steps.values()
        for other in step.attempts
        if other.started_at >= attempt.started_at and other is not attempt
        for call in other.calls
    )


async def call_once(
    run: Run, spec: ToolSpec, args: JsonObject, site: CallSite, execute: Callable[[], Awaitable[ToolReturned]]
) -> ToolReturned:
    """The result of `execute()`, or that of the same read-only call of another step (`ToolReturned.same_as`).

    After a call that may have changed something, everything is read again."""
    if spec.effect != "read":
        run.read_calls.clear()
        try:
            return await execute()
        finally:
            run.read_calls.clear()  # what was read meanwhile may be from before the change
    if spec.uses_subagents:
        return await execute()
    key = build_key(spec.name, args, site.span)
    same = run.read_calls.find(run.state, key, site)
    # Shielded, because other steps wait for the result too.
    shared = await asyncio.shield(same.result) if same is not None else None
    if same is not None and shared is not None:
        own = {"call_id": site.call_id, "span": site.span, "duration": 0.0, "tries": 0, "same_as": same.site.call_id}
        return run.redaction.mark_redacted(shared.model_copy(update=own))
    call = run.read_calls.begin(key, site)
    result: ToolReturned | None = None
    try:
        returned = await execute()
        result = returned if returned.error_code is None else None
        return returned
    finally:
        call.result.set_result(result)


def find_unknown_outcome(state: RunState, spec: ToolSpec, args: JsonObject) -> str | None:
    """The reason why this change is not made: the same call of this run may have been executed. None if it may be made.

    It may be made once a later call has read something, which can show that it did not happen, or if a person requested
    the plan.
    """
    if not spec.leaves_outcome_open or (state.plans and state.plans[-1].asked_for):
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
    """Whether a call has read something after the attempt: it started when the attempt's calls had ended.

    The word of a server that nobody trusts counts: its own tools are often the only ones that can look.
    """
    ended = attempt.started_at + sum(call.result.duration for call in attempt.calls if call.result is not None)
    return any(
        (call.intent.effect == "read" or call.intent.claims_read_only)
        and call.result is not None
        and call.result.error_code is None
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
