"""Summarizes the verification of a run, from its log: gates, replan budget, planner and executor."""

from agent.core.models import JsonObject
from agent.core.run_state import RunState
from agent.runs.run_summary import build_run_summary

INCIDENT_GATE = "incident_evidence"


def build_gate_summary(state: RunState) -> JsonObject:
    """The verification so far. `incident_gate.passed` is true if that gate is not required; a run that ended before its
    gates were checked has not passed the one that it needs.
    """
    gates: list[JsonObject] = [
        {"gate": gate.gate, "passed": gate.passed, "reason": gate.reason, "failures": list(gate.failures)}
        for gate in state.gates
    ]
    return {
        "passed": bool(gates) and all(gate["passed"] for gate in gates) and state.completeness == "complete",
        "failed_gates": [gate["gate"] for gate in gates if not gate["passed"]],
        "gates": [*gates],
        "incident_gate": _summarize_incident_gate(state),
        "retry_budget": _summarize_replans(state),
        "runtime": _summarize_modes(state),
    }


def _summarize_incident_gate(state: RunState) -> JsonObject:
    gate = next((gate for gate in state.gates if gate.gate == INCIDENT_GATE), None)
    if gate is not None:
        return {"required": True, "passed": gate.passed, "failures": list(gate.failures)}
    if state.gates or not _plans_for_incident(state):
        return {"required": False, "passed": True, "failures": []}
    why = f": {state.failure.message}" if state.failure is not None else ""
    missing = f"the run ended before its evidence was checked{why}" if state.is_finished else "not checked yet"
    return {"required": True, "passed": False, "failures": [missing]}


def _plans_for_incident(state: RunState) -> bool:
    """Whether the room has this gate and the plan has the tools that the room adds for a topic."""
    if INCIDENT_GATE not in state.room.gates or state.plan is None:
        return False
    planned = {step.tool for step in state.plan.steps}
    return any(names and planned.issuperset(names) for names in state.room.tools_by_topic.values())


def _summarize_replans(state: RunState) -> JsonObject:
    """Counts the replans that were used, beside those that are allowed."""
    budget = state.room.budgets.max_replans
    remaining = max(0, budget - state.replan_count)
    return {"count": state.replan_count, "budget": budget, "remaining": remaining, "budget_exhausted": remaining == 0}


def _summarize_modes(state: RunState) -> JsonObject:
    """Planner and executor, each with the requested and the effective mode."""
    runtime = build_run_summary(state)
    modes: JsonObject = {}
    for name in ("planner", "executor"):
        used = runtime.get(name)
        if isinstance(used, dict):
            modes[name] = {"effective_mode": used["effective"], **{k: v for k, v in used.items() if k != "effective"}}
    return modes
