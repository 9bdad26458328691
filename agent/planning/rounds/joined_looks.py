"""Looks that follow by rule: what belongs to an identifier, and the identifier of what is only described.

The bookings of the guest who was searched for are read by the tools that take an input under whose name a result has
the guest's identifier. "The floor lamp" is looked for by the tools that take words, or nothing. A small model takes the
guest's identifier for the booking's, calls the first tool that fits a word, and narrows it by a room that it makes up.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pydantic import JsonValue

from agent.core.json_schema import get_properties, list_required
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject, PlanStep
from agent.planning.request import NextCall, PlanningRequest, RoundCall
from agent.planning.rounds.identifier_lookups import (
    find_described_value,
    find_text_input,
    is_identifier,
    is_one_code,
    iter_names,
    list_lookups,
)
from agent.planning.rounds.input_schemas import build_inputs_schema, takes_identifier
from agent.planning.rounds.known_words import split_words
from agent.text.json_entries import list_json_objects
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign, split_name

MAX_JOINS = 3
"""Calls of one round that find a thing by another one's identifier."""


class _Identifier(NamedTuple):
    """The identifier of a thing, for the inputs of further tools of the same server."""

    value: JsonValue
    names: AbstractSet[str]
    """The names under which results have it, in one form: inputs with one of them take it."""
    tool: str
    """The tool whose call gave or named it."""
    part: str
    """The open part that this call was for."""


def list_joins(request: PlanningRequest) -> list[NextCall]:
    """The calls that find what a failed call of the last round named by another thing's identifier."""
    identifiers = []
    for call in _list_last(request):
        value = find_described_value(request, call)
        if is_one_code(value):
            identifiers.append(_Identifier(value, _list_names(request, value), call.tool, call.part))
    return _list_calls(request, identifiers)


def list_joins_before(request: PlanningRequest, steps: Iterable[PlanStep], part: str) -> list[NextCall]:
    """The calls that find what a change of these steps names by another thing's identifier, before it is made: a person
    would have to approve it, and it would fail. `part` is what the change is for, unless its step says so."""
    identifiers = []
    for step in steps:
        spec = request.catalogue.get_tool(step.tool)
        if spec is None or not is_foreign(spec) or not request.catalogue.has_side_effect(step):
            continue
        for name, value in step.args.items():
            if isinstance(value, str) and any(map(str.isdigit, value)) and value not in request.question:
                names = _list_names(request, value)
                if _is_of_another(name, names):
                    identifiers.append(_Identifier(value, names, step.tool, part or step.intent))
    return _list_calls(request, identifiers)


def _is_of_another(name: str, names: AbstractSet[str]) -> bool:
    """Whether an input takes an identifier, and results have the value only as that of other things."""
    own = _fold_name(name)
    others = [one for one in names if takes_identifier(one) and one != "id"]
    is_told_apart = takes_identifier(own) and own != "id" and len(others) == len(names)
    return is_told_apart and bool(names) and not any(own.endswith(one) or one.endswith(own) for one in others)


def list_described_looks(request: PlanningRequest) -> list[NextCall]:
    """The calls that find what a failed call of the last round only describes: first by tools that take the words, then
    by those that list all there is."""
    looks: list[NextCall] = []
    for call in _list_last(request):
        value = find_described_value(request, call)
        if value and not is_one_code(value):
            inputs: list[tuple[ToolSpec, JsonObject]] = [
                (one, {name: value} if name else {})
                for one in list_lookups(request, call)
                if (name := find_text_input(one)) is not None
            ]
            inputs.sort(key=lambda one: not one[1])
            made = [(one.tool, one.args) for one in looks]
            looks += [NextCall(one.name, args, call.part) for one, args in inputs if (one.name, args) not in made]
    return looks[:MAX_JOINS]


def list_resolved_calls(request: PlanningRequest) -> list[NextCall]:
    """The calls that failed because they described what is meant in place of its identifier, with the identifier of the
    one thing that a call of the last round found for the words."""
    made = request.made_calls
    entries = [entry for call in _list_last(request) if not call.failed for entry in list_json_objects(call.text)]
    resolved = []
    for call in request.rounds:
        value = find_described_value(request, call)
        if not value or is_one_code(value):
            continue
        words = {*split_words(value)}
        named = [one for one in entries if any(words <= {*split_words(str(leaf))} for _, leaf in iter_leaves(one))]
        args = _replace_described(call.args, value, named)
        if args != call.args and (call.tool, args) not in made:
            made.append((call.tool, args))
            resolved.append(NextCall(call.tool, args, call.part))
    return resolved[:MAX_JOINS]


def _replace_described(args: JsonObject, value: str, named: Sequence[JsonObject]) -> JsonObject:
    """Inputs in which the fields that held a description hold the identifier that all things of this name share under
    the field's name."""

    def replace_in(node: JsonValue, name: str) -> JsonValue:
        if isinstance(node, dict):
            return {key: replace_in(inner, key) for key, inner in node.items()}
        if node != value or not takes_identifier(name):
            return node
        identifiers = {
            inner
            for one in named
            for key, inner in one.items()
            if _fold_name(key) == _fold_name(name) and isinstance(inner, str | int)
        }
        return identifiers.pop() if len(identifiers) == 1 else node

    return {name: replace_in(node, name) for name, node in args.items()}


def list_next_looks(request: PlanningRequest) -> list[NextCall]:
    """The calls that find what belongs to the one thing that was identified, where a part of the request is open: those
    that fit its words best, if any do."""
    looks = list_further_looks(request) if request.progress.open_parts else []
    index = request.catalogue.index
    best: list[NextCall] = []
    for part in request.progress.open_parts:
        scores = index.compute_scores(part)
        most = max((scores[one.tool] for one in looks), default=0.0)
        best += [one for one in looks if most and scores[one.tool] == most and one not in best]
    return best or looks


def list_further_looks(request: PlanningRequest) -> list[NextCall]:
    """The calls that find what belongs to the one thing that a call of the last round identified, if no call had its
    identifier yet under that name, such as a search for the words "SKU-1077". Only for models whose answers are
    questioned: others find the next call themselves."""
    if not request.checks_answers:
        return []
    leaves = [leaf for call in request.rounds for leaf in iter_leaves(call.args)]
    used = {(_fold_name(name), str(leaf)) for path, leaf in leaves for name in path if isinstance(name, str)}
    identifiers = [
        _Identifier(value, {_fold_name(name)}, call.tool, call.part)
        for call in _list_last(request)
        if not call.failed
        for name, value in _read_only_entry(call.text).items()
        if isinstance(value, str | int) and is_identifier(name, str(value))
        if (_fold_name(name), str(value)) not in used
    ]
    return _list_calls(request, identifiers)


def _list_last(request: PlanningRequest) -> Iterator[RoundCall]:
    """The calls of the last round that foreign tools answered."""
    for call in request.last_calls:
        spec = request.catalogue.get_tool(call.tool)
        if spec is not None and is_foreign(spec):
            yield call


def _list_calls(request: PlanningRequest, identifiers: Sequence[_Identifier]) -> list[NextCall]:
    """The calls of the same server's tools that read, with each identifier in the one input that takes it."""
    made = request.made_calls
    joins: list[NextCall] = []
    for identifier in identifiers:
        spec = request.catalogue.get_tool(identifier.tool)
        origin = spec.origin if spec is not None else ""
        for one in request.catalogue.tools:
            if one.origin != origin or one.effect != "read" or len(joins) >= MAX_JOINS:
                continue
            args = _place_value(build_inputs_schema(one), identifier.names, identifier.value)
            if args and (one.name, args) not in made:
                made.append((one.name, args))
                joins.append(NextCall(one.name, args, identifier.part))
    return joins


def _list_names(request: PlanningRequest, value: str) -> frozenset[str]:
    """The names under which results have a value, in one form."""
    return frozenset(map(_fold_name, iter_names(request, value)))


def _read_only_entry(text: str) -> JsonObject:
    """The one thing that a result is about; empty for none or several."""
    things = list_json_objects(text)
    return things[0] if len(things) == 1 else {}


def _place_value(schema: JsonValue, names: AbstractSet[str], value: JsonValue) -> JsonObject:
    """Inputs with the value in the one place that has such a name, at any depth; empty if there is none, or several, or
    other inputs are required."""
    if not isinstance(schema, dict):
        return {}
    choices = schema.get("anyOf")
    alternatives = choices if isinstance(choices, list) else []
    placed = [inputs for one in alternatives if (inputs := _place_value(one, names, value))]
    for name, one in get_properties(schema).items():
        if _fold_name(name) in names:
            placed.append({name: value})
        elif inner := _place_value(one, names, value):
            placed.append({name: inner})
    return placed[0] if len(placed) == 1 and {*list_required(schema)} <= placed[0].keys() else {}


def _fold_name(name: str) -> str:
    return split_name(name).casefold().replace(" ", "_")
