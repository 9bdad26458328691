"""Follows the references of a JSON schema, as far as they point into it."""

from collections.abc import Iterator
from urllib.parse import unquote

from pydantic import JsonValue

from agent.core.models import JsonObject

MAX_STEPS = 30
"""References that lead to one another; more may be a circle."""
MAX_DEPTH = 30
"""Levels of a schema or a value that are looked at."""


def resolve_schema(schema: JsonValue, root: JsonObject) -> JsonObject | None:
    """The schema that a reference means, or that the one part of an `allOf` means; None for no schema."""
    for _ in range(MAX_STEPS):
        if not isinstance(schema, dict):
            return None
        reference, parts = schema.get("$ref"), schema.get("allOf")
        if isinstance(reference, str):
            schema = find_reference(reference, root)
        elif isinstance(parts, list) and len(parts) == 1 and not schema.keys() & {"type", "properties"}:
            schema = parts[0]
        else:
            return schema
    return None


def list_forms(schema: JsonObject, root: JsonObject, depth: int = 0) -> list[JsonObject]:
    """The schemas of a union, also of one within another; else the schema alone."""
    forms = schema.get("anyOf", schema.get("oneOf"))
    if not isinstance(forms, list) or "properties" in schema or depth > MAX_DEPTH:
        return [schema]
    resolved = [one for form in forms if (one := resolve_schema(form, root)) is not None]
    return [inner for one in resolved for inner in list_forms(one, root, depth + 1)] or [schema]


def find_reference(reference: str, root: JsonObject) -> JsonValue:
    """What a reference within the schema, such as `#/properties/name/items`, points to; None for another."""
    place: JsonValue = root
    if reference == "#":
        return root
    for step in _iter_steps(reference):
        if isinstance(place, dict):
            place = place.get(step)
        elif isinstance(place, list) and step.isdecimal() and int(step) < len(place):
            place = place[int(step)]
        else:
            return None
    return place if reference.startswith("#/") else None


def _iter_steps(reference: str) -> Iterator[str]:
    """The steps of a JSON pointer in a URL (RFC 6901)."""
    for step in reference.removeprefix("#/").split("/"):
        yield unquote(step).replace("~1", "/").replace("~0", "~")
