"""Labels the steps of a plan that was made after untrusted text was in the prompt: is this what the user asked for?

A step's tool is the user's choice if a plan from before named it. If only the conversation holds untrusted text, it is
also the user's choice if this request asks for it. A literal is the user's if it is in the user's words.
"""

from collections.abc import Collection, Iterable, Mapping

from pydantic import JsonValue

from agent.core.events import StepLabel, TaintSource
from agent.core.json_schema import get_properties
from agent.core.models import JsonObject, Plan, PlanStep
from agent.core.plan_references import find_references, list_literals
from agent.core.run_state import RunState
from agent.execution.argument_trust import find_joined, is_named
from agent.execution.confirmed_values import is_confirmed, list_confirmed_values
from agent.execution.run_catalogue import build_catalogue
from agent.planning.open_parts import MAY_CHANGE
from agent.run_context.message_labels import collect_own_words, get_own_prompt
from agent.run_context.run import Run
from agent.text.own_words import OwnWords
from agent.tools import ToolSpec
from agent.tools.catalogue import CatalogueIndex

LABELLED_SOURCES: frozenset[TaintSource] = frozenset(
    {"conversation", "history", "unknown_answers", "attachment", "room", "results", "ground"}
)
"""After other untrusted text, such as a recipe's, nothing of the plan counts as the user's."""


def label_steps(run: Run, plan: Plan, sources: Collection[TaintSource]) -> tuple[StepLabel, ...]:
    """The label of every step that calls something, in a plan that came after text of these sources; () if nothing
    counts as the user's."""
    if not LABELLED_SOURCES.issuperset(sources):
        return ()
    if "conversation" in sources and not _is_conversation_stored(run.state):
        return ()
    specs = {spec.name: spec for spec in build_catalogue(run).tools}
    words = collect_own_words(run)
    return tuple(_label_step(run, plan, step, words, specs, sources) for step in plan.steps if step.is_work)


def _is_conversation_stored(state: RunState) -> bool:
    """Whether the untrusted text of a conversation is in answers that were stored here, beside the user's own
    messages; not in the request itself, and not in what a client's tools returned.
    """
    return not state.has_untrusted_prompt and state.retrieval is not None and state.retrieval.source == "conversation"


def _label_step(
    run: Run,
    plan: Plan,
    step: PlanStep,
    words: OwnWords,
    specs: Mapping[str, ToolSpec],
    sources: Collection[TaintSource],
) -> StepLabel:
    before = _list_pending_calls(run.state, step.tool)
    confirmed = list_confirmed_values(run.state)
    spec = specs.get(step.tool)
    schema = spec.input_schema if spec is not None else {}
    joined = find_joined(words, spec, step.args)
    untrusted = tuple(
        name
        for name, value in step.args.items()
        if name not in joined
        and not (spec is not None and is_named(words, spec, name, value))
        and not _is_held(
            words,
            value,
            _get_property(schema, name),
            spec.get_label(name) if spec is not None else name,
            is_task=step.action == "skill",
        )
        and not is_confirmed(confirmed, step.tool, name, value)
        and not any(name in call.args and call.args[name] == value for call in before)
    )
    trusted = True
    if run.state.has_side_effect(step.tool, step.effect):
        # With a reference, a plan from before named the tool, but not what it would work on now.
        trusted = bool(before) and not find_references(step.args)
        trusted = trusted or _is_allowed(plan, step.tool)
        if not trusted and "results" not in sources:
            trusted = _is_asked_for(run.state, step, specs.values())
    roles = {name: spec.get_role(name) for name in untrusted} if spec is not None else {}
    return StepLabel(step_id=step.id, tool_trusted=trusted, untrusted_args=untrusted, roles=roles)


def _is_allowed(plan: Plan, tool: str) -> bool:
    """Whether a round's planner found, before any text from outside, that the request asks for this tool."""
    named = (step.args.get(MAY_CHANGE) for step in plan.steps if step.is_plan_more)
    return any(isinstance(tools, list) and tool in tools for tools in named)


def _list_pending_calls(state: RunState, tool: str) -> list[PlanStep]:
    """The calls of a tool that earlier plans named before untrusted text was read, and that were not made."""
    return [
        step
        for proposed in state.plans
        for step in proposed.plan.steps
        if step.tool == tool and not proposed.is_from_outside(step.id) and state.get_step(step.id).status != "succeeded"
    ]


def _is_held(words: OwnWords, value: JsonValue, schema: JsonObject, label: str, *, is_task: bool) -> bool:
    """Whether every literal in an argument is the user's, or says what leaving the argument out would say."""
    if "default" in schema and schema["default"] == value:
        return True
    literals = list_literals(value)
    if is_task:  # a task for a model, in the planner's wording
        return all(words.hold(one) or (isinstance(one, str) and words.state(one)) for one in literals)
    return all(words.hold(one, label) for one in literals) and all(map(words.hold, _list_free_keys(value, schema)))


def _list_free_keys(value: JsonValue, schema: JsonObject) -> list[str]:
    """The keys of an object that its schema does not name: the plan's author made them up."""
    if isinstance(value, list):
        items = schema.get("items")
        return [key for one in value for key in _list_free_keys(one, items if isinstance(items, dict) else {})]
    if not isinstance(value, dict) or value.keys() & {"$from", "$literal"}:
        return []
    free = [key for key in value if key not in get_properties(schema)]
    return free + [key for name, one in value.items() for key in _list_free_keys(one, _get_property(schema, name))]


def _is_asked_for(state: RunState, step: PlanStep, specs: Iterable[ToolSpec]) -> bool:
    """Whether this request asks for the tool: no other tool with a side effect fits its words better."""
    effects = [spec for spec in specs if spec.has_side_effect]
    scores = CatalogueIndex(effects).compute_scores(get_own_prompt(state)) if effects else {}
    best = max(scores.values(), default=0.0)
    return best > 0 and scores.get(step.tool, 0.0) >= best


def _get_property(schema: JsonObject, name: str) -> JsonObject:
    property_schema = get_properties(schema).get(name)
    return property_schema if isinstance(property_schema, dict) else {}
