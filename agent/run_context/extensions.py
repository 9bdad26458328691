"""Extensions of the engine by packages: gates by name, topics of requests, and hooks of runs.

A package offers an `Extension`; the composition root merges them into one `Extensions` for all runs. Tools describe
themselves in their `ToolSpec` (`PlanHints`). `gateway/features/incident/tools` is an example.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from agent.core.errors import ConfigError
from agent.core.events import StepOutput
from agent.core.models import JsonObject, Room, Source
from agent.core.run_state import RunState
from agent.planning.required import extract_context
from agent.run_context.evidence_answers import EvidenceAnswers
from agent.run_context.ground_sources import NO_COLLECTIONS, GroundCollections
from agent.run_context.run_hooks import PlanSource, RunHooks


@dataclass(frozen=True, slots=True)
class GateContext:
    """A run with a completed plan. `outputs` holds the complete outputs of its successful steps by tool name."""

    state: RunState
    answer: str
    sources: tuple[Source, ...] = ()
    outputs: Mapping[str, tuple[StepOutput, ...]] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()
    """The topics of the request."""
    requested_tools: frozenset[str] = frozenset()
    """The registered names of the tools that the request names in `metadata.tool_calls`."""

    def list_tool_values(self, tool: str) -> list[JsonObject]:
        """The objects that a tool returned in this plan; [] if it did not succeed."""
        return [output.value for output in self.outputs.get(tool, ()) if isinstance(output.value, dict)]

    def list_tool_items(self, tool: str, name: str) -> list[JsonObject]:
        """The objects in the list `name` of a tool's results."""
        lists = [value.get(name) for value in self.list_tool_values(tool)]
        return [item for lister in lists if isinstance(lister, list) for item in lister if isinstance(item, dict)]


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate.

    `failures` lists the single problems; `redo` names the tools that the next plan must call again."""

    passed: bool
    reason: str
    failures: tuple[str, ...] = ()
    redo: tuple[str, ...] = ()


Gate = Callable[[GateContext], GateResult | None]
"""None if it does not apply to this run. Must be pure and fast, because it runs between steps and answer."""


def pass_gate(reason: str) -> GateResult:
    """The result of a gate that the run passes; the reason is for the trace."""
    return GateResult(True, reason)


def fail_gate(*failures: str, redo: tuple[str, ...] = ()) -> GateResult:
    """The result of a gate that the run fails: a new plan gets the failures, and calls the tools in `redo` again."""
    return GateResult(False, "; ".join(failures), failures, redo)


Topic = Callable[[str, Mapping[str, str]], bool]
"""Whether a request has this topic, from its text and the facts in `metadata.context`."""


@dataclass(frozen=True, slots=True)
class Extension:
    """What one package adds. Rooms refer to gates and topics by name."""

    name: str
    gates: Mapping[str, Gate] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    hooks: tuple[RunHooks, ...] = ()
    evidence_answers: EvidenceAnswers | None = None
    """How answers are written from evidence. One package offers it."""
    collections: GroundCollections | None = None
    """The collections of documents that planners learn of. One package offers them."""


@dataclass(frozen=True, slots=True)
class Extensions:
    """The gates, topics and hooks of all packages."""

    gates: Mapping[str, Gate] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    hooks: tuple[RunHooks, ...] = ()
    plan_sources: tuple[PlanSource, ...] = ()
    """Those of the hooks, in their order."""
    evidence_answers: EvidenceAnswers | None = None
    """None if no package reads documents: then every answer is a plain completion."""
    collections: GroundCollections = NO_COLLECTIONS

    def match_topics(self, room: Room, text: str, metadata: JsonObject) -> frozenset[str]:
        """The topics of a request, by its text and its metadata; none in a room for which they decide nothing."""
        if not (room.tools_by_topic or room.required_tools or room.gates):
            return frozenset()
        facts = extract_context(metadata)
        return frozenset(name for name, matches in self.topics.items() if matches(text, facts))


NO_EXTENSIONS = Extensions()


def merge_extensions(extensions: Iterable[Extension]) -> Extensions:
    """Joins what all packages add. Raises `ConfigError` if two share a name."""
    gates: dict[str, Gate] = {}
    topics: dict[str, Topic] = {}
    hooks: list[RunHooks] = []
    evidence: EvidenceAnswers | None = None
    collections = NO_COLLECTIONS
    for extension in extensions:
        shared = sorted({*(gates.keys() & extension.gates), *(topics.keys() & extension.topics)})
        if shared:
            raise ConfigError(f"extension {extension.name!r}: {', '.join(shared)} exists already")
        if evidence is not None and extension.evidence_answers is not None:
            raise ConfigError(f"extension {extension.name!r}: another package writes the answers from evidence already")
        if collections is not NO_COLLECTIONS and extension.collections is not None:
            raise ConfigError(f"extension {extension.name!r}: another package has the collections already")
        gates |= extension.gates
        topics |= extension.topics
        hooks += extension.hooks
        evidence = extension.evidence_answers or evidence
        collections = extension.collections or collections
    sources = tuple(source for one in hooks for source in one.plan_sources)
    return Extensions(gates, topics, tuple(hooks), sources, evidence, collections)
