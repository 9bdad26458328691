"""The tools a room requires: whatever plan was made, by a model or by rules, they are in it, with arguments that fit.

The normalisation of the source documents (004, section 6): missing tools are added, retrieval before the brief that
is built from it, arguments merged with defaults, unknown ones dropped, and the summary made of the user's own words.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from agent.core.models import JsonObject, Plan, PlanStep
from agent.planning.normalise import RawPlan
from agent.planning.references import find_references, literal
from agent.planning.request import PlanningRequest
from agent.planning.validate import argument_problems, finish_plan, in_order
from agent.planning.wire import action_of
from agent.tools import ToolSpec

CONTEXT_KEYS: Final = ("service", "priority", "severity", "status")
"""What a caller's system may say of a task beside its prompt."""
CONTEXT_CHARS = 200
RETRIEVAL: Final = ("search_incident_knowledge", "search_previous_issues")
BRIEF: Final = "build_incident_brief"
SUMMARY: Final = "summarize"

_HINT = re.compile(
    r"(?:(?<![^\W\d_])|(?<=[a-z\d])(?=[A-Z]))"
    r"(?i:incidents?|outages?|latenc(?:y|ies)|error(?:s|ed|ing)?|sev(?:ere|erity|erities)?)"
    r"(?:(?![^\W\d_])|(?<=[a-z])(?=[A-Z]))"
)
"""The hints of the documents, as words: "several" is no severity, but TimeoutError, error_rate and SEV2 hold one."""
_URGENT = re.compile(r"^\s*(?:p\s?-?\d|sev)", re.IGNORECASE)
_TEXTS = frozenset({"text", "prompt", "input"})
_QUERIES = frozenset({"query", "question"})
_FILTERS = frozenset({"service", "severity"})


def context_of(metadata: Mapping[str, JsonValue]) -> dict[str, str]:
    """The known facts of `metadata.context`, trimmed; empty ones and others are left out."""
    given = metadata.get("context")
    return split_context(given)[0] if isinstance(given, dict) else {}


def split_context(given: Mapping[str, JsonValue]) -> tuple[dict[str, str], list[str]]:
    """The facts that are known, trimmed, and the names of what is dropped."""
    kept: dict[str, str] = {}
    dropped: list[str] = []
    for name, value in given.items():
        text = str(value).strip()[:CONTEXT_CHARS] if isinstance(value, str | int | float) else ""
        if name not in CONTEXT_KEYS or isinstance(value, bool | dict | list):
            dropped.append(name)
        elif text:
            kept[name] = text
    return kept, dropped


def is_incident(text: str, context: Mapping[str, str]) -> bool:
    """Whether a request speaks of an incident: by a hint in its words, or by its priority or severity."""
    if _HINT.search(text):
        return True
    return any(_URGENT.match(context.get(name, "")) for name in ("priority", "severity"))


def required_here(request: PlanningRequest) -> tuple[str, ...]:
    """The tools this request must not go without, in the room's order."""
    room = request.room
    incident = is_incident(f"{request.original}\n{request.question}", request.context)
    return room.required_tools + (room.incident_tools if incident else ())


@dataclass(frozen=True, slots=True)
class Adjusted:
    """A plan that holds what the room requires, and what was changed for that, in sentences."""

    plan: Plan
    notes: tuple[str, ...] = ()


def fitted(raw: RawPlan, request: PlanningRequest) -> tuple[RawPlan, tuple[str, ...]]:
    """A model's steps with the arguments their tools know: what is unknown or does not fit is dropped, what is missing
    takes its default. Not yet validated."""
    notes: list[str] = []
    steps = []
    for step in raw.steps:
        spec = request.catalogue.tool(step.tool)
        if spec is not None:
            step = replace(step, args=_fitting(spec, step.args, request, step.id, notes))  # noqa: PLW2901
        steps.append(step)
    return replace(raw, steps=tuple(steps)), tuple(notes)


def with_required(plan: Plan, request: PlanningRequest, *, has_model: bool, named: Collection[str] = ()) -> Adjusted:
    """The plan with every required tool of the catalogue; steps that were done before are kept as they are, and so are
    the arguments of tools that the caller has `named` with their own.

    A tool that is not in the catalogue is left out: the gate over required tools will name it."""
    done = {completed.step.id for completed in request.completed}
    steps = {step.id: step for step in plan.steps if not step.is_completion}
    notes: list[str] = []
    names = _fresh_ids({*(step.id for step in plan.steps), *request.used_ids, *done})
    for tool in required_here(request):
        spec = request.catalogue.tool(tool)
        if spec is None or any(step.tool == tool for step in steps.values()):
            continue
        added = _step(spec, next(names), request)
        steps[added.id] = added
        notes.append(f"{tool} is required here and was added" + (" again" if tool in request.redo else ""))
    _brief_after_retrieval(steps, request, done, notes)
    summary = _summary_of_the_original(steps, request, done) if SUMMARY not in named else None
    ordered = _listed(in_order(list(steps.values()), ()), done, summary)
    closing = [
        step.model_copy(update={"depends_on": tuple(other.id for other in ordered)})
        for step in plan.steps
        if step.is_completion
    ]
    adjusted = plan.model_copy(update={"steps": (*ordered, *closing)})
    finished = finish_plan(adjusted, needs_completion=True, has_model=has_model, used_ids=request.used_ids)
    return Adjusted(finished, tuple(notes))


def _step(spec: ToolSpec, step_id: str, request: PlanningRequest) -> PlanStep:
    return PlanStep(
        id=step_id,
        executor="agent",
        action=action_of(spec.name),
        tool=spec.name,
        args=_defaults(spec, request),
        intent=_INTENTS.get(spec.name, f"call {spec.name}, which is required here"),
        effect=spec.effect,
    )


_INTENTS: Final[Mapping[str, str]] = {
    "extract_entities": "name what the text speaks of",
    "classify_priority": "say how urgent it is",
    "search_incident_knowledge": "find policies, runbooks and documents",
    "search_previous_issues": "find similar tickets and incidents",
    BRIEF: "brief those who handle the incident",
    SUMMARY: "summarize the request",
}


def _brief_after_retrieval(
    steps: dict[str, PlanStep], request: PlanningRequest, done: set[str], notes: list[str]
) -> None:
    """Let every new brief wait for the searches: where they find nothing, there is nothing to brief on."""
    briefs = [step for step in steps.values() if step.tool == BRIEF and step.id not in done]
    searches = [step for step in steps.values() if step.tool in RETRIEVAL]
    for brief in briefs:
        for search in searches:
            spec = request.catalogue.tool(search.tool)
            if spec is not None and search.id not in done and brief.id in _grounds(search, steps):
                own = {name: value for name, value in search.args.items() if not find_references(value)}
                fresh = _step(spec, search.id, request)
                steps[search.id] = fresh.model_copy(update={"args": {**fresh.args, **own}})
                notes.append(f"{search.tool} no longer waits for the brief that is built from it")
        waits = dict.fromkeys((*brief.depends_on, *(search.id for search in searches)))
        steps[brief.id] = brief.model_copy(update={"depends_on": tuple(waits)})


def _summary_of_the_original(steps: dict[str, PlanStep], request: PlanningRequest, done: set[str]) -> str | None:
    """Let the last summary, if it is new, be one of the user's own words; it has nothing to wait for then. Its id."""
    last = next((step for step in reversed(list(steps.values())) if step.tool == SUMMARY), None)
    spec = request.catalogue.tool(SUMMARY)
    if last is None or spec is None or last.id in done:
        return None
    own = {name: value for name, value in _defaults(spec, request).items() if name in _TEXTS}
    steps[last.id] = last.model_copy(update={"args": {**last.args, **own}, "depends_on": ()})
    return last.id


def _listed(ordered: list[PlanStep], done: set[str], summary: str | None) -> list[PlanStep]:
    """Dependencies first, what is done before what is new, and the summary at the end where nothing builds on it."""
    ordered = sorted(ordered, key=lambda step: step.id not in done)
    used = {name for step in ordered for name in step.depends_on}
    return sorted(ordered, key=lambda step: step.id == summary and step.id not in used)


def _grounds(step: PlanStep, steps: Mapping[str, PlanStep]) -> set[str]:
    """The ids of everything a step builds on."""
    found: set[str] = set()
    waiting = list(step.depends_on)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += steps[name].depends_on if name in steps else ()
    return found


def _fitting(spec: ToolSpec, given: JsonObject, request: PlanningRequest, step_id: str, notes: list[str]) -> JsonObject:
    """The arguments a tool knows and can take, over its defaults."""
    args = _defaults(spec, request)
    for name, value in given.items():
        if value in ("", None):  # a strict schema of pairs makes models name what they know nothing of
            continue
        problem = _problem(spec, name, value)
        if problem is None:
            args[name] = value
        else:
            notes.append(f"step {step_id}: {spec.name}: dropped {name!r}: {problem}")
    return args


def _defaults(spec: ToolSpec, request: PlanningRequest) -> JsonObject:
    """What is known of a tool's arguments without being told: the text, the question, the caller's context."""
    broadly = spec.name in request.redo
    args: JsonObject = {}
    for name, schema in _properties(spec).items():
        value: JsonValue = None
        if name in _TEXTS:
            value = request.original or request.question
        elif name in _QUERIES:
            value = request.question or request.original
        elif name in CONTEXT_KEYS and not (broadly and name in _FILTERS):
            value = request.context.get(name)
        elif broadly and isinstance(schema.get("maximum"), int):
            value = schema["maximum"]
        if isinstance(value, str):
            longest = schema.get("maxLength")
            value = literal(value[:longest] if isinstance(longest, int) else value)
        if value is not None and _problem(spec, name, value) is None:
            args[name] = value
    return args


def _problem(spec: ToolSpec, name: str, value: JsonValue) -> str | None:
    """Why a tool cannot take this argument; None when it can."""
    schema = _properties(spec).get(name)
    if schema is None:
        return "there is no such input"
    problems = argument_problems({"type": "object", "properties": {name: schema}}, {name: value})
    return problems[0] if problems else None


def _properties(spec: ToolSpec) -> dict[str, JsonObject]:
    properties = spec.input_schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    return {name: schema for name, schema in known.items() if isinstance(schema, dict)}


def _fresh_ids(taken: Collection[str]) -> Iterator[str]:
    return (f"s{number}" for number in range(1, 10_000) if f"s{number}" not in taken)
