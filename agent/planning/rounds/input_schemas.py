"""The schemas of tools' inputs in a decision, and how inputs that were written under them are read.

Other people's tools come with all of JSON Schema. A decision has the part that constrained decoders know; what that
cannot express (open objects, recursion, tuples) is a text that holds JSON. No tool is lost over its schema.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydantic import JsonValue

from agent.core.json_schema import get_properties, list_required
from agent.core.models import JsonObject
from agent.core.schema_references import find_reference, list_forms, resolve_schema
from agent.llm.schema_derivation import get_type, join_schemas
from agent.llm.schema_values import expand_text, read_json_texts
from agent.tools import ToolSpec
from agent.tools.catalogue import split_name
from agent.tools.declared_arguments import collect_arguments, collect_properties

_IDENTIFIERS = frozenset({"id", "ids"})
"""How the name of an input ends that takes an identifier, in the schemas of most servers."""
OPTIONAL_INPUTS = 6
"""Optional inputs with a type of their own; a tool with more of them takes the rest in `MORE`."""
MORE = "more"
"""The input that takes further inputs as one JSON text; with underscores behind it if the tool has one of that name."""
MAX_VALUES = 100
"""Values of an enumeration; some endpoints refuse more. A longer one becomes free text."""
MAX_ENTRIES = 30
"""Entries of a list in an input: a small model goes on with a list until the endpoint stops it."""
MAX_DEPTH = 5
"""Levels of nested objects; a deeper value is taken as JSON text."""
MAX_INPUT_CHARS = 4_000
"""Characters of the schema of one input; a larger one, of unions within unions, is taken as JSON text."""
_TEXT: JsonObject = {"type": "string"}
_ANY: JsonObject = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}
"""Any value; an object or a list is the JSON of a text."""
_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})


def build_inputs_schema(spec: ToolSpec, values: Mapping[str, Sequence[str]] = MappingProxyType({})) -> JsonObject:
    """The closed schema of a tool's inputs: required ones first, then a few optional ones.

    An input in `values` is a choice of them, or a list of as many.
    """
    declared, needed = collect_arguments(spec.input_schema)
    required = [name for name in needed if name in declared]
    optional = [name for name in declared if name not in required]
    listed = optional[:OPTIONAL_INPUTS]
    inputs: JsonObject = {name: _simplify_input(declared[name], spec.input_schema) for name in (*required, *listed)}
    if spec.effect == "read":  # it would read about nothing
        inputs |= {name: _fill_list(inputs[name]) for name in required}
    for name in values.keys() & inputs.keys():
        one: JsonObject = {"type": "string", "enum": [*values[name]]}
        written = inputs[name]
        is_list = isinstance(written, dict) and written.get("type") == "array"
        # All of them: a query may need each table that was looked at, and another one does no harm.
        most = len(values[name])
        inputs[name] = {"type": "array", "items": one, "minItems": most, "maxItems": most} if is_list else one
    is_more_needed = len(required) < len(needed)
    if is_more_needed or len(optional) > len(listed) or _takes_any_name(spec.input_schema, declared):
        inputs[_name_more(declared)] = _TEXT
        required += [_name_more(declared)] if is_more_needed else []
    return {**close_object(inputs), "required": [*required]}


def _fill_list(schema: JsonValue) -> JsonValue:
    """The schema of a required input; that of a list with at least one entry."""
    is_list = isinstance(schema, dict) and schema.get("type") == "array"
    return {"minItems": 1, **schema} if isinstance(schema, dict) and is_list else schema


def read_inputs(inputs: JsonObject, schema: JsonObject) -> JsonObject:
    """The inputs of a call as the tool's own schema has them: with those of the text `MORE`, and with values that could
    only be written as JSON texts."""
    declared, _ = collect_arguments(schema)
    whole = expand_text(inputs, _name_more(declared))
    return {name: read_json_texts(value, declared.get(name, True), schema) for name, value in whole.items()}


def _takes_any_name(schema: JsonObject, declared: JsonObject) -> bool:
    """Whether inputs without a declaration mean something: the schema says of what type they are, or has no others."""
    further = schema.get("additionalProperties")
    is_typed = (isinstance(further, dict) and bool(further)) or bool(schema.get("patternProperties"))
    return is_typed or (not declared and further is not None and further is not False)


def _name_more(declared: JsonObject) -> str:
    name = MORE
    while name in declared:
        name += "_"
    return name


def _simplify_input(schema: JsonValue, root: JsonObject) -> JsonObject:
    simple = simplify(schema, root)
    return simple if len(json.dumps(simple)) <= MAX_INPUT_CHARS else _TEXT


def simplify(schema: JsonValue, root: JsonObject, depth: int = 0, within: frozenset[str] = frozenset()) -> JsonObject:
    """The part of a JSON schema that constrained decoders know, or a text that holds the value as JSON.

    `within` are the references that are being followed: one that leads back to itself is a text.
    """
    if schema is True or schema == {}:
        return _ANY
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return _TEXT
    reference = schema.get("$ref")
    if isinstance(reference, str):
        is_loop = reference in within
        return _TEXT if is_loop else simplify(find_reference(reference, root), root, depth + 1, within | {reference})
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if (
        isinstance(values, list)
        and 0 < len(values) <= MAX_VALUES
        and not any(isinstance(v, dict | list) for v in values)
    ):
        kinds = {get_type(value) for value in values}
        return {"type": kinds.pop(), "enum": values} if len(kinds) == 1 else {"enum": values}
    if isinstance(schema.get("properties"), dict) or schema.get("type") == "object":
        return _simplify_object(schema, root, depth, within)
    forms = _list_alternatives(schema)
    if forms:
        return join_schemas([simplify(form, root, depth + 1, within) for form in forms])
    parts = schema.get("allOf")
    if isinstance(parts, list) and parts:
        return simplify(_join_parts(parts, root), root, depth + 1, within)
    return _simplify_plain(schema, root, depth, within)


def _list_alternatives(schema: JsonObject) -> list[JsonValue]:
    """The schemas of which a value fits one: the forms of a union, or one for each of several types."""
    forms, kind = schema.get("anyOf", schema.get("oneOf")), schema.get("type")
    if isinstance(forms, list):
        return forms
    return [{**schema, "type": one} for one in kind] if isinstance(kind, list) else []


def _simplify_plain(schema: JsonObject, root: JsonObject, depth: int, within: frozenset[str]) -> JsonObject:
    kind = schema.get("type")
    if kind == "array" or (kind is None and "items" in schema):
        items = schema.get("items", True)
        is_tuple = isinstance(items, list) or "prefixItems" in schema
        listed: JsonObject = {
            "type": "array",
            "items": simplify(items, root, depth + 1, within),
            "maxItems": MAX_ENTRIES,
        }
        return _TEXT if is_tuple else listed
    if kind is None and not schema.keys() & {"enum", "not", "if", "$dynamicRef", "patternProperties"}:
        return _ANY
    return {"type": kind} if isinstance(kind, str) and kind in _SCALARS else _TEXT


def _join_parts(parts: list[JsonValue], root: JsonObject) -> JsonObject | None:
    """One schema for all parts of an `allOf`; None where they are not all objects."""
    if len(parts) == 1:
        return resolve_schema(parts[0], root)
    properties, required = collect_properties({"allOf": parts}, root)
    return {"type": "object", "properties": properties, "required": [*required]} if properties else None


def _simplify_object(schema: JsonObject, root: JsonObject, depth: int, within: frozenset[str]) -> JsonObject:
    declared, required = collect_properties(schema, root)
    is_open = schema.get("additionalProperties") not in (None, False) or bool(schema.get("patternProperties"))
    if not declared or is_open or any(name not in declared for name in required):
        return _TEXT
    ordered = (*required, *(name for name in declared if name not in required))
    inputs: JsonObject = {name: simplify(declared[name], root, depth + 1, within) for name in ordered}
    return {**close_object(inputs), "required": [*required]}


def close_object(properties: JsonObject) -> JsonObject:
    """A closed object schema that requires all of its properties."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def find_schema(spec: ToolSpec, path: Sequence[str | int]) -> JsonObject:
    """The schema of a place in a tool's inputs; empty if the tool declares none."""
    schema: JsonValue = spec.input_schema
    for part in path:
        inner = schema.get("items" if isinstance(part, int) else "properties") if isinstance(schema, dict) else None
        schema = inner.get(part) if isinstance(part, str) and isinstance(inner, dict) else inner
    return schema if isinstance(schema, dict) else {}


def requires_field(schema: JsonObject, path: Sequence[str | int]) -> bool:
    """Whether the object that a path leads into, through references and unions, needs the field at its end."""
    forms = [schema]
    for part in path[:-1]:
        inner = (one.get("items") if isinstance(part, int) else get_properties(one).get(part) for one in forms)
        resolved = [one for form in inner if (one := resolve_schema(form, schema)) is not None]
        forms = [*{id(form): form for one in resolved for form in list_forms(one, schema)}.values()]
    return any(path[-1] in list_required(form) for form in forms)


def takes_identifier(name: str) -> bool:
    """Whether an input of this name takes an identifier."""
    return not _IDENTIFIERS.isdisjoint(split_name(name).casefold().split()[-1:])
