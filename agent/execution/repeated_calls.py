"""Calls that a run does not repeat: those that failed permanently, changes that may have been made, and reading the
same thing for several steps."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from agent.core.events import ToolReturned
from agent.core.models import JsonObject, Outcome, Plan, PlanStep
from agent.core.plan_outcome import REPEATED
from agent.core.plan_references import unify_references
from agent.core.run_state import AttemptState, CallState, RunState, StepState
from agent.run_context.calls import CallSite, build_key
from agent.run_context.outputs import SHOWN_ARG_CHARS, shorten_args
from agent.run_context.run import Run
from agent.tools import ToolSpec

LASTING_ERRORS = frozenset(
    {"ERR_TOOL_INPUT", "ERR_TOOL_UNKNOWN", "ERR_TOOL_DENIED", "ERR_SKILL_UNKNOWN", "ERR_REFERENCE"}
)
"""Error codes of failures that the same call with the same arguments repeats."""
FAILED = "ERR_TOOL_FAILED"
"""The code of a failure that the tool reported. A new plan that makes the same call has found no other way."""


UNKNOWN_OUTCOME = "ERR_TOOL_UNKNOWN_OUTCOME"
"""The code of calls that may have changed something and whose result never came."""

ATTEMPTS = 2
"""Attempts of one step or of one item of a list: after as many failures, the same call is not made again."""


def is_only_repeating_failures(state: RunState, plan: Plan) -> bool:
    """Whether all that a new plan adds are calls that failed permanently before."""
    earlier_steps = state.steps_of_all_plans
    added = [step for step in plan.steps if step.id not in earlier_steps and step.is_work]
    return bool(added) and all(
        step.action != "skill" and find_lasting_failure(state, step, dict(step.args)) is not None for step in added
    )


def find_lasting_failure(state: RunState, step: PlanStep, args: JsonObject) -> str | None:
    """The reason why the same call failed permanently before, or None if it may run.

    It may run again after a side effect of another call, or if a person requested the plan. `args` are those that the
    step is called with, or as its plan has them."""
    if state.plans[-1].asked_for:
        return None
    for other, own in _iter_other_steps(state, step):
        last = own.last
        if last is None or not (unify_references(other.args) == unify_references(args) or _had_args(last, args)):
            continue
        reason = _find_lasting_reason(state, step, own, last)
        if reason is not None:
            return reason
    return None


def _had_args(attempt: AttemptState, args: JsonObject) -> bool:
    """Whether an attempt had these arguments. The log keeps only the beginning of longer texts, so they cannot
    be compared."""
    if any(isinstance(value, str) and len(value) > SHOWN_ARG_CHARS for value in args.values()):
        return False
    return dict(attempt.args) == shorten_args(args)


def _iter_other_steps(state: RunState, step: PlanStep) -> Iterator[tuple[PlanStep, StepState]]:
    """Yields every other step that calls the same tool, of all plans, with its state."""
    steps = {other.id: other for proposed in state.plans for other in proposed.plan.steps if other.tool == step.tool}
    for other in steps.values():
        if other.id != step.id:
            yield other, state.get_step(other.id)


def _find_lasting_reason(state: RunState, step: PlanStep, own: StepState, last: AttemptState) -> str | None:
    """Why the call of another step, whose state is `own`, is not made again; None if it may be."""
    output, verdict = last.output, last.verdict
    if output is None or verdict is None or verdict.outcome is Outcome.SUCCESS:
        return None
    reason = (output.error or verdict.reason).removeprefix(REPEATED)
    if step.effect == "effect" and _may_be_done(last):
        return None if has_read_since(state, last) else reason
    if _has_effect_since(state, last):
        return None
    if output.error_code in LASTING_ERRORS:
        return reason
    if step.effect == "effect":  # it was not tried again by itself, and no other plan makes it another call
        return reason if output.error_code == FAILED and not has_read_since(state, last) else None
    if output.error_code is None and step.effect == "read" and verdict.by == "model":
        return reason  # reading again returns what the judge rejected
    if state.round_count:  # they refuse what is in vain by themselves, and read again what was interrupted
        return None
    if output.error_code is None and step.effect == "read":
        return reason
    tried = [one.output for one in own.attempts if one.output is not None and not one.is_discarded]
    failures = [one for one in tried if one.error_code in (None, FAILED)]
    return reason if len(failures) >= ATTEMPTS else None


def _has_effect_since(state: RunState, attempt: AttemptState) -> bool:
    """Whether a tool with side effects was called after the attempt started."""
    return any(
        call.intent.effect != "read"
        for other in state.list_attempts()
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
    if attempt is None or has_read_since(state, attempt):
        return False
    return any(map(_is_unknown, attempt.calls)) or _may_be_done(attempt)


def _may_be_done(attempt: AttemptState) -> bool:
    """Whether the attempt returned a result, whatever was made of it: nobody knows what its call has done."""
    verdict, output = attempt.verdict, attempt.output
    is_doubted = verdict is not None and verdict.outcome is not Outcome.SUCCESS and bool(attempt.calls)
    return is_doubted and output is not None and output.error_code in (None, "ERR_TOOL_OUTPUT")


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
    return ((attempt, call) for attempt in state.list_attempts() for call in attempt.calls)
