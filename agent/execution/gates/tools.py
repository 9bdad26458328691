"""The gate over the tools: the requested and required ones have run."""

from agent.core.models import Outcome
from agent.core.run_state import AttemptState, RunState
from agent.run_context.extensions import GateContext, GateResult, gate_failed, gate_passed, list_required_tools


def required_tools(context: GateContext) -> GateResult | None:
    """Passes if the tools the caller named (`metadata.tool_calls`) ran, and those the room requires succeeded."""
    state = context.state
    named, wanted = _requested_tools(state), list_required_tools(context.state.room, context.topics)
    if not named and not wanted:
        return None
    ran = _last_errors_by_tool(state)
    missing = [name for name in sorted(named) if name not in ran]
    missing += [name for name in wanted if name not in ran and name not in named]
    broken = [name for name in wanted if name in ran and name not in context.outputs]
    faults = ["never ran: " + ", ".join(missing)] if missing else []
    faults += [f"{name} failed: {ran[name]}" for name in broken]
    if faults:
        return gate_failed(*faults)
    return gate_passed("every requested tool ran" if not wanted else "every required tool ran and succeeded")


def _requested_tools(state: RunState) -> set[str]:
    calls = state.request.metadata.get("tool_calls")
    if not isinstance(calls, list):
        return set()
    return {str(call.get("tool") or call.get("name")) for call in calls if isinstance(call, dict)}


def _last_errors_by_tool(state: RunState) -> dict[str, str]:
    """Returns the tools that returned in any attempt, each with its last error."""
    ran: dict[str, str] = {}
    for step in state.steps.values():
        for attempt in step.attempts:
            for call in attempt.calls:
                if call.result is not None:
                    ran[call.intent.tool] = call.result.error or _rejection_reason(attempt)
            # Arguments that do not fit are refused without a call; the attempt's own output tells it.
    for proposed in state.plans:
        for planned in proposed.plan.steps:
            output = state.get_step(planned.id).output
            if planned.action == "tool" and output is not None and output.error is not None:
                ran[planned.tool] = output.error
    return ran


def _rejection_reason(attempt: AttemptState) -> str:
    """Returns why a tool's result does not count, as its verdict says."""
    verdict = attempt.verdict
    because = "" if verdict is None or verdict.outcome is Outcome.SUCCESS else f" ({verdict.reason})"
    return f"its result was not accepted{because}"
