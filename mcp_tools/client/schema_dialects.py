"""Converts schemas of external servers from older drafts of JSON Schema, and common mistakes, to draft 2020-12.

Many servers generate their schemas with libraries of draft 4 or 7. Read as 2020-12 these are invalid or mean something
else, and the tool would be lost for it.
"""

from collections.abc import Mapping
from typing import Any

from agent.core.models import JsonObject

_SCHEMA_MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""Keywords whose values are schemas by name."""
_SCHEMA_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_SCHEMAS = frozenset(
    ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
     "unevaluatedProperties")
)  # fmt: skip
_NULLABLE = frozenset(("default", "const"))
"""Keywords whose value may be null; another keyword that is null is as good as missing."""
_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))


def convert_input_schema(schema: Mapping[str, Any]) -> JsonObject:
    """The schema of a tool's arguments in draft 2020-12. Raises `RecursionError` if it is too deep."""
    return {**convert_schema(schema), "type": "object"}


def convert_schema(schema: Mapping[str, Any]) -> JsonObject:
    """The schema in draft 2020-12. Raises `RecursionError` if it is too deep."""
    converted = {
        key: _convert_keyword(key, value)
        for key, value in schema.items()
        if (value is not None or key in _NULLABLE) and key not in ("$schema", "id")
    }
    _convert_bounds(converted)
    _convert_items(converted)
    _convert_required(converted, schema)
    _convert_dependencies(converted)
    _convert_type(converted)
    _convert_null(converted)
    _convert_recursion(converted)
    return converted


def _convert_keyword(key: str, value: Any) -> Any:
    if key in _SCHEMA_MAPS and isinstance(value, Mapping):
        return {name: _convert_node(item) for name, item in value.items() if item is not None}
    if key in _SCHEMA_LISTS and isinstance(value, list):
        return [_convert_node(item) for item in value]
    if key in _SCHEMAS:
        return [_convert_node(item) for item in value] if isinstance(value, list) else _convert_node(value)
    return value


def _convert_node(node: Any) -> Any:
    return convert_schema(node) if isinstance(node, Mapping) else node


def _convert_bounds(schema: dict[str, Any]) -> None:
    """Draft 4: `exclusiveMinimum: true` makes `minimum` exclusive."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    if "divisibleBy" in schema:
        schema.setdefault("multipleOf", schema.pop("divisibleBy"))


def _convert_items(schema: dict[str, Any]) -> None:
    """Drafts before 2020: a list of `items` describes the first ones, `additionalItems` the others."""
    rest = schema.pop("additionalItems", None)
    if not isinstance(schema.get("items"), list):
        return
    first = schema.pop("items")
    if first:
        schema["prefixItems"] = first
    if rest is not None:
        schema["items"] = _convert_node(rest)


def _convert_required(schema: dict[str, Any], original: Mapping[str, Any]) -> None:
    """Draft 3, and a common mistake: `required: true` in a property."""
    properties = original.get("properties")
    marked = [
        name
        for name, item in (properties.items() if isinstance(properties, Mapping) else ())
        if isinstance(item, Mapping) and item.get("required") is True
    ]
    listed = schema.get("required")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    if marked or not isinstance(listed, list):
        schema.pop("required", None)
    if marked or isinstance(listed, list):
        schema["required"] = list(dict.fromkeys((*names, *marked)))


def _convert_dependencies(schema: dict[str, Any]) -> None:
    """Drafts before 2019: `dependencies` holds names or schemas."""
    given = schema.get("dependencies")
    if not isinstance(given, Mapping):
        return
    del schema["dependencies"]
    names = {key: value for key, value in given.items() if isinstance(value, list)}
    schemas = {key: _convert_node(value) for key, value in given.items() if isinstance(value, Mapping | bool)}
    for keyword, part in (("dependentRequired", names), ("dependentSchemas", schemas)):
        if part:
            schema.setdefault(keyword, part)


def _convert_type(schema: dict[str, Any]) -> None:
    """Draft 3 and other dialects: a type that JSON does not have (`any`, `file`, `date`) allows every value."""
    given = schema.get("type")
    if given is None:
        return
    names = [one.lower() if isinstance(one, str) else one for one in (given if isinstance(given, list) else [given])]
    if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
        del schema["type"]
    else:
        schema["type"] = list(dict.fromkeys(names)) if isinstance(given, list) else names[0]


def _convert_null(schema: dict[str, Any]) -> None:
    """OpenAPI 3.0: `nullable: true` allows null. An empty `enum`, which would allow nothing, is one that is not known
    yet."""
    values = schema.get("enum")
    if values == []:
        del schema["enum"]
    if schema.pop("nullable", None) is not True:
        return
    given = schema.get("type")
    if isinstance(given, str) and given != "null":
        schema["type"] = [given, "null"]
    if isinstance(values, list) and values and None not in values:
        schema["enum"] = [*values, None]
    if "$ref" in schema and "anyOf" not in schema:
        schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"type": "null"}]


def _convert_recursion(schema: dict[str, Any]) -> None:
    """Draft 2019: `$recursiveRef` is always the root of the schema, which nothing here extends."""
    schema.pop("$recursiveAnchor", None)
    if "$recursiveRef" in schema:
        schema.setdefault("$ref", schema.pop("$recursiveRef"))
