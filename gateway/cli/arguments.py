"""A tool's arguments as words on a command line: read by the tool's schema, and explained by it."""

import difflib
import json
from collections.abc import Mapping

import typer

from agent.core.errors import ToolInputError
from agent.core.models import JsonObject
from agent.tools import ToolSpec


def parsed(spec: ToolSpec, words: list[str]) -> JsonObject:
    """`{"a": 1}` or `a=1 b=text`; a value that reads as JSON is taken as such, unless the tool wants a text."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _object(words[0])
    arguments: JsonObject = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise typer.BadParameter(f"{word!r} is no key=value pair")
        arguments[name] = text
        if _properties(spec).get(name, {}).get("type") != "string":
            try:
                arguments[name] = json.loads(text)
            except json.JSONDecodeError:
                continue
    return arguments


def checked(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """The arguments. Raises `ToolInputError` naming those the tool does not know, or the ones that are missing."""
    known = _properties(spec)
    unknown = [name for name in arguments if name not in known] if _is_closed(spec) else []
    for name in unknown:
        near = difflib.get_close_matches(name, known, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise ToolInputError(f"{spec.name}: it has no argument {name!r}{meant} ({_takes(spec)})", agent_id=spec.name)
    missing = [name for name in _required(spec) if name not in arguments]
    if missing:
        told = ", ".join(map(repr, missing))
        raise ToolInputError(f"{spec.name}: {told} is missing ({_takes(spec)})", agent_id=spec.name)
    return arguments


def _object(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"no valid JSON: {error}") from error
    return dict(value)


def _properties(spec: ToolSpec) -> Mapping[str, JsonObject]:
    properties = spec.input_schema.get("properties")
    return {
        name: rules if isinstance(rules, dict) else {}
        for name, rules in (properties if isinstance(properties, dict) else {}).items()
    }


def _required(spec: ToolSpec) -> list[str]:
    required = spec.input_schema.get("required")
    return [str(name) for name in required] if isinstance(required, list) else []


def _is_closed(spec: ToolSpec) -> bool:
    """Whether only named arguments make sense: unless the schema says otherwise, or a foreign one names none."""
    others = spec.input_schema.get("additionalProperties", False) or spec.input_schema.get("patternProperties")
    return not others and (bool(_properties(spec)) or spec.origin == "builtin")


def _takes(spec: ToolSpec) -> str:
    """The arguments in a few words; those in brackets may be left out."""
    required = _required(spec)
    names = [name if name in required else f"[{name}]" for name in _properties(spec)]
    return f"it takes {', '.join(names)}" if names else "it takes none"
