"""Values of JSON schemas, made from the schemas, and how a model writes them under a narrower schema."""

import json
from typing import Any

from agent.core.json_schema import iter_violations

TEXTS = {
    "date": "2026-03-01",
    "date-time": "2026-03-01T10:00:00Z",
    "uri": "https://example.test/a",
    "email": "anna@example.test",
    "uuid": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
}
BY_PATTERN = {
    "^\\d{10}\\.\\d{6}$": "1700000000.000100",
    "^(user|team):\\d+$": "user:7",
    "^[A-Z][A-Z0-9_]+$": "PROJ",
    "^(\\d{4}-\\d{2}-\\d{2}|today)$": "today",
    "^\\$(?:selection)$|^-?\\d+[:-]-?\\d+$": "1:2",
}
DEEPEST = 6


def make_samples(schema: dict[str, Any]) -> list[Any]:
    """Different valid objects: as little as possible, all properties, and all with the later forms of unions."""
    named = schema or {"type": "object", "properties": {}}
    turns = ((False, 0), (True, 0), (True, 1))
    made = [_make(named, schema, whole=whole, turn=turn, depth=0) for whole, turn in turns]
    different = {json.dumps(value, sort_keys=True): value for value in made if isinstance(value, dict)}
    return [value for value in different.values() if not list(iter_violations(schema, value))]


def _make(schema: Any, root: dict[str, Any], *, whole: bool, turn: int, depth: int) -> Any:
    if not isinstance(schema, dict) or not schema:
        return ["any text", 5, True][turn % 3]
    if "$ref" in schema:
        place: Any = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            place = place.get(step, {})
        return _make(place, root, whole=whole and depth < DEEPEST, turn=turn, depth=depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][-turn]
    forms = schema.get("anyOf", schema.get("oneOf"))
    if forms and "properties" not in schema and all("required" not in form or "properties" in form for form in forms):
        # Deep down the last form, which ends a recursion.
        form = forms[-1] if depth > DEEPEST else forms[turn % len(forms)]
        return _make(
            {"type": schema["type"], **form} if "type" in schema else form,
            root,
            whole=whole,
            turn=turn,
            depth=depth + 1,
        )
    if "allOf" in schema:
        parts = [_make(part, root, whole=whole, turn=turn, depth=depth + 1) for part in schema["allOf"]]
        return {name: one for part in parts for name, one in part.items()} if isinstance(parts[0], dict) else parts[0]
    return _make_plain(schema, root, whole=whole, turn=turn, depth=depth)


def _make_plain(schema: dict[str, Any], root: dict[str, Any], *, whole: bool, turn: int, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[turn % len(kind)] if isinstance(kind, list) else kind
    if kind == "object":
        return _make_object(schema, root, whole=whole, turn=turn, depth=depth)
    if kind == "array":
        places = schema.get("prefixItems", schema.get("items"))
        if isinstance(places, list):
            return [_make(one, root, whole=whole, turn=turn, depth=depth + 1) for one in places]
        count = max(schema.get("minItems", 0), 2 if whole and depth < DEEPEST else 0)
        items = [_make(schema.get("items"), root, whole=whole, turn=turn + at, depth=depth + 1) for at in range(count)]
        return items[: schema.get("maxItems", count)]
    if kind == "string":
        text = BY_PATTERN.get(schema.get("pattern", ""), TEXTS.get(schema.get("format", ""), "a text"))
        return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 99)]
    least = schema.get("minimum", 0) + ("exclusiveMinimum" in schema)
    return {"integer": least, "number": least, "boolean": True, "null": None}[kind]


def _make_object(schema: dict[str, Any], root: dict[str, Any], *, whole: bool, turn: int, depth: int) -> dict[str, Any]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    made = {
        name: _make(one, root, whole=whole, turn=turn, depth=depth + 1)
        for name, one in properties.items()
        if one is not False and (name in required or (whole and depth < DEEPEST))
    }
    made |= {name: "undeclared" for name in required if name not in properties}
    further = schema.get("additionalProperties", not properties)
    if whole and further is not False and not (depth == 0 and further is True and schema.keys() == {"type"}):
        if isinstance(further, dict):
            made["some key"] = _make(further, root, whole=whole, turn=turn, depth=depth + 1)
        elif depth:
            made["some key"] = {"deep": [1, "two", None]}
    return made


class NotWritableError(Exception):
    """Raised for a value that a schema has no form of."""


def write_value(value: Any, schema: dict[str, Any]) -> Any:
    """The value as a model writes it under this schema: what it has no form of as JSON text, what is not given as null.

    Raises `NotWritableError`."""
    for form in schema.get("anyOf", [schema]):
        try:
            if isinstance(value, dict) and form.get("type") == "object" and _may_be(value, form):
                return _write_object(value, form)
            if isinstance(value, list) and form.get("type") == "array":
                return [write_value(one, form["items"]) for one in value]
        except NotWritableError:
            continue
        if _is_scalar_of(value, form):
            return value
    text = json.dumps(value)
    if any(_is_scalar_of(text, form) for form in schema.get("anyOf", [schema])):
        return text
    raise NotWritableError(f"{text[:200]} under {json.dumps(schema)[:300]}")


def _is_scalar_of(value: Any, form: dict[str, Any]) -> bool:
    if isinstance(value, dict | list) or ("enum" in form and not any(_is_same(value, one) for one in form["enum"])):
        return False
    kinds = {str: ["string"], bool: ["boolean"], int: ["integer", "number"], float: ["number"], type(None): ["null"]}
    return "type" not in form or form["type"] in kinds[type(value)]


def _is_same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _may_be(value: dict[str, Any], form: dict[str, Any]) -> bool:
    """Whether the properties of one value only agree: most forms of a long union are passed over by that."""
    single = {name: one["enum"] for name, one in form["properties"].items() if len(one.get("enum", [])) == 1}
    return all(value[name] in values for name, values in single.items() if isinstance(value.get(name), str))


def _write_object(value: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = schema["properties"]
    # A tool may have inputs of these names: the text for further ones then has a longer name, and stands last.
    texts = [name for name, one in properties.items() if one == {"type": "string"} and name not in value]
    collecting = [name for name in texts if name.rstrip("_") in ("more", "others")][-1:]
    left = {name: one for name, one in value.items() if name not in properties}
    if left and not collecting:
        raise NotWritableError(f"{[*left]} have no place in {[*properties]}")
    written = {}
    for name, one in properties.items():
        if name in value:
            written[name] = write_value(value[name], one)
        elif name in collecting and (left or name in schema.get("required", [])):
            written[name] = json.dumps(left)
            left = {}
        elif name in schema.get("required", []):
            written[name] = _fill(one)
    return written


def _fill(schema: dict[str, Any]) -> Any:
    """What a model writes where it must and has nothing to say."""
    if {"type": "null"} in schema.get("anyOf", []):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "", "array": [], "number": 0, "integer": 0, "boolean": False}[schema["type"]]
