"""The fields of `extract`: a flat JSON schema that a plan writes, and the check of what a model returns for it.

A field is a text, a number, a yes or no, a date, an id, one of some choices, or a list of these; a list may also hold
objects of such fields and of such lists, without further levels.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Literal

from pydantic import JsonValue

from agent.core.errors import ToolInputError
from agent.core.models import JsonObject

EXTRACT: Final = "extract"
"""The tool that takes fields out of results."""
Kind = Literal["string", "number", "integer", "boolean", "date", "id", "choice", "array", "object"]
ID_PATTERN: Final = r"[A-Za-z0-9._:@-]{1,64}"
"""The characters of an id whose schema has no pattern: too little to carry an instruction."""
MAX_FIELDS: Final = 30
MAX_ITEMS: Final = 200
MAX_CHOICES: Final = 50
MAX_NAME_CHARS: Final = 64
_NAME: Final = re.compile(r"[A-Za-z_][\w-]*")
_SIMPLE: Final[Mapping[str, Kind]] = {
    "string": "string", "text": "string", "str": "string",
    "number": "number", "float": "number", "amount": "number",
    "integer": "integer", "int": "integer", "boolean": "boolean", "bool": "boolean",
    "date": "date", "id": "id",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExtractedField:
    """One field. `item` is what a list holds, `fields` what an object holds."""

    kind: Kind
    description: str = ""
    pattern: str = ""
    choices: tuple[JsonValue, ...] = ()
    item: "ExtractedField | None" = None
    fields: Mapping[str, "ExtractedField"] = field(default_factory=dict)


def parse_fields(schema: JsonObject) -> dict[str, ExtractedField]:
    """The fields of a schema: `{"email": "string"}`, or JSON Schema with `properties`.

    Raises `ToolInputError` that says what is wrong.
    """
    properties = schema.get("properties")
    named = properties if isinstance(properties, dict) and schema.get("type", "object") == "object" else schema
    if not 1 <= len(named) <= MAX_FIELDS:
        raise ToolInputError(f"fields: give 1 to {MAX_FIELDS} fields by name, such as {{'email': 'string'}}")
    return {_check_name(name): _parse_field(name, one, depth=0) for name, one in named.items()}


def find_fields_problem(schema: JsonValue) -> str | None:
    """The fault of the fields that a plan asks for; None if they are right."""
    if not isinstance(schema, dict):
        return None  # the tool's own schema says it
    try:
        parse_fields(schema)
    except ToolInputError as error:
        return error.message
    return None


def build_fields_schema(fields: Mapping[str, ExtractedField]) -> JsonObject:
    """The strict JSON schema of a model's reply. Every field may be null."""
    properties: JsonObject = {name: _build_schema(one) for name, one in fields.items()}
    return {"type": "object", "additionalProperties": False, "required": [*fields], "properties": properties}


def describe_fields(fields: Mapping[str, ExtractedField]) -> str:
    """One line for each field, for a prompt."""
    return "\n".join(f"- {name}: {_describe(one)}" for name, one in fields.items())


def read_values(fields: Mapping[str, ExtractedField], reply: JsonObject) -> tuple[JsonObject, list[str]]:
    """The values by field, null for those that are missing, and what of the reply does not fit."""
    problems: list[str] = []
    return {name: _read(name, one, reply.get(name), problems) for name, one in fields.items()}, problems


def _check_name(name: str) -> str:
    if len(name) > MAX_NAME_CHARS or _NAME.fullmatch(name) is None:
        raise ToolInputError(f"fields: {name[:MAX_NAME_CHARS]!r} is not a name; use letters, digits and _")
    return name


def _parse_field(name: str, given: JsonValue, *, depth: int) -> ExtractedField:
    if isinstance(given, str):
        given = {"type": given}
    if isinstance(given, list):  # a list of one kind, or choices
        is_kind = len(given) == 1 and (
            isinstance(given[0], dict) or (isinstance(given[0], str) and given[0] in _SIMPLE)
        )
        given = {"type": "array", "items": given[0]} if is_kind else {"enum": given}
    if not isinstance(given, dict):
        raise ToolInputError(f"fields: {name}: give a type, such as string or number")
    description = str(given.get("description") or "")[:300]
    choices = given.get("enum")
    if isinstance(choices, list):
        if not 1 <= len(choices) <= MAX_CHOICES or not all(isinstance(one, str | int | float) for one in choices):
            raise ToolInputError(f"fields: {name}: an enum has 1 to {MAX_CHOICES} texts or numbers")
        return ExtractedField("choice", description, choices=tuple(choices))
    kind = _find_kind(name, given)
    if kind == "array":
        if depth in (1, 3):
            raise ToolInputError(f"fields: {name}: a list may not hold lists; let it hold objects or plain values")
        item = _parse_field(f"{name}[]", given.get("items", "string"), depth=depth + 1)
        return ExtractedField("array", description, item=item)
    if kind == "object":
        inner = given.get("properties")
        inner = (
            inner if isinstance(inner, dict) else {k: v for k, v in given.items() if k not in ("type", "description")}
        )
        if depth > 1 or not 1 <= len(inner) <= MAX_FIELDS:
            raise ToolInputError(f"fields: {name}: only lists may hold objects, of 1 to {MAX_FIELDS} fields")
        fields = {_check_name(key): _parse_field(f"{name}.{key}", one, depth=2) for key, one in inner.items()}
        return ExtractedField("object", description, fields=fields)
    pattern = given.get("pattern")
    return ExtractedField(kind, description, pattern=_check_pattern(name, pattern) if kind == "id" and pattern else "")


def _find_kind(name: str, given: JsonObject) -> Kind:
    kinds = given.get("type")
    if isinstance(kinds, list):  # ["string", "null"]
        kinds = next((one for one in kinds if one != "null"), None)
    if given.get("format") == "date" and kinds in (None, "string"):
        return "date"
    if kinds == "array" or "items" in given:
        return "array"
    if kinds == "object" or (kinds is None and given):
        return "object"
    kind = _SIMPLE.get(str(kinds).lower())
    if kind is None:
        raise ToolInputError(
            f"fields: {name}: the type {kinds!r} is unknown; known: {', '.join(dict.fromkeys(_SIMPLE))}"
        )
    return kind


def _check_pattern(name: str, pattern: JsonValue) -> str:
    """The pattern of an id. Only characters and their number: a plan's pattern must not take long to match."""
    if (
        not isinstance(pattern, str)
        or re.fullmatch(r"\^?(?:\[[\w.:@ -]{1,60}\]|\\[dw])(?:\{\d{1,2}(?:,\d{0,2})?\}|\+)?\$?", pattern) is None
    ):
        raise ToolInputError(
            f"fields: {name}: a pattern is one set of characters with its number, such as [A-Z0-9]{{1,20}}"
        )
    try:
        re.compile(pattern)
    except re.error as error:
        raise ToolInputError(f"fields: {name}: the pattern cannot be read: {error}") from error
    return pattern


def _build_schema(one: ExtractedField) -> JsonObject:
    match one.kind:
        case "choice":
            return {"enum": [*one.choices, None]}
        case "array" if one.item is not None:
            return {"type": ["array", "null"], "items": _build_schema(one.item), "maxItems": MAX_ITEMS}
        case "object":
            return {**build_fields_schema(one.fields), "type": ["object", "null"]}
        case "date" | "id":
            return {"type": ["string", "null"]}
        case _:
            return {"type": [one.kind, "null"]}


def _describe(one: ExtractedField) -> str:
    note = f" ({one.description})" if one.description else ""
    match one.kind:
        case "choice":
            return f"one of {', '.join(map(str, one.choices))}, or null{note}"
        case "array" if one.item is not None:
            return f"a list, each item {_describe(one.item)}{note}"
        case "object":
            return (
                "an object with "
                + "; ".join(f"{name}: {_describe(inner)}" for name, inner in one.fields.items())
                + note
            )
        case "date":
            return f"a date as YYYY-MM-DD, or null{note}"
        case _:
            return f"{one.kind}, or null{note}"


def _read(name: str, one: ExtractedField, value: JsonValue, problems: list[str]) -> JsonValue:
    """A value of a reply as its field's type; null with a problem if it does not fit."""
    if value is None or value == "":
        return None
    if one.kind == "array" and one.item is not None and isinstance(value, list) and len(value) <= MAX_ITEMS:
        return [_read(f"{name}[{place}]", one.item, item, problems) for place, item in enumerate(value)]
    if one.kind == "object" and isinstance(value, dict):
        return {key: _read(f"{name}.{key}", inner, value.get(key), problems) for key, inner in one.fields.items()}
    plain = None if one.kind in ("array", "object") else _read_plain(one, value)
    if plain is None:
        problems.append(f"{name} is {str(value)[:60]!r}, which is not {_describe(one)}")
    return plain


def _read_plain(one: ExtractedField, value: JsonValue) -> JsonValue:
    """A value of a field that is neither a list nor an object; None if it does not fit."""
    if one.kind == "choice":
        return value if value in one.choices else None
    if one.kind == "boolean":
        return value if isinstance(value, bool) else None
    if one.kind in ("number", "integer"):
        number = _read_number(value)
        return None if number is None or (one.kind == "integer" and number != int(number)) else number
    if isinstance(value, dict | list | bool):
        return None
    text = str(value)
    if one.kind == "id":
        return value if re.fullmatch(one.pattern or ID_PATTERN, text) else None
    return text if one.kind == "string" or _is_date(text) else None


def _read_number(value: JsonValue) -> float | int | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if abs(value) < 1e300 else None
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,30}(?:\.\d{1,30})?", value.strip()):
        return float(value) if "." in value else int(value)
    return None


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value[:10])
    except ValueError:
        return False
    return len(value) == 10
