"""The gate over tools: requested tools returned and required tools succeeded."""

from agent.core.models import Outcome
from agent.core.run_state import AttemptState, RunState
from agent.planning.required import list_required_tools
from agent.run_context.extensions import GateContext, GateResult, fail_gate, pass_gate


def required_tools(context: GateContext) -> GateResult | None:
    """Passes if the tools in `metadata.tool_calls` returned and the tools that the room requires succeeded."""
    state = context.state
    named, wanted = _list_requested_tools(state), list_required_tools(context.state.room, context.topics)
    if not named and not wanted:
        return None
    ran = _get_last_errors_by_tool(state)
    missing = [name for name in sorted(named) if name not in ran]
    missing += [name for name in wanted if name not in ran and name not in named]
    broken = [name for name in wanted if name in ran and name not in context.outputs]
    faults = ["never ran: " + ", ".join(missing)] if missing else []
    faults += [f"{name} failed: {ran[name]}" for name in broken]
    if faults:
        return fail_gate(*faults)
    return pass_gate("every requested tool ran" if not wanted else "every required tool ran and succeeded")


def _list_requested_tools(state: RunState) -> set[str]:
    calls = state.request.metadata.get("tool_calls")
    if not isinstance(calls, list):
        return set()
    return {str(call.get("tool") or call.get("name")) for call in calls if isinstance(call, dict)}


def _get_last_errors_by_tool(state: RunState) -> dict[str, str]:
    """The tools that returned in any attempt, each with its last error."""
    ran: dict[str, str] = {}
    for step in state.steps.values():
        for attempt in step.attempts:
            for call in attempt.calls:
                if call.result is not None:
                    ran[call.intent.tool] = call.result.error or _get_rejection_reason(attempt)
            # Calls with invalid arguments are refused, so only the attempt's output has the error.
    for proposed in state.plans:
        for planned in proposed.plan.steps:
            last = state.get_step(planned.id).last
            if planned.action != "tool" or last is None or last.output is None:
                continue
            if last.output.error is not None:
                ran[planned.tool] = last.output.error
            elif last.taken_from:  # a fork took the result over and made no call
                ran.setdefault(planned.tool, _get_rejection_reason(last))
    return ran


def _get_rejection_reason(attempt: AttemptState) -> str:
    """The verdict's reason for rejecting a tool's result."""
    verdict = attempt.verdict
    because = "" if verdict is None or verdict.outcome is Outcome.SUCCESS else f" ({verdict.reason})"
    return f"its result was not accepted{because}"
