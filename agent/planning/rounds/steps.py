"""The steps of one round: which changes wait or are left out, and the step that ends it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from agent.core.models import JsonObject, PlanStep
from agent.planning.planned import Planned
from agent.planning.request import PlanningRequest
from agent.planning.rounds.made_up_values import holds_made_up_address, leave_out_unasked_texts, list_unasked_changes
from agent.planning.rounds.other_values import take_accepted_values
from agent.planning.rounds.wider_looks import leave_out_made_up_codes, name_stated_choices
from agent.text.own_words import OwnWords
from agent.text.terms import extract_terms
from agent.tools.catalogue import is_foreign, split_name
from agent.tools.spec import limit_numbers

PLAN_MORE = "plan_more"


class TidyDecision(NamedTuple):
    """A decision without its useless calls."""

    data: JsonObject
    made_up: frozenset[str]
    """The tools of calls that were left out because nobody named the address that they read."""


def tidy_calls(data: JsonObject, request: PlanningRequest, is_copied: Callable[[str], bool]) -> TidyDecision:
    """A decision with each call once, whose calls that read ask for no more than their tools give.

    A part for which a look was only repeated stays open if it is named after a change. Left out with their parts are
    calls that were made before, and of those that read, those of addresses that are made up, and those for a part that
    `is_copied` from examples. Of a decision that only repeats calls, the first stays; otherwise it may be that none
    does."""
    steps = data.get("steps")
    calls = [_limit_call(call, request) for call in (steps if isinstance(steps, list) else [])]
    rounds: list[JsonValue] = [{"tool": one.tool, "inputs": one.args} for one in request.rounds if not one.failed]
    made = [*rounds]
    repeated: list[int] = []
    useless: list[int] = []
    made_up: set[str] = set()
    for place, call in enumerate(calls):
        spec = request.catalogue.get_tool(str(call.get("tool"))) if isinstance(call, dict) else None
        own: JsonValue = {"tool": call.get("tool"), "inputs": call.get("inputs")} if isinstance(call, dict) else call
        # A whole plan, of an endpoint without schemas, names its steps: others may need what one of them reads.
        is_named = isinstance(call, dict) and "id" in call
        is_reading = spec is not None and spec.effect == "read" and not is_named
        inputs, part = (call.get("inputs"), str(call.get("intent") or "")) if isinstance(call, dict) else (None, "")
        is_from_examples = bool(part) and is_copied(part)
        is_twice = not is_named and own in made[len(rounds) :]
        if spec is not None and is_reading and holds_made_up_address(inputs, request):
            made_up.add(spec.name)
            useless.append(place)
        elif is_reading and is_from_examples:
            useless.append(place)
        elif is_twice or (not is_named and own in made):
            repeated.append(place)
        made.append(own)
    lost = {*useless, *repeated}
    if len(lost) == len(calls) and repeated:
        lost.discard(repeated[0])
    open_parts = {part for place in {*repeated} & lost if (part := _find_change_part(calls[place], request))}
    return TidyDecision(drop_calls(data, calls, lost, open_parts), frozenset(made_up))


def _find_change_part(call: JsonValue, request: PlanningRequest) -> str:
    """The part that a call which reads is said to be for, if the name of a tool that changes something has a word of
    it, and the name of the called one has none; "" otherwise."""
    part, tool = (str(call.get("intent") or ""), str(call.get("tool"))) if isinstance(call, dict) else ("", "")
    spec = request.catalogue.get_tool(tool)
    terms = {*extract_terms(part)}
    if spec is None or spec.effect != "read" or not terms.isdisjoint(_list_name_terms(tool)):
        return ""
    changing = (one.name for one in request.catalogue.tools if one.has_side_effect)
    return part if any(not terms.isdisjoint(_list_name_terms(name)) for name in changing) else ""


def _list_name_terms(tool: str) -> list[str]:
    return extract_terms(split_name(tool.rpartition("__")[2]))


def drop_calls(
    data: JsonObject, calls: Sequence[JsonValue], places: Collection[int], parts_left: Collection[str] = ()
) -> JsonObject:
    """A decision with those of its `calls` that are not at these places, and without the parts that only they were
    for, except those that are left open."""
    intents = [str(call.get("intent") or "") if isinstance(call, dict) else "" for call in calls]
    left = {intent for place, intent in enumerate(intents) if place not in places} | {*parts_left}
    lost = {*intents} - left
    todo = data.get("todo")
    parts: JsonObject = {"todo": [part for part in todo if part not in lost]} if isinstance(todo, list) else {}
    return {**data, **parts, "steps": [call for place, call in enumerate(calls) if place not in places]}


def _limit_call(call: JsonValue, request: PlanningRequest) -> JsonValue:
    inputs = call.get("inputs") if isinstance(call, dict) else None
    spec = request.catalogue.get_tool(str(call.get("tool"))) if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(inputs, dict) or spec is None:
        return call
    stated = inputs
    if spec.effect == "read":
        accepted = take_accepted_values(spec, inputs, request)
        stated = name_stated_choices(spec, leave_out_made_up_codes(spec, accepted, request), request)
    elif is_foreign(spec):
        stated = leave_out_unasked_texts(spec, inputs, request)
    return {**call, "inputs": limit_numbers(spec, stated)}


def leave_out_unasked(steps: tuple[PlanStep, ...], request: PlanningRequest, notes: list[str]) -> tuple[PlanStep, ...]:
    """The steps without changes that nobody asked for; all of them if no other is left."""
    unasked = list_unasked_changes(steps, request)
    remaining = drop_steps(steps, unasked)
    if not unasked or not remaining:
        return steps
    notes += [f"{step.tool} is left out: nobody asked for it" for step in steps if step.id in unasked]
    return remaining


def defer_effects(
    steps: Sequence[PlanStep], request: PlanningRequest, notes: list[str], *, all_wait: bool = False
) -> tuple[PlanStep, ...]:
    """The steps of a round without changes beside calls that read: the planner sees what was read first.

    A change does not wait if the request gives its inputs, by their names and their values: nothing that is read can
    make it another one. With `all_wait` each waits: a person is to see them together."""
    changing = [step for step in steps if request.catalogue.has_side_effect(step)]
    if not changing or len(changing) == len(steps):
        return tuple(steps)
    words = OwnWords(request.question, request.original)
    waiting = [step for step in changing if all_wait or not words.hold(dict(step.args))]
    remaining = drop_steps(steps, {step.id for step in waiting})
    if not remaining:  # everything that reads needs what is changed: there is nothing to see first
        return tuple(steps)
    notes += [f"{step.tool} waits until the results of this round are known" for step in waiting]
    return remaining


def drop_steps(steps: Iterable[PlanStep], ids: Collection[str]) -> tuple[PlanStep, ...]:
    """The steps without those of these ids and without all that need their results. Dependencies come first."""
    dropped = set(ids)
    remaining: list[PlanStep] = []
    for step in steps:
        if step.id in dropped or not dropped.isdisjoint(step.depends_on):
            dropped.add(step.id)
        else:
            remaining.append(step)
    return tuple(remaining)


def reword_intents(steps: Iterable[PlanStep], reworded: Mapping[str, str]) -> tuple[PlanStep, ...]:
    """The steps for parts that got other words (`reword_calls`), with these."""
    return tuple(step.model_copy(update={"intent": reworded.get(step.intent, step.intent)}) for step in steps)


def build_plan_more(used_ids: frozenset[str], steps: Sequence[PlanStep], args: JsonObject) -> PlanStep:
    """The step that ends a round after these steps: the planner then sees their results and plans on."""
    all_ids = used_ids | {step.id for step in steps}
    name = next(name for name in (f"more{number}" for number in range(1, 100)) if name not in all_ids)
    return PlanStep(
        id=name,
        executor="agent",
        action="plan_more",
        tool=PLAN_MORE,
        args=args or {},
        depends_on=tuple(step.id for step in steps),
        intent="read the results and plan on",
    )


def mark_round(planned: Planned, args: JsonObject) -> Planned:
    """The round with further arguments of its step `plan_more`."""
    *steps, last = planned.plan.steps
    marked = last.model_copy(update={"args": {**last.args, **args}})
    return replace(planned, plan=planned.plan.model_copy(update={"steps": (*steps, marked)}))
