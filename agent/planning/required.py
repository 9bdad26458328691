"""Adds the tools that a room requires to every plan and fits the arguments to the tools' schemas.

`PlanHints` of the tools give the order: a tool runs after those whose results it uses. Arguments are merged with
defaults, and unknown ones are dropped.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from agent.core.models import JsonObject, Plan, PlanStep
from agent.core.plan_references import find_references, quote_literal
from agent.planning.list_steps import FOR_EACH
from agent.planning.normalise import RawPlan
from agent.planning.request import PlanningRequest
from agent.planning.validate import find_argument_problems, finish_plan, iter_free_ids, sort_by_dependencies
from agent.tools import ToolSpec

CONTEXT_KEYS: Final = ("service", "priority", "severity", "status")
"""Facts that a caller's system may pass with a task."""
CONTEXT_CHARS = 200
_TEXTS = frozenset({"text", "prompt", "input"})
_QUERIES = frozenset({"query", "question"})
_FILTERS = frozenset({"service", "severity"})


def extract_context(metadata: Mapping[str, JsonValue]) -> dict[str, str]:
    """The known facts of `metadata.context`, trimmed. Omits empty and unknown ones."""
    given = metadata.get("context")
    return split_context(given)[0] if isinstance(given, dict) else {}


def split_context(given: Mapping[str, JsonValue]) -> tuple[dict[str, str], list[str]]:
    """The known facts, trimmed, and the names of the dropped ones."""
    constraints: dict[str, str] = {}
    dropped: list[str] = []
    for name, value in given.items():
        text = str(value).strip()[:CONTEXT_CHARS] if isinstance(value, str | int | float) else ""
        if name not in CONTEXT_KEYS or isinstance(value, bool | dict | list):
            dropped.append(name)
        elif text:
            constraints[name] = text
    return constraints, dropped


@dataclass(frozen=True, slots=True)
class AdjustedPlan:
    """A plan with the room's required tools. `notes` describes the changes in sentences."""

    plan: Plan
    notes: tuple[str, ...] = ()


def fit_arguments(raw: RawPlan, request: PlanningRequest) -> tuple[RawPlan, tuple[str, ...]]:
    """A model's plan with arguments that fit the tools' schemas, and notes about dropped arguments.

    Missing arguments take their defaults. The plan is not yet validated."""
    notes: list[str] = []
    steps = []
    for step in raw.steps:
        spec = request.catalogue.get_tool(step.tool)
        if spec is not None:
            step = replace(step, args=_fit_step_args(spec, step.args, request, step.id, notes))  # noqa: PLW2901
        steps.append(step)
    return replace(raw, steps=tuple(steps)), tuple(notes)


def add_required_tools(
    plan: Plan, request: PlanningRequest, *, has_model: bool, named: Collection[str] = ()
) -> AdjustedPlan:
    """The plan with every required tool of the catalogue. Keeps completed steps, and the arguments of the tools
    in `named`, which the caller sets.

    Omits a tool that is missing from the catalogue: the gate for required tools reports it."""
    earlier = request.earlier_plans
    done = earlier.completed.keys()
    steps = {step.id: step for step in plan.steps if not step.is_completion}
    notes: list[str] = []
    names = iter_free_ids({*(step.id for step in plan.steps), *earlier.used_ids, *done})
    for tool in request.room.list_required_tools(request.topics):
        spec = request.catalogue.get_tool(tool)
        if spec is None or any(step.tool == tool for step in steps.values()):
            continue
        added = _build_step(spec, next(names), request)
        steps[added.id] = added
        notes.append(f"{tool} is required here and was added" + (" again" if tool in earlier.redo else ""))
    _order_after_prerequisites(steps, request, done, notes)
    request_readers = _use_request_text(steps, request, done, named)
    ordered = _order_steps(sort_by_dependencies(list(steps.values()), ()), done, request_readers)
    closing = [
        step.model_copy(update={"depends_on": tuple(other.id for other in ordered)})
        for step in plan.steps
        if step.is_completion
    ]
    adjusted = plan.model_copy(update={"steps": (*ordered, *closing)})
    finished = finish_plan(adjusted, needs_completion=True, has_model=has_model, used_ids=earlier.used_ids)
    return AdjustedPlan(finished, tuple(notes))


def _build_step(spec: ToolSpec, step_id: str, request: PlanningRequest) -> PlanStep:
    return PlanStep(
        id=step_id,
        executor="agent",
        action=spec.step_action,
        tool=spec.name,
        args=_get_default_args(spec, request),
        intent=spec.hints.intent or f"call {spec.name}, which is required here",
        effect=spec.effect,
    )


def _order_after_prerequisites(
    steps: dict[str, PlanStep], request: PlanningRequest, done: AbstractSet[str], notes: list[str]
) -> None:
    """Makes every new step depend on the steps whose results it uses (`PlanHints.runs_after`)."""
    for step in [step for step in steps.values() if step.id not in done]:
        spec = request.catalogue.get_tool(step.tool)
        sources = spec.hints.runs_after if spec is not None else ()
        searches = [other for other in steps.values() if other.tool in sources]
        for search in searches:
            search_spec = request.catalogue.get_tool(search.tool)
            waits = search.id not in done and step.id in _find_transitive_dependencies(search, steps)
            if search_spec is not None and waits:
                own = {name: value for name, value in search.args.items() if not find_references(value)}
                fresh = _build_step(search_spec, search.id, request)
                steps[search.id] = fresh.model_copy(update={"args": {**fresh.args, **own}})
                notes.append(f"{search.tool} no longer waits for {step.tool}, which is built from it")
        if searches:
            depends_on = dict.fromkeys((*step.depends_on, *(search.id for search in searches)))
            steps[step.id] = step.model_copy(update={"depends_on": tuple(depends_on)})


def _use_request_text(
    steps: dict[str, PlanStep], request: PlanningRequest, done: AbstractSet[str], named: Collection[str]
) -> frozenset[str]:
    """Gives the last step of each tool with `PlanHints.reads_request` the user's words. Returns the steps' ids.

    Such a step has no dependencies. Completed steps, and tools in `named`, stay unchanged."""
    last = {step.tool: step for step in steps.values() if step.action != "skill"}
    readers = set()
    for tool, step in last.items():
        spec = request.catalogue.get_tool(tool)
        if spec is None or not spec.hints.reads_request or step.id in done or tool in named:
            continue
        own = {name: value for name, value in _get_default_args(spec, request).items() if name in _TEXTS}
        steps[step.id] = step.model_copy(update={"args": {**step.args, **own}, "depends_on": ()})
        readers.add(step.id)
    return frozenset(readers)


def _order_steps(ordered: list[PlanStep], done: AbstractSet[str], last: frozenset[str]) -> list[PlanStep]:
    """Completed steps before new ones, dependencies first. Steps of `last` that no step needs come last."""
    ordered = sorted(ordered, key=lambda step: step.id not in done)
    used = {name for step in ordered for name in step.depends_on}
    return sorted(ordered, key=lambda step: step.id in last and step.id not in used)


def _find_transitive_dependencies(step: PlanStep, steps: Mapping[str, PlanStep]) -> set[str]:
    """The ids of all direct and indirect dependencies of a step."""
    transitive_dependencies: set[str] = set()
    waiting = list(step.depends_on)
    while waiting:
        name = waiting.pop()
        if name not in transitive_dependencies:
            transitive_dependencies.add(name)
            waiting += steps[name].depends_on if name in steps else ()
    return transitive_dependencies


def _fit_step_args(
    spec: ToolSpec, given: JsonObject, request: PlanningRequest, step_id: str, notes: list[str]
) -> JsonObject:
    """The arguments that the tool accepts, merged over its defaults. Adds a note for each dropped one."""
    args = _get_default_args(spec, request)
    for name, value in given.items():
        if value in ("", None):  # with a strict schema of pairs, models list inputs without a value
            continue
        problem = _find_argument_problem(spec, name, value) if name != FOR_EACH else None
        if problem is None:
            args[name] = value
        else:
            notes.append(f"step {step_id}: {spec.name}: dropped {name!r}: {problem}")
    return args


def _get_default_args(spec: ToolSpec, request: PlanningRequest) -> JsonObject:
    """The arguments that the request itself gives: the text, the question, the caller's context."""
    broadly = spec.name in request.earlier_plans.redo
    args: JsonObject = {}
    for name, schema in _get_properties(spec).items():
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
    """The reason why a tool rejects this argument, or None if it accepts it."""
    schema = _get_properties(spec).get(name)
    if schema is None:
        return "there is no such input"
    problems = find_argument_problems({"type": "object", "properties": {name: schema}}, {name: value})
    return problems[0] if problems else None


def _get_properties(spec: ToolSpec) -> dict[str, JsonObject]:
    return {name: schema for name, schema in spec.properties.items() if isinstance(schema, dict)}
