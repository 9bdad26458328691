"""What a tool's schema says of its arguments: which it does not know, and which take nothing but text."""

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.tools import ToolSpec


def known_args(spec: ToolSpec, args: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """The arguments the tool takes, and the names of the others.

    Our own tools take what their schemas name. A foreign tool may take more than it names, unless it says that it
    does not; and a foreign tool that changes something refuses such a call, for nobody knows what the argument that is
    missing then was to prevent."""
    properties = spec.input_schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    open_ended = spec.input_schema.get("additionalProperties", spec.origin != "builtin")
    if "properties" not in spec.input_schema or open_ended is not False or spec.input_schema.get("patternProperties"):
        return args, ()
    if spec.origin != "builtin" and spec.effect == "effect":
        return args, ()
    dropped = tuple(name for name in args if name not in named)
    return {name: value for name, value in args.items() if name in named} if dropped else args, dropped


def text_args(spec: ToolSpec) -> frozenset[str]:
    """The arguments that take text, and neither an object nor a list."""
    properties = spec.input_schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    return frozenset(name for name, schema in named.items() if _kinds(schema) & {"string", *_MANY} == {"string"})


_MANY = frozenset({"object", "array"})


def _kinds(schema: JsonValue) -> frozenset[str]:
    """The JSON types a schema allows; those of many values too where it leaves them open."""
    if not isinstance(schema, dict):
        return _MANY
    choices = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(choices, list):
        return frozenset(kind for choice in choices for kind in _kinds(choice))
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return frozenset(str(kind) for kind in kinds)
    return frozenset({kinds}) if isinstance(kinds, str) else _MANY
