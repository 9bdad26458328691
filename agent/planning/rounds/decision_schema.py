"""The JSON schema of a planner's decision: calls with inputs typed by each tool, a question, a search, or the answer.

Endpoints that accept `json_schema` compile it into a grammar, so that a small model cannot write anything else. The
root is an object and every object is closed. A decision to call says first what it does, part by part: a model that
names a step calls the right tool for it. The answer is the last choice: small models take the free choice when it is
offered first.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from agent.core.models import JsonObject
from agent.llm.port import ResponseSchema
from agent.llm.schema_derivation import join_schemas
from agent.planning.rounds.input_schemas import build_inputs_schema, close_object
from agent.tools import ToolSpec
from agent.tools.catalogue import SkillCard

MAX_TOOLS = 40
"""Tools in one grammar. Each adds rules, and some endpoints take seconds to compile hundreds."""
PART_CHARS, MAX_PARTS = 80, 10
"""Characters and number of the steps that a decision lists before its calls: a model that names a step calls the right
tool for it, and says of each whether its call is made now."""
LATER = "later"
"""The tool of a step whose values only a result will bring."""
_TEXT: JsonObject = {"type": "string"}


def build_decision_schema(
    tools: Sequence[ToolSpec],
    skills: Sequence[SkillCard],
    kinds: Sequence[str],
    max_calls: int,
    *,
    part: str = "",
    values: Mapping[str, Mapping[str, Sequence[str]]] = MappingProxyType({}),
) -> ResponseSchema:
    """The schema of one decision: `{"next": {"kind": ..., ...}}` with one closed object for each of `kinds`.

    `part` is the one thing that is decided on, if it is known. `values` limits inputs of some tools to a choice.
    """
    skill_names = {card.name for card in skills}
    number: JsonObject = {"type": "integer", "enum": [*range(1, 2 if part else MAX_PARTS + 1)]}
    calls = [
        build_call_schema(number, spec.name, build_inputs_schema(spec, values.get(spec.name, MappingProxyType({}))))
        for spec in tools
        if spec.name not in skill_names
    ]
    calls += [build_call_schema(number, card.name, close_object({"task": _TEXT}), card.tools) for card in skills]
    if calls and not part:
        calls.append(close_object({"for": number, "tool": {"type": "string", "enum": [LATER]}}))
    bodies: dict[str, JsonObject] = {
        "calls": {"calls": {"type": "array", "items": join_schemas(calls), "minItems": 1, "maxItems": max_calls}},
        "ask": {"question": _TEXT},
        "find_tools": {"query": _TEXT},
        "answer": {},
    }
    todo: JsonObject = {"todo": _describe_todo(part)}
    choices = [
        close_object({"kind": {"type": "string", "enum": [kind]}, **(todo if kind == "calls" else {}), **bodies[kind]})
        for kind in kinds
        if kind != "calls" or calls
    ]
    return ResponseSchema("decision", close_object({"next": join_schemas(choices)}))


def _describe_todo(part: str) -> JsonObject:
    one: JsonObject = {"type": "string", "enum": [part]} if part else {"type": "string", "maxLength": PART_CHARS}
    return {"type": "array", "items": one, "minItems": 1, "maxItems": 1 if part else MAX_PARTS}


def build_choice_schema(names: Iterable[str], of: str = "tool") -> ResponseSchema:
    """The schema of a choice of one of `names`, under the field `of`."""
    return ResponseSchema("choice", close_object({of: {"type": "string", "enum": list(names)}}))


def build_choices_schema(names: Iterable[str], most: int) -> ResponseSchema:
    """The schema of a choice of one to `most` of `names`."""
    one: JsonObject = {"type": "string", "enum": list(names)}
    listed: JsonObject = {"type": "array", "items": one, "minItems": 1, "maxItems": most}
    return ResponseSchema("choices", close_object({"tools": listed}))


def build_call_schema(number: JsonObject, name: str, inputs: JsonObject, tools: Sequence[str] = ()) -> JsonObject:
    """The schema of a call; that of a skill names those of its tools that the call may use."""
    choice: JsonObject = {"type": "array", "items": {"type": "string", "enum": [*tools]}, "maxItems": len(tools)}
    named: JsonObject = {"tools": choice} if tools else {}
    return close_object({"for": number, "tool": {"type": "string", "enum": [name]}, "inputs": inputs, **named})
