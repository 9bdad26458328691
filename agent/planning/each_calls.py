"""`ask_for_each`: all calls of a change that a request asks for with each of several things.

A small model makes such a change once and says that all of it is done. Asked for all calls in one list, it writes them.
They are one list step, so that a person sees them in one question.
"""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.core.plan_references import ITEM
from agent.llm.port import ResponseSchema
from agent.llm.prompts import render
from agent.planning.input_schemas import build_inputs_schema, close_object
from agent.planning.list_steps import FOR_EACH
from agent.planning.made_up_values import find_made_up_values
from agent.planning.parse import read_last_object
from agent.planning.planner import PlannerModel, build_plan_steps
from agent.planning.reply import PlanReply
from agent.planning.request import PlanningRequest
from agent.planning.round_attempt import Attempt
from agent.planning.round_prompt import encode_decision, say
from agent.text.quantifiers import asks_for_each
from agent.tools import ToolSpec
from agent.tools.catalogue import split_name
from agent.tools.client_tools import CLIENT_ORIGIN

MAX_CALLS = 20
"""Calls that a model is asked for at once: each is a hundred characters that it writes."""


async def ask_for_each(
    model: PlannerModel, request: PlanningRequest, attempt: Attempt, meant: PlanReply
) -> PlanReply:
    """The decision with all calls of its change, if the request asks for it with each of several things; else as it is.
    Raises `ModelError`."""
    spec, call = _find_change(request, attempt, meant.data)
    if spec is None:
        return meant
    question = render("decide_each", tool=spec.name)
    messages = (*attempt.messages, say("assistant", encode_decision(_show(meant.data))), say("user", question))
    reply = await model.ask(messages, _build_schema(spec))
    listed = read_last_object(reply.text, "calls").get("calls")
    calls = [one for one in (listed if isinstance(listed, list) else []) if isinstance(one, dict)]
    own = call["inputs"]
    if own not in calls:  # it lists something else
        return meant
    made = [one.args for one in request.rounds if one.tool == spec.name and not one.failed]
    new = [one for place, one in enumerate(calls) if one not in calls[:place] and one not in made]
    new = [one for one in new if one.keys() == calls[0].keys() and (one == own or _is_given(one, call, request))]
    return PlanReply({**meant.data, "steps": [{**call, "inputs": _join(new)}]}) if len(new) > 1 else meant


def _find_change(
    request: PlanningRequest, attempt: Attempt, data: JsonObject
) -> tuple[ToolSpec, JsonObject] | tuple[None, JsonObject]:
    """The tool and the only call of a decision that changes one thing, where the request asks for it with each."""
    steps = data.get("steps")
    calls = [one for one in (steps if isinstance(steps, list) else []) if isinstance(one, dict)]
    if len(calls) != 1 or not request.checks_answers or not isinstance(inputs := calls[0].get("inputs"), dict):
        return None, {}
    spec = next((one for one in attempt.tools if one.name == calls[0].get("tool")), None)
    if spec is None or not spec.has_side_effect or not inputs or spec.origin == CLIENT_ORIGIN or FOR_EACH in inputs:
        return None, {}
    values = (value for value in inputs.values() if isinstance(value, str))
    action = " ".join((split_name(spec.name), str(calls[0].get("intent") or ""), *values))
    return (spec, calls[0]) if asks_for_each(request.question, action) else (None, {})


def _show(data: JsonObject) -> JsonObject:
    steps = data.get("steps")
    calls: list[JsonValue] = [
        {"for": place, "tool": one.get("tool"), "inputs": one.get("inputs")}
        for place, one in enumerate(steps if isinstance(steps, list) else [], start=1)
        if isinstance(one, dict)
    ]
    return {"next": {"kind": "calls", "todo": data.get("todo") or [], "calls": calls}}


def _build_schema(spec: ToolSpec) -> ResponseSchema:
    calls: JsonObject = {
        "type": "array",
        "items": build_inputs_schema(spec, {}),
        "minItems": 1,
        "maxItems": MAX_CALLS,
    }
    return ResponseSchema("calls", close_object({"calls": calls}))


def _is_given(inputs: JsonObject, call: JsonObject, request: PlanningRequest) -> bool:
    """Whether all values of a further call stand in the request or in results."""
    steps = build_plan_steps({"steps": [{**call, "inputs": inputs}]}, request).steps
    return not find_made_up_values(steps, request)


def _join(calls: Sequence[Mapping[str, JsonValue]]) -> JsonObject:
    """The inputs of the list step that makes these calls."""
    first = calls[0]
    varying = [name for name in first if any(one[name] != first[name] for one in calls)]
    if len(varying) == 1:
        items: list[JsonValue] = [one[varying[0]] for one in calls]
        return {FOR_EACH: items, **first, varying[0]: f"${ITEM}"}
    objects: list[JsonValue] = [{name: one[name] for name in varying} for one in calls]
    return {FOR_EACH: objects, **first, **{name: f"${ITEM}.{name}" for name in varying}}
