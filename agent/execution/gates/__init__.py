"""The verification gates of a run: named and deterministic; each returns a reason.

To add one: write a function from `GateContext` to `GateResult` (None if it does not apply) and add its name to `GATES`,
or to the `Extension` of another package. A room lists the gates that its runs must pass (`gates:` in its file). A run
that still fails one after its replans ends as failed. Every mode of planning and execution checks all gates.
"""

from collections.abc import Mapping

from agent.core.events import GateChecked, StepOutput
from agent.core.models import Source
from agent.core.run_state import RunState
from agent.execution.gates.answer import check_answer_present, check_citations_resolve, check_evidence_found
from agent.execution.gates.tools import required_tools
from agent.planning.required import extract_context
from agent.run_context.extensions import NO_EXTENSIONS, Extensions, Gate, GateContext, GateResult

__all__ = [
    "GATES",
    "GateContext",
    "GateResult",
    "check_gates",
    "list_failed_gates",
    "has_room_gates",
]

GATES: Mapping[str, Gate] = {
    "answer_present": check_answer_present,
    "required_tools": required_tools,
    "citations_resolve": check_citations_resolve,
    "evidence_found": check_evidence_found,
}

_DEFAULT_GATES = ("answer_present", "required_tools", "citations_resolve", "evidence_found")
"""Checked in every room where they apply. A failure gives a partial answer, or fails the run if the room lists the
gate."""


def check_gates(
    state: RunState,
    answer: str,
    sources: tuple[Source, ...],
    outputs: Mapping[str, tuple[StepOutput, ...]] | None = None,
    extensions: Extensions = NO_EXTENSIONS,
) -> tuple[GateChecked, ...]:
    """Checks every gate that applies to this run and returns the results. `outputs` as in `GateContext`."""
    facts = extract_context(state.request.metadata)
    topics = extensions.match_topics(state.room, f"{state.prompt}\n{state.question}", facts)
    context = GateContext(state, answer, sources, outputs or {}, topics)
    gates = {**GATES, **extensions.gates}
    listed = state.room.gates if state.is_gated else ()
    checked = []
    for name in dict.fromkeys((*_DEFAULT_GATES, *listed)):
        result = gates[name](context) if name in gates else _fail_unknown_gate(name)
        if result is not None:
            checked.append(
                GateChecked(
                    gate=name,
                    passed=result.passed,
                    reason=result.reason,
                    failures=result.failures,
                    redo=result.redo,
                )
            )
    return tuple(checked)


def has_room_gates(state: RunState) -> bool:
    """Whether the room lists gates. Then even a plan without results is checked."""
    return state.is_gated and bool(state.room.gates)


def list_failed_gates(state: RunState) -> tuple[GateChecked, ...]:
    """The failed gates that the room lists."""
    listed = state.room.gates if state.is_gated else ()
    return tuple(gate for gate in state.gates if not gate.passed and gate.gate in listed)


def _fail_unknown_gate(name: str) -> GateResult:
    """A failure. The run of another version may list a gate that this version lacks."""
    return GateResult(False, f"this version has no gate {name!r}", (f"this version has no gate {name!r}",))
