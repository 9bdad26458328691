"""`ask_for_each`: all calls of a change that a request asks for with each of several things.

A small model makes such a change once and says that all of it is done. Asked for all calls in one list, it writes them.
They are one list step, so that a person sees them in one question.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from agent.core.errors import ModelError, PlanInvalidError
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject, PlanStep
from agent.core.plan_references import ITEM
from agent.llm.port import ResponseSchema
from agent.llm.prompts import render
from agent.planning.list_steps import FOR_EACH
from agent.planning.open_parts import LOOKS_UP
from agent.planning.parse import read_last_object
from agent.planning.planner import PlannerModel, build_plan_steps
from agent.planning.reply import PlanReply, list_calls, list_todo
from agent.planning.request import PlanningRequest
from agent.planning.rounds.dialogue import Dialogue
from agent.planning.rounds.input_schemas import build_inputs_schema, close_object, read_inputs
from agent.planning.rounds.known_words import KnownWords, is_known, list_known_texts, split_words
from agent.planning.rounds.made_up_values import MadeUpValue, find_made_up_values
from agent.planning.rounds.prompt import encode_decision, say
from agent.text.own_words import OwnWords
from agent.text.quantifiers import asks_for_each, list_joined_codes
from agent.text.terms import extract_terms
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign, split_name
from agent.tools.client_tools import CLIENT_ORIGIN
from agent.tools.spec import limit_numbers

MAX_CALLS = 20
"""Calls that a model is asked for at once: it writes some twenty tokens for each."""


@dataclass(frozen=True, slots=True)
class _Call:
    spec: ToolSpec
    inputs: JsonObject
    part: str

    def build_steps(self, request: PlanningRequest) -> Sequence[PlanStep]:
        """Raises `PlanInvalidError`."""
        call: JsonObject = {"tool": self.spec.name, "inputs": self.inputs, "intent": self.part}
        return build_plan_steps({"steps": [call]}, request).steps


async def ask_for_each(
    model: PlannerModel, request: PlanningRequest, dialogue: Dialogue, decision: PlanReply
) -> PlanReply:
    """The decision with all calls of its change, if the request asks for it with each of several things; else as it is.

    Where the change makes up a number, such as a new price, each thing is read first. An input that the request states
    stays as it is in all calls, unless it is one of a list or span there. Raises `PlanInvalidError`."""
    call = _find_change(request, dialogue, decision.data)
    if call is None:
        return decision
    look = _find_look(request, call)
    if look is not None:
        call, decision = look, _replace_call(decision, look, look.inputs)
        dialogue.parts = [*dict.fromkeys(filter(None, (call.part, *dialogue.parts[1:], *list_todo(decision.data))))]
        decision.data[LOOKS_UP] = True
    try:
        listed = await _ask(model, dialogue, call, decision)
    except ModelError:  # one of the things is better than none
        return decision
    made = [one.args for one in request.rounds if one.tool == call.spec.name and not one.failed]
    if call.inputs not in listed or call.inputs in made:  # it lists something else
        return decision
    new = [one for place, one in enumerate(listed) if one not in listed[:place] and one not in made]
    new = [one for one in new if one == call.inputs or _may_follow(replace(call, inputs=one), call, request)]
    if len(new) < 2:
        return decision
    values = [str(value) for one in new for name, value in one.items() if value != call.inputs[name]]
    dialogue.parts[1:] = _leave_out_served(dialogue.parts[1:], call.spec, values, request)
    parts = _leave_out_served(list_todo(decision.data), call.spec, values, request)
    joined = _replace_call(decision, call, _join(new))
    return PlanReply({**joined.data, "todo": [*dict.fromkeys(filter(None, (call.part, *parts)))]})


def _find_change(request: PlanningRequest, dialogue: Dialogue, data: JsonObject) -> _Call | None:
    """The only call of a decision, if it changes one thing and the request asks for that with each of several."""
    calls = list_calls(data)
    inputs = calls[0].get("inputs") if len(calls) == 1 else None
    if not request.checks_answers or not isinstance(inputs, dict) or not inputs or FOR_EACH in inputs:
        return None
    spec = next((one for one in dialogue.tools if one.name == calls[0].get("tool")), None)
    if spec is None or not spec.has_side_effect or not _takes_lists(spec):
        return None
    call = _Call(spec, inputs, str(calls[0].get("intent") or ""))
    values = (value for value in inputs.values() if isinstance(value, str))
    action = " ".join((split_name(spec.name), call.part, *values))
    return call if asks_for_each(request.question, action) else None


def _takes_lists(spec: ToolSpec) -> bool:
    """Whether one list step may make several calls of a tool: none of a client's, and of ours none whose every call a
    person must see explained."""
    is_explained = spec.requires_approval and not is_foreign(spec)
    return spec.origin != CLIENT_ORIGIN and not is_explained and FOR_EACH not in spec.properties


def _find_look(request: PlanningRequest, call: _Call) -> _Call | None:
    """The call that reads the thing of which a change makes a number up: what it was before, only a look shows. None if
    no tool of its server reads that, or it was read."""
    made_up = find_made_up_values(call.build_steps(request), request)
    if not made_up or any(isinstance(one.value, str) or one.is_derived for one in made_up):
        return None
    names = {one.name for one in made_up}
    given = {name: value for name, value in call.inputs.items() if name not in names}
    read = [(one.tool, one.args) for one in request.rounds]
    for spec in request.catalogue.tools:
        needed = spec.required
        if spec.origin != call.spec.origin or spec.effect != "read" or not needed or not given.keys() >= {*needed}:
            continue
        inputs = {name: given[name] for name in needed}
        if (spec.name, inputs) not in read:
            return _Call(spec, inputs, call.part)
    return None


async def _ask(model: PlannerModel, dialogue: Dialogue, call: _Call, decision: PlanReply) -> list[JsonObject]:
    """The inputs of all calls, as the model lists them."""
    decided: JsonObject = {"for": 1, "tool": call.spec.name, "inputs": call.inputs}
    turn: JsonObject = {"next": {"kind": "calls", "todo": decision.data.get("todo") or [], "calls": [decided]}}
    question = render("decide_each", tool=call.spec.name)
    messages = (*dialogue.messages, say("assistant", encode_decision(turn)), say("user", question))
    inputs = build_inputs_schema(call.spec)
    listed: JsonObject = {"type": "array", "items": inputs, "minItems": 1, "maxItems": MAX_CALLS}
    reply = await model.ask(messages, ResponseSchema("calls", close_object({"calls": listed})))
    calls = read_last_object(reply.text, "calls").get("calls")
    entries = [one for one in (calls if isinstance(calls, list) else []) if isinstance(one, dict)]
    return [limit_numbers(call.spec, read_inputs(one, call.spec.input_schema)) for one in entries]


def _may_follow(other: _Call, call: _Call, request: PlanningRequest) -> bool:
    """Whether a listed call may be meant beside the decided one: it differs in what names a thing, which the request
    does not fix, and each of its values is in the request or in results, or computed of them."""
    inputs, own = other.inputs, call.inputs
    varying = {name for name in own if inputs.get(name) != own[name]}
    if inputs.keys() != own.keys() or any(_is_fixed(own[name], request) for name in varying):
        return False
    try:
        steps = other.build_steps(request)
    except PlanInvalidError:
        return False
    if all(MadeUpValue(steps[0], call.spec, name, own[name]).is_written for name in varying):
        return False  # other words for the same thing
    if call.spec.has_side_effect:
        return all(one.is_derived for one in find_made_up_values(steps, request))
    words = KnownWords(list_known_texts(request))
    leaves = (value for _, value in iter_leaves(inputs) if isinstance(value, str | int | float))
    return all(is_known(value, words, words) for value in leaves)


def _is_fixed(value: JsonValue, request: PlanningRequest) -> bool:
    """Whether the request states a value as the only one: neither in a list of codes nor at the end of a span."""
    own = OwnWords(request.question, request.original)
    if not own.hold(value) or str(value) in list_joined_codes(request.question):
        return False
    if not isinstance(value, int | float):
        return True
    words = KnownWords([request.question], counted=[request.question])
    return not any(value in ends for ends in words.spans)


def _leave_out_served(
    parts: Sequence[str], spec: ToolSpec, values: Sequence[str], request: PlanningRequest
) -> list[str]:
    """The parts without those that are named after the tool and have a value of a listed call, or a number that stands
    nowhere: "comment on ticket 4". A small model lists a part for each thing, and counts on."""
    words = KnownWords(list_known_texts(request))
    names = {*extract_terms(split_name(spec.name.rpartition("__")[2]))}
    listed = [{*split_words(value)} for value in values]

    def is_served(part: str) -> bool:
        own = {*split_words(part)}
        counts_on = not all(map(words.hold, filter(str.isdigit, own)))
        return not names.isdisjoint(extract_terms(part)) and (counts_on or any(one and one <= own for one in listed))

    return [part for part in parts if not is_served(part)]


def _replace_call(decision: PlanReply, call: _Call, inputs: JsonObject) -> PlanReply:
    """The decision with this call in place of its only one."""
    step: JsonObject = {"tool": call.spec.name, "inputs": inputs, "intent": call.part}
    return PlanReply({**decision.data, "steps": [step]})


def _join(calls: Sequence[JsonObject]) -> JsonObject:
    """The inputs of the list step that makes these calls."""
    first = calls[0]
    varying = [name for name in first if any(one[name] != first[name] for one in calls)]
    if len(varying) == 1:
        items: list[JsonValue] = [one[varying[0]] for one in calls]
        return {FOR_EACH: items, **first, varying[0]: f"${ITEM}"}
    fields = {name: f"v{place}" for place, name in enumerate(varying, start=1)}  # a name need be no identifier
    objects: list[JsonValue] = [{field: one[name] for name, field in fields.items()} for one in calls]
    return {FOR_EACH: objects, **first, **{name: f"${ITEM}.{field}" for name, field in fields.items()}}
