"""Decisions without their useless calls: repeated, copied from the prompt's examples, or of made-up addresses."""

import re
from collections.abc import Callable, Collection
from typing import NamedTuple

from agent.core.models import JsonObject
from agent.planning.reply import list_calls, list_todo
from agent.planning.request import PlanningRequest
from agent.planning.rounds.made_up_addresses import holds_made_up_address
from agent.planning.rounds.made_up_values import leave_out_unasked_texts
from agent.planning.rounds.other_values import take_accepted_values
from agent.planning.rounds.wider_looks import (
    leave_out_made_up_codes,
    leave_out_unstated,
    name_stated_choices,
    name_stated_date,
)
from agent.text.terms import extract_terms
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign, split_name
from agent.tools.spec import limit_numbers

_NAMED_FIGURE = re.compile(r"(?<![\w.])(?!pi\b)[^\W\d]\w+\b(?! ?\()")
"""A word that is neither a function nor a constant of an expression."""


class TidyDecision(NamedTuple):
    """A decision without its useless calls."""

    data: JsonObject
    made_up: frozenset[str]
    """The tools of calls that were left out because nobody named the address that they read."""


def tidy_calls(data: JsonObject, request: PlanningRequest, is_copied: Callable[[str], bool]) -> TidyDecision:
    """A decision with each call once, whose calls that read ask for no more than their tools give.

    A part for which a look was only repeated stays open if it is named after a change. Left out with their parts are
    calls that were made before, and of those that read, those of addresses that are made up, and those for a part that
    `is_copied` from examples. So is a computation of what the other calls are to find, whose part stays open. Of a
    decision that only repeats calls, the first stays; otherwise it may be that none does."""
    calls = [_limit_call(call, request) for call in list_calls(data)]
    earlier: list[object] = [(call.tool, call.args) for call in request.rounds if not call.failed]
    repeated: list[int] = []
    useless: list[int] = []
    waiting: list[int] = []
    made_up: set[str] = set()
    for place, call in enumerate(calls):
        own = call.get("tool"), call.get("inputs")
        spec = request.catalogue.get_tool(str(call.get("tool")))
        # A whole plan, of an endpoint without schemas, names its steps: others may need what one of them reads.
        is_named = "id" in call
        is_reading = spec is not None and spec.effect == "read" and not is_named
        if spec is not None and is_reading and holds_made_up_address(call.get("inputs"), request):
            made_up.add(spec.name)
            useless.append(place)
        elif is_reading and _get_part(call) and is_copied(_get_part(call)):
            useless.append(place)
        elif spec is not None and is_reading and len(calls) > 1 and _names_figure(spec, call):
            waiting.append(place)
        elif not is_named and own in earlier:
            repeated.append(place)
        earlier.append(own)
    lost = {*useless, *repeated}
    if len(lost | {*waiting}) < len(calls):
        lost |= {*waiting}
    if len(lost) == len(calls) and repeated:
        lost.discard(repeated[0])
    open_parts = {part for place in {*repeated} & lost if (part := _find_change_part(calls[place], request))}
    open_parts |= {_get_part(calls[place]) for place in lost & {*waiting}}
    return TidyDecision(drop_calls({**data, "steps": [*calls]}, lost, open_parts), frozenset(made_up))


def _names_figure(spec: ToolSpec, call: JsonObject) -> bool:
    """Whether a call computes with a name in place of a figure, such as `max_salary * 1.1`."""
    inputs = call.get("inputs")
    expression = inputs.get(spec.hints.computes) if isinstance(inputs, dict) else None
    return isinstance(expression, str) and _NAMED_FIGURE.search(expression) is not None


def drop_calls(data: JsonObject, places: Collection[int], parts_left: Collection[str] = ()) -> JsonObject:
    """A decision without its calls at these places, and without the parts that only they were for, except those that
    are left open."""
    calls = list_calls(data)
    left = {_get_part(call) for place, call in enumerate(calls) if place not in places} | {*parts_left}
    lost = {*map(_get_part, calls)} - left
    todo = list_todo(data)
    parts: JsonObject = {"todo": [part for part in todo if part not in lost]} if todo else {}
    return {**data, **parts, "steps": [call for place, call in enumerate(calls) if place not in places]}


def _find_change_part(call: JsonObject, request: PlanningRequest) -> str:
    """The part that a call which reads is said to be for, if the name of a tool that changes something has a word of
    it, and the name of the called one has none; "" otherwise."""
    part, tool = _get_part(call), str(call.get("tool"))
    spec = request.catalogue.get_tool(tool)
    terms = {*extract_terms(part)}
    if spec is None or spec.effect != "read" or not terms.isdisjoint(_list_name_terms(tool)):
        return ""
    changing = (one.name for one in request.catalogue.tools if one.has_side_effect)
    return part if any(not terms.isdisjoint(_list_name_terms(name)) for name in changing) else ""


def _list_name_terms(tool: str) -> list[str]:
    return extract_terms(split_name(tool.rpartition("__")[2]))


def _get_part(call: JsonObject) -> str:
    """The part of the request that a call is for; "" where the model does not say."""
    return str(call.get("intent") or "")


def _limit_call(call: JsonObject, request: PlanningRequest) -> JsonObject:
    """A call whose inputs name no more than is known, and within the limits of their schema."""
    inputs, spec = call.get("inputs"), request.catalogue.get_tool(str(call.get("tool")))
    if not isinstance(inputs, dict) or spec is None:
        return call
    stated = inputs
    if spec.effect == "read":
        accepted = take_accepted_values(spec, inputs, request)
        stated = name_stated_date(name_stated_choices(spec, accepted, request), request)
        leave_out = leave_out_unstated if is_foreign(spec) else leave_out_made_up_codes
        stated = leave_out(spec, stated, request)
    elif is_foreign(spec):
        stated = leave_out_unasked_texts(spec, inputs, request)
    return {**call, "inputs": limit_numbers(spec, stated)}
