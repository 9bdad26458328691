"""The verification of a run, projected from its log: its gates, what is left of the budget, and who did the work."""

from agent.core.fold import RunState
from agent.core.models import JsonObject
from agent.core.runtime import runtime_of

INCIDENT_GATE = "incident_evidence"


def verification_of(state: RunState) -> JsonObject:
    """The verification as far as the log goes. `incident_gate.passed` is true where that gate is not required."""
    gates: list[JsonObject] = [
        {"gate": gate.gate, "passed": gate.passed, "reason": gate.reason, "failures": list(gate.failures)}
        for gate in state.gates
    ]
    return {
        "passed": bool(gates) and all(gate["passed"] for gate in gates) and state.completeness == "complete",
        "failed_gates": [gate["gate"] for gate in gates if not gate["passed"]],
        "gates": [*gates],
        "incident_gate": _incident_gate(state),
        "retry_budget": _budget(state),
        "runtime": _modes(state),
    }


def _incident_gate(state: RunState) -> JsonObject:
    gate = next((gate for gate in state.gates if gate.gate == INCIDENT_GATE), None)
    return {
        "required": gate is not None,
        "passed": gate is None or gate.passed,
        "failures": list(gate.failures) if gate is not None else [],
    }


def _budget(state: RunState) -> JsonObject:
    """How many new plans were made of those a run may have."""
    budget = state.room.budgets.max_replans
    remaining = max(0, budget - state.replans)
    return {"count": state.replans, "budget": budget, "remaining": remaining, "budget_exhausted": remaining == 0}


def _modes(state: RunState) -> JsonObject:
    """Planner and executor, each with what was asked for and what did the work."""
    runtime = runtime_of(state)
    modes: JsonObject = {}
    for name in ("planner", "executor"):
        used = runtime.get(name)
        if isinstance(used, dict):
            modes[name] = {"effective_mode": used["effective"], **{k: v for k, v in used.items() if k != "effective"}}
    return modes
