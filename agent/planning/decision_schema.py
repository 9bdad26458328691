"""The JSON schema of a planner's decision: calls with inputs typed by each tool, a question, a search, or the answer.

Endpoints that accept `json_schema` compile it into a grammar, so that a small model cannot write anything else. The
root is an object and every object is closed. A decision to call says first what it does, part by part: a model that
names a step calls the right tool for it. The answer is the last choice: small models take the free choice when it is
offered first.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.llm.port import ResponseSchema
from agent.tools import ToolSpec
from agent.tools.catalogue import SkillCard

MAX_TOOLS = 40
"""Tools in one grammar. Each adds rules, and some endpoints take seconds to compile hundreds."""
OPTIONAL_INPUTS = 6
"""Optional inputs with a type of their own; a tool with more of them takes the rest in `MORE`."""
PART_CHARS, MAX_PARTS = 120, 12
"""Characters and number of the steps that a decision lists before its calls: a model that names a step calls the right
tool for it, and says of each whether its call is made now."""
LATER = "later"
"""The tool of a step whose values only a result will bring."""
MORE = "more"
"""The input that takes further optional inputs as one JSON text."""
MAX_VALUES = 100
"""Values of an enumeration; some endpoints refuse more. A longer one becomes free text."""
MAX_DEPTH = 5
"""Levels of nested objects; a deeper value is taken as JSON text."""
_JSON_TEXT: JsonObject = {"type": "string"}
_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})


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
        _build_call_schema(number, spec.name, build_inputs_schema(spec, values.get(spec.name, MappingProxyType({}))))
        for spec in tools
        if spec.name not in skill_names
    ]
    calls += [_build_call_schema(number, card.name, _close({"task": _JSON_TEXT}), card.tools) for card in skills]
    if calls and not part:
        calls.append(_close({"for": number, "tool": {"type": "string", "enum": [LATER]}}))
    bodies: dict[str, JsonObject] = {
        "calls": {"calls": {"type": "array", "items": _join(calls), "minItems": 1, "maxItems": max_calls}},
        "ask": {"question": _JSON_TEXT},
        "find_tools": {"query": _JSON_TEXT},
        "answer": {},
    }
    todo: JsonObject = {"todo": _describe_todo(part)}
    choices = [
        _close({"kind": {"type": "string", "enum": [kind]}, **(todo if kind == "calls" else {}), **bodies[kind]})
        for kind in kinds
        if kind != "calls" or calls
    ]
    return ResponseSchema("decision", _close({"next": _join(choices)}))


def _describe_todo(part: str) -> JsonObject:
    one: JsonObject = {"type": "string", "enum": [part]} if part else {"type": "string", "maxLength": PART_CHARS}
    return {"type": "array", "items": one, "minItems": 1, "maxItems": 1 if part else MAX_PARTS}


def build_choice_schema(names: Iterable[str], of: str = "tool") -> ResponseSchema:
    """The schema of a choice of one of `names`, under the field `of`."""
    return ResponseSchema("choice", _close({of: {"type": "string", "enum": list(names)}}))


def build_choices_schema(names: Iterable[str], most: int) -> ResponseSchema:
    """The schema of a choice of one to `most` of `names`."""
    one: JsonObject = {"type": "string", "enum": list(names)}
    listed: JsonObject = {"type": "array", "items": one, "minItems": 1, "maxItems": most}
    return ResponseSchema("choices", _close({"tools": listed}))


def build_inputs_schema(spec: ToolSpec, values: Mapping[str, Sequence[str]] = MappingProxyType({})) -> JsonObject:
    """The closed schema of a tool's inputs: required ones first, then a few optional ones.

    An input in `values` is a choice of them, or a list of as many. What the subset cannot express (open objects,
    recursion, `oneOf`) is a text that holds JSON.
    """
    properties = spec.input_schema.get("properties")
    known_inputs = properties if isinstance(properties, dict) else {}
    listed = spec.input_schema.get("required")
    required = [name for name in (listed if isinstance(listed, list) else []) if name in known_inputs]
    optional = [name for name in known_inputs if name not in required]
    definitions = spec.input_schema.get("$defs") or spec.input_schema.get("definitions")
    roots = definitions if isinstance(definitions, dict) else {}
    listed_inputs = optional[:OPTIONAL_INPUTS]
    inputs: JsonObject = {str(name): simplify(known_inputs[name], roots) for name in (*required, *listed_inputs)}
    for name in values.keys() & inputs.keys():
        one: JsonObject = {"type": "string", "enum": [*values[name]]}
        declared = inputs[name]
        is_list = isinstance(declared, dict) and declared.get("type") == "array"
        # All of them: a query may need each table that was looked at, and another one does no harm.
        most = len(values[name])
        inputs[name] = {"type": "array", "items": one, "minItems": most, "maxItems": most} if is_list else one
    if len(optional) > len(listed_inputs):
        inputs[MORE] = _JSON_TEXT
    return {**_close(inputs), "required": [*required]}


def expand_more(inputs: JsonObject) -> JsonObject:
    """The inputs of a call with those of its JSON text `MORE`; unchanged if that is not a JSON object."""
    text = inputs.get(MORE)
    if not isinstance(text, str):
        return inputs
    try:
        further = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return inputs
    if not isinstance(further, dict):
        return inputs
    return {**further, **{name: value for name, value in inputs.items() if name != MORE}}


def simplify(schema: JsonValue, definitions: JsonObject, depth: int = 0) -> JsonObject:
    """The part of a JSON schema that constrained decoders know, or a text that holds the value as JSON."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return _JSON_TEXT
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return simplify(definitions.get(reference.rsplit("/", 1)[-1]), definitions, depth + 1)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= MAX_VALUES and all(map(_is_scalar, values)):
        kinds = {_get_type(value) for value in values}
        return {"type": kinds.pop(), "enum": values} if len(kinds) == 1 else {"enum": values}
    forms = schema.get("anyOf")
    if isinstance(forms, list) and forms:
        return _join([simplify(form, definitions, depth + 1) for form in forms])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _join([simplify({**schema, "type": one}, definitions, depth + 1) for one in kind])
    if kind == "array":
        return {"type": "array", "items": simplify(schema.get("items") or {}, definitions, depth + 1)}
    if kind == "object":
        return _simplify_object(schema, definitions, depth)
    return {"type": kind} if isinstance(kind, str) and kind in _SCALARS else _JSON_TEXT


def _simplify_object(schema: JsonObject, definitions: JsonObject, depth: int) -> JsonObject:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties or schema.get("additionalProperties") not in (None, False):
        return _JSON_TEXT
    listed = schema.get("required")
    required = [name for name in (listed if isinstance(listed, list) else []) if name in properties]
    ordered = (*required, *(name for name in properties if name not in required))
    inputs: JsonObject = {str(name): simplify(properties[name], definitions, depth + 1) for name in ordered}
    return {**_close(inputs), "required": [*required]}


def _build_call_schema(number: JsonObject, name: str, inputs: JsonObject, tools: Sequence[str] = ()) -> JsonObject:
    """The schema of a call; that of a skill names those of its tools that the call may use."""
    choice: JsonObject = {"type": "array", "items": {"type": "string", "enum": [*tools]}, "maxItems": len(tools)}
    named: JsonObject = {"tools": choice} if tools else {}
    return _close({"for": number, "tool": {"type": "string", "enum": [name]}, "inputs": inputs, **named})


def _close(properties: JsonObject) -> JsonObject:
    """A closed object schema that requires all of its properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _join(schemas: Sequence[JsonObject]) -> JsonObject:
    """The schema of any one of these, each once."""
    different = list({json.dumps(schema, sort_keys=True): schema for schema in schemas}.values())
    return different[0] if len(different) == 1 else {"anyOf": [*different]}


def _is_scalar(value: JsonValue) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _get_type(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {str: "string", int: "integer", float: "number"}[type(value)]
