"""What a gate is given and what it says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent.core.events import StepOutput
from agent.core.fold import RunState
from agent.core.models import JsonObject, Source
from agent.planning.required import context_of, is_incident


@dataclass(frozen=True, slots=True)
class GateContext:
    """A run whose plan is over. `outputs` holds what the steps that succeeded gave, whole, by the name of the tool."""

    state: RunState
    answer: str
    sources: tuple[Source, ...] = ()
    outputs: Mapping[str, tuple[StepOutput, ...]] = field(default_factory=dict)

    def values(self, tool: str) -> list[JsonObject]:
        """The objects a tool returned in this plan; empty when it did not succeed."""
        return [output.value for output in self.outputs.get(tool, ()) if isinstance(output.value, dict)]

    def items(self, tool: str, name: str) -> list[JsonObject]:
        """The objects in the list `name` of what a tool returned."""
        lists = [value.get(name) for value in self.values(tool)]
        return [item for found in lists if isinstance(found, list) for item in found if isinstance(item, dict)]

    @property
    def is_incident(self) -> bool:
        """Whether the request speaks of an incident, in its words or in its context."""
        state = self.state
        return is_incident(f"{state.prompt}\n{state.question}", context_of(state.request.metadata))


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate says. `failures` are its single faults, where there may be several; `redo` names the tools whose
    results the next plan must not keep: they are called again."""

    passed: bool
    reason: str
    failures: tuple[str, ...] = ()
    redo: tuple[str, ...] = ()


Gate = Callable[[GateContext], GateResult | None]
"""None where the gate does not apply to this run. Pure and quick: it runs between the steps and the answer."""


def passed(reason: str) -> GateResult:
    """The gate is passed."""
    return GateResult(True, reason)


def failed(*failures: str, redo: tuple[str, ...] = ()) -> GateResult:
    """The gate is not passed, for these reasons."""
    return GateResult(False, "; ".join(failures), failures, redo)
