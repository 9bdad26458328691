"""Compares a call's arguments with the tool's schema: finds unknown arguments and those that accept only text, and
reads arguments that were written as text."""

import json
from collections.abc import Mapping

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.tools import ToolSpec


def find_undeclared_args(spec: ToolSpec, args: JsonObject) -> tuple[str, ...]:
    """The arguments that the tool does not declare and does not allow either.

    Our own tools allow only the arguments of their schemas. A foreign tool allows others unless its schema forbids it.
    """
    properties = spec.input_schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    is_open = spec.input_schema.get("additionalProperties", spec.origin != "builtin") is not False
    if "properties" not in spec.input_schema or is_open or spec.input_schema.get("patternProperties"):
        return ()
    return tuple(name for name in args if name not in named)


def list_text_arg_names(spec: ToolSpec) -> frozenset[str]:
    """The names of the arguments that accept text, but neither an object nor a list."""
    properties = spec.input_schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    return frozenset(
        name for name, schema in named.items() if _list_json_types(schema) & {"string", *_CONTAINER_TYPES} == {"string"}
    )


def parse_text_args(spec: ToolSpec, values: Mapping[str, str]) -> JsonObject | None:
    """Arguments that were written as text, each as its schema's type; None if the tool knows one of them not.

    Text stays text where the schema accepts text. Everything else is read as JSON, or left for the schema's check.
    """
    properties = spec.input_schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    if not values.keys() <= named.keys():
        return None
    return {
        name: text if "string" in _list_json_types(named[name]) else _read_json(text) for name, text in values.items()
    }


def _read_json(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


_CONTAINER_TYPES = frozenset({"object", "array"})


def _list_json_types(schema: JsonValue) -> frozenset[str]:
    """The JSON types that a schema allows. A schema without types allows objects and lists too."""
    if not isinstance(schema, dict):
        return _CONTAINER_TYPES
    choices = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(choices, list):
        return frozenset(kind for choice in choices for kind in _list_json_types(choice))
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return frozenset(str(kind) for kind in kinds)
    return frozenset({kinds}) if isinstance(kinds, str) else _CONTAINER_TYPES
