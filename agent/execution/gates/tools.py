"""The gate over the tools: those that were asked for have run."""

from agent.core.fold import AttemptState, RunState
from agent.core.models import Outcome
from agent.execution.gates.context import GateContext, GateResult, failed, passed


def required_tools(context: GateContext) -> GateResult | None:
    """The tools the caller named (`metadata.tool_calls`) have run; those the room requires have succeeded."""
    state = context.state
    named, wanted = _named(state), _wanted(context)
    if not named and not wanted:
        return None
    ran = _ran(state)
    missing = [name for name in sorted(named) if name not in ran]
    missing += [name for name in wanted if name not in ran and name not in named]
    broken = [name for name in wanted if name in ran and name not in context.outputs]
    faults = ["never ran: " + ", ".join(missing)] if missing else []
    faults += [f"{name} failed: {ran[name]}" for name in broken]
    if faults:
        return failed(*faults)
    return passed("every requested tool ran" if not wanted else "every required tool ran and succeeded")


def _named(state: RunState) -> set[str]:
    calls = state.request.metadata.get("tool_calls")
    if not isinstance(calls, list):
        return set()
    return {str(call.get("tool") or call.get("name")) for call in calls if isinstance(call, dict)}


def _wanted(context: GateContext) -> tuple[str, ...]:
    room = context.state.room
    return room.required_tools + (room.incident_tools if context.is_incident else ())


def _ran(state: RunState) -> dict[str, str]:
    """The tools that have returned in any attempt, each with its last error."""
    ran: dict[str, str] = {}
    for step in state.steps.values():
        for attempt in step.attempts:
            for call in attempt.calls:
                if call.returned is not None:
                    ran[call.called.tool] = call.returned.error or _refused(attempt)
            # Arguments that do not fit are refused without a call; the attempt's own output tells it.
    for proposed in state.plans:
        for planned in proposed.plan.steps:
            output = state.step(planned.id).output
            if planned.action == "tool" and output is not None and output.error is not None:
                ran[planned.tool] = output.error
    return ran


def _refused(attempt: AttemptState) -> str:
    """Why what a tool returned does not count, in the words of whoever judged it."""
    verdict = attempt.verdict
    because = "" if verdict is None or verdict.outcome is Outcome.SUCCESS else f" ({verdict.reason})"
    return f"its result was not accepted{because}"
