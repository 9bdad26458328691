"""Tool arguments on a command line, read and explained by the tool's schema."""

import difflib
import json
from collections.abc import Mapping

import typer

from agent.core.errors import ToolInputError
from agent.core.models import JsonObject
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign
from agent.tools.declared_arguments import collect_arguments, list_undeclared_arguments


def parse_arguments(spec: ToolSpec, words: list[str]) -> JsonObject:
    """Parses `{"a": 1}` or `a=1 b=text`. A value that is valid JSON is parsed, unless the tool expects a string."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _parse_object(words[0])
    arguments: JsonObject = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise typer.BadParameter(f"{word!r}: expected key=value")
        arguments[name] = text
        if _get_properties(spec).get(name, {}).get("type") != "string":
            try:
                arguments[name] = json.loads(text)
            except json.JSONDecodeError:
                continue
    return arguments


def check_arguments(spec: ToolSpec, arguments: JsonObject) -> JsonObject:
    """The arguments. Raises `ToolInputError` naming those that are unknown or missing."""
    properties = _get_properties(spec)
    unknown = list_undeclared_arguments(spec.input_schema, arguments, is_foreign=is_foreign(spec))
    for name in unknown:
        near = difflib.get_close_matches(name, properties, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise ToolInputError(
            f"{spec.name}: there is no argument {name!r}{meant} ({_describe_arguments(spec)})", agent_id=spec.name
        )
    missing = [name for name in spec.required if name not in arguments]
    if missing:
        names = ", ".join(map(repr, missing))
        raise ToolInputError(f"{spec.name}: {names} is missing ({_describe_arguments(spec)})", agent_id=spec.name)
    return arguments


def _parse_object(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"not valid JSON: {error}") from error
    return dict(value)


def _get_properties(spec: ToolSpec) -> Mapping[str, JsonObject]:
    declared, _ = collect_arguments(spec.input_schema)
    return {name: rules if isinstance(rules, dict) else {} for name, rules in declared.items()}


def _describe_arguments(spec: ToolSpec) -> str:
    """Lists the arguments; optional ones are in brackets."""
    required = spec.required
    names = [name if name in required else f"[{name}]" for name in _get_properties(spec)]
    return f"arguments: {', '.join(names)}" if names else "it has no arguments"
