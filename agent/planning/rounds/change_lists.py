"""`ask_for_all_changes`: all changes of a request in one list, in rooms where a person is asked about changes.

A small model makes one change, reads its result and makes the next, so that each would be a question of its own. Asked
for all of them, it lists them in order. They are one plan with one question, made one after the other until one fails
or is refused. A later one may use what an earlier one makes, which is not known before.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from agent.core.errors import ModelError, PlanInvalidError
from agent.core.json_schema import get_properties
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject, PlanStep
from agent.core.plan_references import quote_literal
from agent.llm.port import ResponseSchema
from agent.llm.prompts import quote_inline, render
from agent.llm.schema_derivation import join_schemas
from agent.planning.list_steps import FOR_EACH
from agent.planning.open_parts import TOGETHER, WAITS
from agent.planning.parse import read_last_object
from agent.planning.planner import PlannerModel, build_plan_steps
from agent.planning.reply import PlanReply, list_calls, list_todo
from agent.planning.request import PlanningRequest
from agent.planning.rounds.change_questions import ChangeQuestions
from agent.planning.rounds.decision_schema import build_call_schema
from agent.planning.rounds.dialogue import Dialogue
from agent.planning.rounds.input_schemas import build_inputs_schema, close_object, read_inputs, takes_identifier
from agent.planning.rounds.made_up_values import find_made_up_values, leave_out_unasked_texts
from agent.planning.rounds.prompt import choose_tools, encode_decision, list_offered, say
from agent.text.own_words import OwnWords
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign
from agent.tools.client_tools import CLIENT_ORIGIN
from agent.tools.spec import limit_numbers

MAX_CHANGES = 10
"""Changes that a model is asked for at once: as many as the steps that a decision may name."""
_MADE = re.compile(r"\$(\d{1,2})(?!\d)")
"""What a listed change writes for the result of an earlier one, by its number from 1."""
_RESULT_FIELDS = ("id", "name")
"""The fields of a result that name what was made, where no field has the name of the input that it is for."""
_NUMBERS = ("integer", "number")


@dataclass(frozen=True, slots=True)
class _Change:
    """A listed change. `number` is its place in the list, from 1; `is_decided` says that it is of the decision."""

    number: int
    spec: ToolSpec
    inputs: JsonObject
    part: str
    is_decided: bool = False

    @property
    def id(self) -> str:
        """The id of its step."""
        return f"s{self.number}"

    def to_step(self, earlier: "_Change | None" = None) -> JsonObject:
        """The step of a decision that makes it, after an earlier one."""
        after: JsonObject = {"depends_on": [earlier.id]} if earlier is not None else {}
        return {"id": self.id, "tool": self.spec.name, "inputs": self.inputs, "intent": self.part, **after}


async def ask_for_all_changes(
    model: PlannerModel, questions: ChangeQuestions, request: PlanningRequest, dialogue: Dialogue, decision: PlanReply
) -> PlanReply:
    """The decision with all changes that the request asks for, in their order; as it is if it asks for one, or if this
    room asks nobody about it.

    Beside calls that read, all changes wait for the results unless the request gives their values. The parts of the
    request that are open are then in `todo`, and no longer in the dialogue."""
    decided = _list_decided(request, decision.data)
    if not request.progress.asks_about_changes or not decided or any(FOR_EACH in one.inputs for one in decided):
        return decision
    parts = [*dict.fromkeys((*dialogue.parts, *list_todo(decision.data)))]
    served = {str(call.get("intent") or "") for call in list_calls(decision.data)}
    others = [part for part in parts if part not in served and _names_change(part, request)]
    if _count_asked(decided) + len(others) < 2:
        return decision
    if len(decided) < len(list_calls(decision.data)):
        words = OwnWords(request.question, request.original)
        is_known = not others and all(words.hold(one.inputs) for one in decided)
        return decision if is_known else PlanReply({**decision.data, WAITS: True})
    if not others:  # those of one decision do not need each other, and are one question as they are
        return decision
    open_parts, dialogue.parts = dialogue.parts, []  # the list is about all of them
    try:
        listed = await _ask(model, request, dialogue, decided, parts)
        listed = _join_decided(decided, listed, request)
        changes = await _select_usable(questions, request, dialogue, listed, parts)
    except (ModelError, PlanInvalidError):  # one change is better than none
        changes = []
    if _count_asked(changes) < 2 or sum(one.is_decided for one in changes) < len(decided):
        dialogue.parts = open_parts
        return decision
    steps: list[JsonValue] = [one.to_step(earlier) for earlier, one in zip((None, *changes), changes, strict=False)]
    return PlanReply({**decision.data, "todo": [*parts], "steps": steps, TOGETHER: True})


def _list_decided(request: PlanningRequest, data: JsonObject) -> list[_Change]:
    """The calls of a decision that change something; [] if one of its calls is a skill's or a client's."""
    changes: list[_Change] = []
    for call in list_calls(data):
        spec, inputs = request.catalogue.get_tool(str(call.get("tool"))), call.get("inputs")
        if spec is None or spec.origin == CLIENT_ORIGIN:
            return []
        if _changes(spec):
            own = inputs if isinstance(inputs, dict) else {}
            changes.append(_Change(len(changes) + 1, spec, own, str(call.get("intent") or ""), is_decided=True))
    return changes


def _count_asked(changes: Sequence[_Change]) -> int:
    """How many of the changes a person is asked about: no draft, and nothing that is only remembered."""
    return sum(one.spec.has_side_effect and _changes(one.spec) for one in changes)


def _changes(spec: ToolSpec) -> bool:
    """Whether a tool changes something. One of a server that nobody vouches for may say that it only reads."""
    return spec.effect != "read" and not spec.read_claim


def _names_change(part: str, request: PlanningRequest) -> bool:
    """Whether a tool that a person is asked about is among those that the words of a part fit best. The words of
    another language fit none: each part may name a change there."""
    if request.answer.language:
        return True
    scores = request.catalogue.index.compute_scores(part)
    highest = max(scores.values(), default=0.0)
    best = (request.catalogue.get_tool(name) for name, score in scores.items() if score == highest > 0)
    changing = (spec for spec in best if spec is not None and spec.has_side_effect and _changes(spec))
    return any(spec.origin != CLIENT_ORIGIN for spec in changing)


async def _ask(
    model: PlannerModel, request: PlanningRequest, dialogue: Dialogue, decided: Sequence[_Change], parts: Sequence[str]
) -> list[_Change]:
    """The changes that the model lists, with values as it writes them. Raises `ModelError`."""
    offered = list_offered(request, choose_tools(request.catalogue, request.question))
    tools = {spec.name: spec for spec in offered if _changes(spec) and spec.origin != CLIENT_ORIGIN}
    calls: list[JsonValue] = [
        {"for": parts.index(one.part) + 1 if one.part in parts else 1, "tool": one.spec.name, "inputs": one.inputs}
        for one in decided
    ]
    turn: JsonObject = {"next": {"kind": "calls", "todo": [*parts], "calls": calls}}
    lines = "\n".join(f"{number}. {quote_inline(part)}" for number, part in enumerate(parts, start=1))
    messages = (
        *dialogue.messages,
        say("assistant", encode_decision(turn)),
        say("user", render("decide_all", parts=lines)),
    )
    reply = await model.ask(messages, _build_schema([*tools.values()], len(parts)))
    listed: list[_Change] = []
    for call in _list_objects(read_last_object(reply.text, "changes").get("changes"))[:MAX_CHANGES]:
        spec, inputs, place = tools.get(str(call.get("tool"))), call.get("inputs"), call.get("for")
        if spec is not None and isinstance(inputs, dict):
            read = limit_numbers(spec, read_inputs(inputs, spec.input_schema))
            read = leave_out_unasked_texts(spec, read, request) if is_foreign(spec) else read
            part = parts[place - 1] if isinstance(place, int) and 0 < place <= len(parts) else parts[0]
            listed.append(_Change(len(listed) + 1, spec, read, part))
    return listed


def _build_schema(tools: Sequence[ToolSpec], count: int) -> ResponseSchema:
    """The schema of the list: calls as in a decision. A number may be the result of an earlier one, as text."""
    place: JsonObject = {"type": "integer", "enum": [*range(1, count + 1)]}
    calls = [build_call_schema(place, spec.name, _admit_results(build_inputs_schema(spec))) for spec in tools]
    listed: JsonObject = {"type": "array", "items": join_schemas(calls), "minItems": 1, "maxItems": MAX_CHANGES}
    return ResponseSchema("changes", close_object({"changes": listed}))


def _admit_results(inputs: JsonObject) -> JsonObject:
    """The schema of inputs in which a text may stand for a number."""
    text: JsonObject = {"type": "string"}
    admitted: JsonObject = {
        name: join_schemas([one, text]) if isinstance(one, dict) and one.get("type") in _NUMBERS else one
        for name, one in get_properties(inputs).items()
    }
    return {**inputs, "properties": admitted}


def _join_decided(decided: Sequence[_Change], listed: Sequence[_Change], request: PlanningRequest) -> list[_Change]:
    """The listed changes, each once, without calls that were made before. The decided ones keep their inputs: when it
    writes them again, a small model may add to them. Only these, if the list leaves one of them out."""
    joined = [*listed]
    for one in decided:
        same = [place for place, other in enumerate(joined) if other.spec.name == one.spec.name]
        equal = [place for place in same if joined[place].inputs == one.inputs]
        if not equal and len(same) != 1:
            return [*decided]
        place = (equal or same)[0]
        joined[place] = replace(joined[place], inputs=one.inputs, part=one.part, is_decided=True)
    made = request.made_calls
    new = []
    for one in joined:
        if (one.spec.name, one.inputs) not in made:
            made.append((one.spec.name, one.inputs))
            new.append(one)
    return new


async def _select_usable(
    questions: ChangeQuestions,
    request: PlanningRequest,
    dialogue: Dialogue,
    listed: Sequence[_Change],
    parts: Sequence[str],
) -> list[_Change]:
    """The changes that the request asks for, with references to the results of earlier ones, up to the first that
    cannot be made as it is listed: that stays open with those behind it, so that all are made in order. Raises
    `ModelError`, and `UnaskedChangeError` if none is left."""
    steps: list[JsonValue] = [one.to_step() for one in listed]
    wanted = await questions.leave_out_unasked(request, dialogue, PlanReply({"todo": [*parts], "steps": steps}))
    ids = {str(step.get("id")) for step in list_calls(wanted.data)}
    changes: list[_Change] = []
    for one in listed:
        if one.id not in ids:
            continue
        inputs = one.inputs if one.is_decided else _refer_to_results(one.inputs, changes, request)
        if inputs is None or not _is_usable(changed := [*changes, replace(one, inputs=inputs)], request):
            break
        changes = changed
    return changes


def _is_usable(changes: Sequence[_Change], request: PlanningRequest) -> bool:
    """Whether the last of these changes is valid and needs no value that nobody gave."""
    try:
        steps = build_plan_steps({"steps": [one.to_step() for one in changes]}, request).steps
    except PlanInvalidError:
        return False
    return not _needs_value(steps, request)


def _needs_value(steps: Sequence[PlanStep], request: PlanningRequest) -> bool:
    """Whether the last of these steps needs a value that neither the request nor a result has, nor a change before it.
    What a change may do without is shown to the person who is asked about it."""
    *before, last = steps
    values = {str(value) for step in before for _, value in iter_leaves(step.args)}
    made_up = find_made_up_values([last], request)
    return any(one.is_required and not one.may_follow and str(one.value) not in values for one in made_up)


def _refer_to_results(inputs: JsonObject, earlier: Sequence[_Change], request: PlanningRequest) -> JsonObject | None:
    """The inputs with references in place of `$1`, `$2`; None if one of them is not the result of an earlier change, or
    is an identifier that the result is not known to have."""
    changes, amounts = {one.number: one for one in earlier}, _MADE.findall(request.question)

    def refer(value: JsonValue, name: str) -> JsonValue:
        if isinstance(value, dict):
            return {key: refer(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [refer(inner, name) for inner in value]
        made = _MADE.fullmatch(value.strip()) if isinstance(value, str) else None
        if isinstance(value, str) and made is None and any(one not in amounts for one in _MADE.findall(value)):
            raise KeyError(value)  # a text that is written once its result is known
        if not isinstance(value, str) or made is None or made[1] in amounts:
            return quote_literal(value) if isinstance(value, str) else value
        return _build_reference(changes[int(made[1])], name)

    try:
        return {name: refer(value, name) for name, value in inputs.items()}
    except KeyError:
        return None


def _build_reference(change: _Change, name: str) -> JsonObject:
    """The reference to what a change makes, for an input of this name: the field of its result that has the name, or
    else names the thing; the whole result if nothing is known of its fields. Raises KeyError for an identifier then."""
    fields = get_properties(change.spec.output_schema or {})
    names = (name, *(_RESULT_FIELDS if takes_identifier(name) else reversed(_RESULT_FIELDS)))
    path = next((field for field in names if field in fields), None)
    if path is None and takes_identifier(name):
        raise KeyError(name)
    return {"$from": change.id, **({"path": f"output.{path}"} if path is not None else {})}


def _list_objects(value: JsonValue) -> list[JsonObject]:
    return [one for one in (value if isinstance(value, list) else []) if isinstance(one, dict)]
