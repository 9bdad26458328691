"""The verification gates over a whole run: named, deterministic, each with a reason.

To write one: a function from `GateContext` to `GateResult` (None where it does not apply), and its name in `GATES`.
A room lists the names of the gates its runs must pass (`gates:` in its file); a run that fails one of these within its
budget of new plans ends as failed. No mode of planning or executing leaves a gate out.
"""

from collections.abc import Iterable, Mapping

from agent.core.errors import ConfigError
from agent.core.events import GateChecked, StepOutput
from agent.core.fold import RunState
from agent.core.models import Room, Source
from agent.execution.gates.answer import answer_present, citations_resolve, cited_ids, evidence_found
from agent.execution.gates.context import Gate, GateContext, GateResult
from agent.execution.gates.incident import incident_evidence, summary_consistent
from agent.execution.gates.tools import required_tools

__all__ = [
    "GATES",
    "GateContext",
    "GateResult",
    "check_gates",
    "cited_ids",
    "failed_gates",
    "insists",
    "refuse_unknown_gates",
]

GATES: Mapping[str, Gate] = {
    "answer_present": answer_present,
    "required_tools": required_tools,
    "citations_resolve": citations_resolve,
    "evidence_found": evidence_found,
    "summary_consistent": summary_consistent,
    "incident_evidence": incident_evidence,
}

_EVERYWHERE = ("answer_present", "required_tools", "citations_resolve", "evidence_found")
"""Checked in every room, where they apply; a failure leaves an honest partial answer, unless the room lists them."""


def check_gates(
    state: RunState,
    answer: str,
    sources: tuple[Source, ...],
    outputs: Mapping[str, tuple[StepOutput, ...]] | None = None,
) -> tuple[GateChecked, ...]:
    """Every gate this run must pass; gates that do not apply are left out. `outputs` as in `GateContext`."""
    context = GateContext(state, answer, sources, outputs or {})
    listed = state.room.gates if state.gated else ()
    checked = []
    for name in dict.fromkeys((*_EVERYWHERE, *listed)):
        result = GATES[name](context) if name in GATES else _unknown(name)
        if result is not None:
            said = {"passed": result.passed, "reason": result.reason, "failures": result.failures, "redo": result.redo}
            checked.append(GateChecked.model_validate({"gate": name, **said}))
    return tuple(checked)


def insists(state: RunState) -> bool:
    """Whether the room lists gates of its own: then even a plan that came to nothing is held against them."""
    return state.gated and bool(state.room.gates)


def failed_gates(state: RunState) -> tuple[GateChecked, ...]:
    """The gates that were not passed and that the room lists."""
    listed = state.room.gates if state.gated else ()
    return tuple(gate for gate in state.gates if not gate.passed and gate.gate in listed)


def refuse_unknown_gates(rooms: Iterable[Room]) -> None:
    """Raise `ConfigError` for a room that lists a gate there is none of."""
    for room in rooms:
        for name in room.gates:
            if name not in GATES:
                raise ConfigError(f"room {room.id!r}: gates: there is no gate {name!r}; known: {', '.join(GATES)}")


def _unknown(name: str) -> GateResult:
    """A run that an older or newer version began may list a gate that is not here; it cannot have been passed."""
    return GateResult(False, f"this version has no gate {name!r}", (f"this version has no gate {name!r}",))
