"""Finds the arguments of a call whose values are not the user's, and decides whether a person must allow them.

A value is the user's if the user's words contain it, if a plan wrote it before any untrusted text was read, if it was
computed from such values only, or if a person confirmed it for this argument of this tool.
"""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from agent.core.models import ArgumentRole, JsonObject, PlanStep
from agent.core.plan_references import ITEM, find_references, list_literals
from agent.core.run_state import RunState
from agent.execution.confirmed_values import is_confirmed, list_confirmed_values
from agent.execution.typed_values import holds_typed_values
from agent.planning.list_steps import FOR_EACH, list_source_ids
from agent.policy.approval import get_call_decision, is_plan_approved
from agent.policy.approval.effect_arguments import find_asked_args
from agent.run_context.calls import CallSite
from agent.run_context.message_labels import collect_own_words
from agent.run_context.outputs import load_output, to_step_output
from agent.run_context.run import Run
from agent.text.own_words import OwnWords
from agent.tools import ToolSpec
from agent.tools.catalogue import get_server_name, is_foreign, split_name
from agent.tools.extracted_fields import EXTRACT

_ID_WORDS = frozenset({"id", "ids", "uid", "key"})
"""Words in the name of a field by which a server's list names its things."""
_EXACT_ROLES: frozenset[ArgumentRole] = frozenset({"where", "amount"})
"""What is nobody's word in any other form than their own."""


async def find_asked_arguments(
    run: Run, spec: ToolSpec, args: JsonObject, site: CallSite
) -> tuple[dict[str, ArgumentRole], tuple[str, ...]]:
    """The arguments of a change that come from outside, with their roles, and those that must be allowed."""
    untrusted = find_untrusted_args(run, spec, args, site)
    step = find_called_step(run.state, spec.name, site)
    typed = [name for name in untrusted if step is not None and _is_typed_by_user(run.state, step, name)]
    if run.room.effects == "ask_any" or not untrusted:
        return untrusted, find_asked_args(untrusted, run.room.effects, typed=typed)
    named = [name for name, role in untrusted.items() if role == "id"]
    listed = [name for name in named if await _is_listed(run, spec, name, args[name])]
    return untrusted, find_asked_args(untrusted, run.room.effects, listed=listed, typed=typed)


def find_untrusted_args(run: Run, spec: ToolSpec, args: JsonObject, site: CallSite) -> dict[str, ArgumentRole]:
    """The arguments whose values are not the user's, with their roles, of a call that may hold such values."""
    state = run.state
    words = collect_own_words(run)
    step = find_called_step(state, spec.name, site)
    recorded = get_call_decision(state, state.get_step(site.step_id).find_attempt(site.attempt), site.call_id)
    # A call that was asked about follows its own answer, which is bound to the tool's description too.
    whole = f"{site.step_id}.{site.attempt}.1" if site.is_allowed else None  # the call that a list is asked about with
    confirmed = () if recorded is not None else list_confirmed_values(state, without_call=whole)
    joined = find_joined(words, spec, args)
    return {
        name: spec.get_role(name)
        for name, value in args.items()
        if value is not None
        and name not in joined
        and not is_default(spec, name, value)
        and not (step is not None and is_planned_by_user(state, step, name))
        and not is_own_value(words, spec, name, value, is_referred=step is not None and refers_to_result(step, name))
        and not is_confirmed(confirmed, spec.name, name, value)
    }


def is_own_value(words: OwnWords, spec: ToolSpec | None, name: str, value: JsonValue, *, is_referred: bool) -> bool:
    """Whether the value of an argument is one of the user's words. `is_referred`: it was taken from a result.

    What a result leaves empty is nobody's word, although no words contradict it: an empty filter means everything. Null
    says what leaving the argument out would say.
    """
    if spec is not None and is_named(words, spec, name, value):
        return True
    is_held = words.hold(value, spec.get_label(name) if spec is not None else name)
    return is_held and not (is_referred and value is not None and _has_blank(value))


def is_named(words: OwnWords, spec: ToolSpec, name: str, value: JsonValue) -> bool:
    """Whether the user's words name a value in another form: one out of a closed set of the argument's schema, by a
    command, or the id of a thing, by its words side by side."""
    choices, role = spec.get_property(name).get("enum"), spec.get_role(name)
    if isinstance(choices, list) and value in choices:
        return role not in _EXACT_ROLES and words.choose(value, choices)
    is_id = role == "id" or (role == "other" and not _ID_WORDS.isdisjoint(split_name(name).lower().split()))
    return is_id and isinstance(value, str) and words.hold_id(value)


def find_joined(words: OwnWords, spec: ToolSpec | None, args: JsonObject) -> frozenset[str]:
    """The arguments that hold an identifier of the user's words in its parts, in the order in which the tool declares
    them: the 24 and the 7 of another order would be anybody's."""
    if spec is None:
        return frozenset()
    joined = words.list_joined({name: args[name] for name in spec.properties if name in args})
    return frozenset(name for name in joined if spec.get_role(name) not in _EXACT_ROLES)


def refers_to_result(step: PlanStep, name: str) -> bool:
    """Whether an argument of a step is made of a result."""
    return bool(list_source_ids(step, step.args.get(name)))


def _has_blank(value: JsonValue) -> bool:
    """Whether a value, or a part of it, has neither a letter nor a digit."""
    if isinstance(value, str):
        return not any(map(str.isalnum, value))
    if isinstance(value, dict):
        return not value or any(map(_has_blank, value.values()))
    return isinstance(value, list) and (not value or any(map(_has_blank, value)))


def is_chosen_by_plan(run: Run, spec: ToolSpec, args: JsonObject, site: CallSite) -> bool:
    """Whether a plan named the tool of a call before untrusted text could: in a step of its own, or as one of
    the tools of a skill's step, which does not make the same call twice.
    """
    state = run.state
    if site.span or site.origin == "rules":
        return False
    if find_called_step(state, spec.name, site) is not None:
        return True
    step = state.find_planned_step(site.step_id)
    if step is None or step.action != "skill" or step.tools is None or spec.name not in step.tools:
        return False
    if state.plans[-1].is_from_outside(step.id) and not is_plan_approved(state):
        return False
    return not any((call.intent.tool, call.intent.args) == (spec.name, args) for call in state.list_calls())


def find_called_step(state: RunState, tool: str, site: CallSite) -> PlanStep | None:
    """The plan's step that is this call itself; None for calls of skills and sub-agents."""
    step = state.find_planned_step(site.step_id)
    return step if step is not None and step.action != "skill" and step.tool == tool and not site.span else None


def is_planned_by_user(state: RunState, step: PlanStep, name: str) -> bool:
    """Whether an argument, as planned, holds no text from outside: neither written nor referred to."""
    outputs = [state.get_step(one).output for one in list_source_ids(step, step.args.get(name))]
    if any(output is None or output.tainted for output in outputs):
        return False
    return _is_written_by_user(state, step, name)


def _is_written_by_user(state: RunState, step: PlanStep, name: str) -> bool:
    """Whether what a plan wrote into an argument itself is the user's, or was approved."""
    planned = step.args.get(name)
    written = [name] if list_literals(planned) else []
    if ITEM in find_references(planned) and list_literals(step.args.get(FOR_EACH)):
        written.append(FOR_EACH)
    if not written or is_plan_approved(state):
        return True
    proposed = state.plans[-1]
    label = proposed.get_label(step.id)
    if label is None:
        return not (proposed.tainted or state.tainted)
    return not any(one in label.untrusted_args for one in written)


def _is_typed_by_user(state: RunState, step: PlanStep, name: str) -> bool:
    """Whether an argument holds, beside the user's own, typed fields only, which the user's plan chose."""
    if not holds_typed_values(state, step, name) or not _is_written_by_user(state, step, name):
        return False
    sources = [one for one in state.plan_steps if one.id in list_source_ids(step, step.args.get(name))]
    return all(one.tool != EXTRACT or _is_written_by_user(state, one, "fields") for one in sources)


def is_default(spec: ToolSpec, name: str, value: JsonValue) -> bool:
    """Whether a value is what leaving the argument out would say."""
    schema = spec.get_property(name)
    return "default" in schema and schema["default"] == value


async def _is_listed(run: Run, spec: ToolSpec, name: str, value: JsonValue) -> bool:
    """Whether a reading tool of the same server returned the value as an id of one of its things."""
    items = value if isinstance(value, list) else [value]
    wanted = {json.dumps(item) for item in items}
    words = _ID_WORDS | set(split_name(name).lower().split())
    for call in run.state.list_calls():
        source = run.engine.registry.find_spec(call.intent.tool)
        if call.result is None or call.result.error_code is not None or source is None:
            continue
        if source.effect != "read" or source.origin != spec.origin or not _is_same_server(source, spec):
            continue
        output = await load_output(run, to_step_output(call.result))
        wanted -= {json.dumps(one) for one in _iter_ids(output.value, words)}
        if not wanted:
            return True
    return False


def _is_same_server(one: ToolSpec, other: ToolSpec) -> bool:
    return not is_foreign(one) or get_server_name(one) == get_server_name(other)


def _iter_ids(value: JsonValue, words: frozenset[str] | set[str]) -> Iterator[JsonValue]:
    """Yields the plain values under names with one of the words: the names are the server's, values may be anyone's."""
    waiting: list[tuple[str, JsonValue]] = [("", value)]
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.items()
        elif isinstance(one, list):
            waiting += [(name, item) for item in one]
        elif words & set(split_name(name).lower().split()):
            yield one
