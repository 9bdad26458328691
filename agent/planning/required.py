"""The tools a room requires: every plan, by a model or by rules, contains them with arguments that fit.

Missing tools are added, after the tools that their results are built from (`PlanHints` of the tools); arguments are
merged with defaults, and unknown ones are dropped.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from agent.core.models import JsonObject, Plan, PlanStep
from agent.planning.normalise import RawPlan
from agent.planning.references import find_references, quote_literal
from agent.planning.request import PlanningRequest
from agent.planning.validate import find_argument_problems, finish_plan, sort_by_dependencies
from agent.planning.wire import action_of
from agent.run_context.extensions import list_required_tools
from agent.tools import ToolSpec

CONTEXT_KEYS: Final = ("service", "priority", "severity", "status")
"""What a caller's system may say of a task beside its prompt."""
CONTEXT_CHARS = 200
_TEXTS = frozenset({"text", "prompt", "input"})
_QUERIES = frozenset({"query", "question"})
_FILTERS = frozenset({"service", "severity"})


def extract_context(metadata: Mapping[str, JsonValue]) -> dict[str, str]:
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


@dataclass(frozen=True, slots=True)
class AdjustedPlan:
    """A plan that holds what the room requires, and what was changed for that, in sentences."""

    plan: Plan
    notes: tuple[str, ...] = ()


def fit_arguments(raw: RawPlan, request: PlanningRequest) -> tuple[RawPlan, tuple[str, ...]]:
    """A model's steps with the arguments their tools know: what is unknown or does not fit is dropped, what is missing
    takes its default. Not yet validated."""
    notes: list[str] = []
    steps = []
    for step in raw.steps:
        spec = request.catalogue.tool(step.tool)
        if spec is not None:
            step = replace(step, args=_fit_step_args(spec, step.args, request, step.id, notes))  # noqa: PLW2901
        steps.append(step)
    return replace(raw, steps=tuple(steps)), tuple(notes)


def add_required_tools(
    plan: Plan, request: PlanningRequest, *, has_model: bool, named: Collection[str] = ()
) -> AdjustedPlan:
    """The plan with every required tool of the catalogue; steps that were done before are kept as they are, and so are
    the arguments of tools that the caller has `named` with their own.

    A tool that is not in the catalogue is left out: the gate over required tools will name it."""
    done = {completed.step.id for completed in request.completed}
    steps = {step.id: step for step in plan.steps if not step.is_completion}
    notes: list[str] = []
    names = _fresh_ids({*(step.id for step in plan.steps), *request.used_ids, *done})
    for tool in list_required_tools(request.room, request.topics):
        spec = request.catalogue.tool(tool)
        if spec is None or any(step.tool == tool for step in steps.values()):
            continue
        added = _step(spec, next(names), request)
        steps[added.id] = added
        notes.append(f"{tool} is required here and was added" + (" again" if tool in request.redo else ""))
    _order_after_prerequisites(steps, request, done, notes)
    request_readers = _use_request_text(steps, request, done, named)
    ordered = _order_steps(sort_by_dependencies(list(steps.values()), ()), done, request_readers)
    closing = [
        step.model_copy(update={"depends_on": tuple(other.id for other in ordered)})
        for step in plan.steps
        if step.is_completion
    ]
    adjusted = plan.model_copy(update={"steps": (*ordered, *closing)})
    finished = finish_plan(adjusted, needs_completion=True, has_model=has_model, used_ids=request.used_ids)
    return AdjustedPlan(finished, tuple(notes))


def _step(spec: ToolSpec, step_id: str, request: PlanningRequest) -> PlanStep:
    return PlanStep(
        id=step_id,
        executor="agent",
        action=action_of(spec.name),
        tool=spec.name,
        args=_default_args(spec, request),
        intent=spec.hints.intent or f"call {spec.name}, which is required here",
        effect=spec.effect,
    )


def _order_after_prerequisites(
    steps: dict[str, PlanStep], request: PlanningRequest, done: set[str], notes: list[str]
) -> None:
    """Lets every new step wait for the steps of the tools that its result is built from (`PlanHints.runs_after`)."""
    for step in [step for step in steps.values() if step.id not in done]:
        spec = request.catalogue.tool(step.tool)
        sources = spec.hints.runs_after if spec is not None else ()
        searches = [other for other in steps.values() if other.tool in sources]
        for search in searches:
            search_spec = request.catalogue.tool(search.tool)
            waits = search.id not in done and step.id in _transitive_dependencies(search, steps)
            if search_spec is not None and waits:
                own = {name: value for name, value in search.args.items() if not find_references(value)}
                fresh = _step(search_spec, search.id, request)
                steps[search.id] = fresh.model_copy(update={"args": {**fresh.args, **own}})
                notes.append(f"{search.tool} no longer waits for {step.tool}, which is built from it")
        if searches:
            depends_on = dict.fromkeys((*step.depends_on, *(search.id for search in searches)))
            steps[step.id] = step.model_copy(update={"depends_on": tuple(depends_on)})


def _use_request_text(
    steps: dict[str, PlanStep], request: PlanningRequest, done: set[str], named: Collection[str]
) -> frozenset[str]:
    """Gives the last step of each tool with `PlanHints.reads_request` the user's own words. Returns the steps' ids.

    Such a step waits for nothing. A step that was done, and a tool whose arguments the caller has `named`, stay."""
    last = {step.tool: step for step in steps.values() if step.action != "skill"}
    readers = set()
    for tool, step in last.items():
        spec = request.catalogue.tool(tool)
        if spec is None or not spec.hints.reads_request or step.id in done or tool in named:
            continue
        own = {name: value for name, value in _default_args(spec, request).items() if name in _TEXTS}
        steps[step.id] = step.model_copy(update={"args": {**step.args, **own}, "depends_on": ()})
        readers.add(step.id)
    return frozenset(readers)


def _order_steps(ordered: list[PlanStep], done: set[str], last: frozenset[str]) -> list[PlanStep]:
    """Orders dependencies first, done steps before new ones, and the steps `last` at the end if nothing needs them."""
    ordered = sorted(ordered, key=lambda step: step.id not in done)
    used = {name for step in ordered for name in step.depends_on}
    return sorted(ordered, key=lambda step: step.id in last and step.id not in used)


def _transitive_dependencies(step: PlanStep, steps: Mapping[str, PlanStep]) -> set[str]:
    """The ids of everything a step builds on."""
    found: set[str] = set()
    waiting = list(step.depends_on)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += steps[name].depends_on if name in steps else ()
    return found


def _fit_step_args(
    spec: ToolSpec, given: JsonObject, request: PlanningRequest, step_id: str, notes: list[str]
) -> JsonObject:
    """The arguments a tool knows and can take, over its defaults."""
    args = _default_args(spec, request)
    for name, value in given.items():
        if value in ("", None):  # a strict schema of pairs makes models name what they know nothing of
            continue
        problem = _find_argument_problem(spec, name, value)
        if problem is None:
            args[name] = value
        else:
            notes.append(f"step {step_id}: {spec.name}: dropped {name!r}: {problem}")
    return args


def _default_args(spec: ToolSpec, request: PlanningRequest) -> JsonObject:
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
            value = quote_literal(value[:longest] if isinstance(longest, int) else value)
        if value is not None and _find_argument_problem(spec, name, value) is None:
            args[name] = value
    return args


def _find_argument_problem(spec: ToolSpec, name: str, value: JsonValue) -> str | None:
    """Why a tool cannot take this argument; None when it can."""
    schema = _properties(spec).get(name)
    if schema is None:
        return "there is no such input"
    problems = find_argument_problems({"type": "object", "properties": {name: schema}}, {name: value})
    return problems[0] if problems else None


def _properties(spec: ToolSpec) -> dict[str, JsonObject]:
    properties = spec.input_schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    return {name: schema for name, schema in known.items() if isinstance(schema, dict)}


def _fresh_ids(taken: Collection[str]) -> Iterator[str]:
    return (f"s{number}" for number in range(1, 10_000) if f"s{number}" not in taken)
