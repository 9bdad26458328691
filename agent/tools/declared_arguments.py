"""The arguments that a tool's schema declares, in references, parts and alternative forms too."""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from agent.core.json_schema import get_properties, list_required
from agent.core.models import JsonObject
from agent.core.schema_references import find_reference, resolve_schema

MAX_DEPTH = 5
"""Levels of parts and forms within each other; deeper ones are not looked at."""
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_MAPS = ("properties", "patternProperties", "dependentSchemas")
_SINGLE = ("items", "additionalProperties", "unevaluatedProperties", "then", "else", "contains")


def collect_arguments(root: JsonObject) -> tuple[JsonObject, list[str]]:
    """The declared arguments, also those of parts and of forms of the schema, and the names of those that every call
    needs, declared or not."""
    return collect_properties(root, root)


def collect_properties(schema: JsonValue, root: JsonObject, depth: int = 0) -> tuple[JsonObject, list[str]]:
    """The properties of an object's schema within `root`, and the names of those that are required."""
    resolved = resolve_schema(schema, root)
    if resolved is None or depth > MAX_DEPTH:
        return {}, []
    properties, required = {**get_properties(resolved)}, list_required(resolved)
    parts = resolved.get("allOf")
    for part in parts if isinstance(parts, list) else []:
        further, needed = collect_properties(part, root, depth + 1)
        properties = {**further, **properties}
        required += needed
    for forms in _list_forms(resolved):
        collected = [collect_properties(form, root, depth + 1) for form in forms]
        for further, _ in collected:
            for name, one in further.items():
                declared = properties.get(name)
                properties[name] = one if declared in (None, one) else {"anyOf": [declared, one]}
        if collected:
            required += [name for name in collected[0][1] if all(name in needed for _, needed in collected)]
    return properties, [*dict.fromkeys(required)]


def _list_forms(schema: JsonObject) -> list[list[JsonValue]]:
    """The schemas of which one holds, in groups. That a condition may hold requires nothing."""
    forms = [one for keyword in ("anyOf", "oneOf") if isinstance(one := schema.get(keyword), list)]
    further = [schema[keyword] for keyword in ("then", "else") if keyword in schema]
    dependent = schema.get("dependentSchemas")
    further += dependent.values() if isinstance(dependent, dict) else ()
    return [*forms, *([*further, True] for _ in range(bool(further)))]


def list_undeclared_arguments(schema: JsonObject, names: Iterable[str], *, is_foreign: bool) -> tuple[str, ...]:
    """The names that the tool neither declares nor says that it takes.

    JSON Schema lets an object have more than it declares, and most servers of others say nothing about it; then what is
    not declared is a mistake of the model or a word of its own, which the server drops or reads. A tool takes such
    arguments if its schema says so, or if it is foreign and declares none at all: by the Model Context Protocol such
    a schema accepts any object.
    """
    whole = resolve_schema(schema, schema) or schema
    declared, required = collect_arguments(schema)
    if any(_allows_more(one) for one in (schema, whole, *_list_parts(whole, schema))):
        return ()
    if is_foreign and not declared and not required and whole.get("additionalProperties") is not False:
        return ()
    return tuple(name for name in names if name not in declared and name not in required)


def _list_parts(schema: JsonObject, root: JsonObject) -> list[JsonObject]:
    parts = schema.get("allOf")
    resolved = (resolve_schema(part, root) for part in (parts if isinstance(parts, list) else ()))
    return [part for part in resolved if part is not None]


def _allows_more(schema: JsonObject) -> bool:
    """Whether a schema says that an object has more than it declares. Its own check compares their names and values."""
    further = (schema.get(keyword) for keyword in ("additionalProperties", "unevaluatedProperties"))
    return any(one not in (None, False) for one in further) or bool(schema.get("patternProperties"))


def iter_nested_schemas(schema: JsonValue, root: JsonObject) -> Iterator[JsonObject]:
    """Yields the schema of a value and those of everything within it, each once."""
    waiting, seen = [schema], set[int]()
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        reference = one.get("$ref")
        if isinstance(reference, str):
            waiting.append(find_reference(reference, root))
        for keyword in _LISTS:
            listed = one.get(keyword)
            waiting += listed if isinstance(listed, list) else ()
        for keyword in _MAPS:
            mapped = one.get(keyword)
            waiting += mapped.values() if isinstance(mapped, dict) else ()
        waiting += [one.get(keyword) for keyword in _SINGLE]
