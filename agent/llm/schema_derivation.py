"""Derives a schema in a dialect from the one schema that is meant.

What a dialect cannot say is a text that holds JSON, so that nothing is lost; `agent.llm.schema_values` reads it back.
"""

import json
import re
from collections.abc import Iterable

from pydantic import JsonValue

from agent.core.json_schema import get_properties, list_required
from agent.core.models import JsonObject
from agent.llm.schema_dialect import WHOLE, SchemaDialect

OTHERS = "others"
"""The property that takes what the others of its object cannot, as the text of a JSON object; with underscores behind
it where the object has one of that name."""
TEXT: JsonObject = {"type": "string"}
NULL: JsonObject = {"type": "null"}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_COUNTS, _LENGTHS = ("minItems", "maxItems"), ("minLength", "maxLength")


def derive_schema(schema: JsonObject, dialect: SchemaDialect) -> tuple[JsonObject, bool]:
    """The schema in a dialect, and whether its values differ in form from those of `schema`, so that they have to be
    read back. `schema` is an object without references."""
    if dialect == WHOLE:
        return schema, False
    deriving = _Deriving(dialect, schema)
    return deriving.derive(schema, 0), deriving.differs


def name_others(properties: Iterable[str]) -> str:
    """The name of the property of an object with these that takes what they cannot."""
    name = OTHERS
    while name in properties:
        name += "_"
    return name


class _Deriving:
    """One derivation. It counts what the dialect limits for the schema as a whole."""

    def __init__(self, dialect: SchemaDialect, schema: JsonObject) -> None:
        self._dialect = dialect
        self._values_left = dialect.max_values - _count_single_values(schema, dialect)
        self._optional_left = dialect.max_optional
        self._unions_left = dialect.max_unions
        self.differs = False

    def derive(self, schema: JsonValue, depth: int) -> JsonObject:
        """A part of the schema, `depth` levels below the root."""
        if not isinstance(schema, dict) or "$ref" in schema:
            return self._write_text()
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list):
            return self._derive_values(values, schema, depth)
        forms = schema.get("anyOf", schema.get("oneOf"))
        if isinstance(forms, list):
            return self._derive_union([one for one in forms if isinstance(one, dict)], depth)
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._derive_union([{**schema, "type": one} for one in kind], depth)
        if kind in ("array", "object") and depth > self._dialect.max_depth:
            return self._write_text()
        if kind == "array":
            return self._describe(
                schema, {"type": "array", "items": self.derive(schema.get("items"), depth + 1)}, _COUNTS
            )
        if kind == "object":
            return self._derive_object(schema, depth)
        return self._describe(schema, {"type": kind}, _LENGTHS) if isinstance(kind, str) else self._write_text()

    def _describe(self, schema: JsonObject, derived: JsonObject, limits: Iterable[str] = ()) -> JsonObject:
        """The derived schema with the description and the limits of the original one."""
        has_limits = self._dialect.has_counts if "maxItems" in limits else self._dialect.has_lengths
        names = [*(limits if has_limits else ()), "description"]
        return {**derived, **{name: schema[name] for name in names if name in schema}}

    def _write_text(self) -> JsonObject:
        self.differs = True
        return dict(TEXT)

    def _derive_values(self, values: list[JsonValue], schema: JsonObject, depth: int) -> JsonObject:
        by_type: dict[str, list[JsonValue]] = {}
        for value in values:
            by_type.setdefault(get_type(value), []).append(value)
        if len(by_type) > 1:
            self._values_left -= sum(len(same) == 1 for same in by_type.values())
            return self._derive_union([{"type": kind, "enum": same} for kind, same in by_type.items()], depth)
        kind = next(iter(by_type), "string")
        if kind in ("object", "array"):
            return self._write_text()
        if len(values) > 1:
            self._values_left -= len(values)
        is_left_out = (kind != "string" and not self._dialect.has_mixed_values) or (
            len(values) > 1 and self._values_left < 0
        )
        if is_left_out and len(values) > 1:
            self._values_left += len(values)
        return self._describe(schema, {"type": kind} if is_left_out else {"type": kind, "enum": [*values]})

    def _derive_union(self, forms: list[JsonObject], depth: int) -> JsonObject:
        if self._unions_left is not None:
            self._unions_left -= 1
            if self._unions_left < 0:
                return self._write_text()
        if self._dialect.has_unions:
            return join_schemas([self.derive(form, depth) for form in forms])
        merged = self._merge(forms)
        return self._write_text() if merged is None else self.derive(merged, depth)

    def _merge(self, forms: list[JsonObject]) -> JsonObject | None:
        """One schema without unions that takes the values of all forms; None if only a text can."""
        different = list({json.dumps(form, sort_keys=True): form for form in forms}.values())
        if len(different) == 1:
            return different[0]
        self.differs = True
        kinds = {form.get("type") for form in different}
        enums = [form.get("enum") for form in different]
        if kinds == {"string"} and all(isinstance(one, list) for one in enums):
            return {
                "type": "string",
                "enum": [*dict.fromkeys(str(value) for one in enums if isinstance(one, list) for value in one)],
            }
        if kinds == {"integer", "number"}:
            return {"type": "number"}
        if kinds == {"object"} and find_discriminator(different) is not None:
            return self._merge_objects(different)
        return (
            {"type": kinds.pop()} if len(kinds) == 1 and kinds <= {"string", "integer", "number", "boolean"} else None
        )

    def _merge_objects(self, forms: list[JsonObject]) -> JsonObject:
        """One object with the properties of all. Those of one form only are written for the others too, in vain."""
        properties: dict[str, list[JsonObject]] = {}
        for form in forms:
            for name, declared in get_properties(form).items():
                properties.setdefault(name, []).append(declared if isinstance(declared, dict) else {})
        merged: JsonObject = {}
        for name, schemas in properties.items():
            one = self._merge(schemas)
            merged[name] = dict(TEXT) if one is None else one
            if len(schemas) < len(forms) and isinstance(one, dict) and "minItems" in one:
                merged[name] = {**one, "minItems": 0}  # a list of one form is empty in the others
        required = [
            name
            for name in properties
            if self._dialect.requires_all or all(name in list_required(form) for form in forms)
        ]
        return {"type": "object", "properties": merged, "required": [*required], "additionalProperties": False}

    def _derive_object(self, schema: JsonObject, depth: int) -> JsonObject:
        properties = get_properties(schema)
        is_open = schema.get("additionalProperties", False) is not False
        if is_open or (not properties and not self._dialect.has_empty_objects):
            # The only text of an object without properties.
            return self._write_text() if is_open else {**self._write_text(), "enum": ["{}"]}
        required = list_required(schema)
        folded = self._list_folded(properties, required)
        written: JsonObject = {}
        for name, declared in properties.items():
            if name in folded:
                continue
            one = self.derive(declared, depth + 1)
            is_nullable = self._dialect.requires_all and name not in required
            written[name] = join_schemas([one, NULL]) if is_nullable else one
            self.differs = self.differs or is_nullable
        if folded:
            written[name_others(properties)] = self._write_text()
        names = [name for name in written if self._dialect.requires_all or name in required or name not in properties]
        closing: JsonObject = {"additionalProperties": False} if self._dialect.closes_objects else {}
        return self._describe(schema, {"type": "object", "properties": written, "required": [*names], **closing})

    def _list_folded(self, properties: JsonObject, required: Iterable[str]) -> set[str]:
        """The properties that are not written as such: with odd names, or optional ones that cannot be."""
        dialect = self._dialect
        odd = {name for name in properties if not dialect.has_any_names and not _PLAIN_NAME.fullmatch(name)}
        optional = [name for name in properties if name not in required and name not in odd]
        if dialect.requires_all:  # null says that one is not given: it cannot be its value as well
            odd |= {name for name in optional if not dialect.has_unions or takes_null(properties[name])}
            optional = [name for name in optional if name not in odd]
            if self._unions_left is not None:
                if len(optional) > self._unions_left:
                    return odd.union(optional)
                self._unions_left -= len(optional)
        if self._optional_left is not None:
            if len(optional) > self._optional_left:
                return odd.union(optional)
            self._optional_left -= len(optional)
        return odd


def find_discriminator(forms: Iterable[JsonValue]) -> str | None:
    """The property that has one single value in each of these objects."""
    names: set[str] | None = None
    for form in forms:
        single = {name for name, one in get_properties(form).items() if get_single_value(one) is not None}
        names = single if names is None else names & single
    return min(names) if names else None


def get_single_value(schema: JsonValue) -> JsonValue:
    """The only value that a schema takes, or None."""
    if not isinstance(schema, dict):
        return None
    values = schema.get("enum")
    return schema.get("const", values[0] if isinstance(values, list) and len(values) == 1 else None)


def takes_null(schema: JsonValue) -> bool:
    """Whether null is a value of a schema."""
    if not isinstance(schema, dict):
        return True
    forms = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(forms, list):
        return any(map(takes_null, forms))
    values, kind = schema.get("enum"), schema.get("type")
    if isinstance(values, list):
        return None in values
    return kind is None or kind == "null" or (isinstance(kind, list) and "null" in kind)


def join_schemas(schemas: Iterable[JsonObject]) -> JsonObject:
    """The schema of any one of these, each once, without unions within unions."""
    forms: dict[str, JsonValue] = {}
    for schema in schemas:
        inner = schema.get("anyOf")
        for form in inner if isinstance(inner, list) and len(schema) == 1 else [schema]:
            forms.setdefault(json.dumps(form, sort_keys=True), form)
    first = next(iter(forms.values()), None)
    return first if len(forms) == 1 and isinstance(first, dict) else {"anyOf": [*forms.values()]}


def get_type(value: JsonValue) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {str: "string", int: "integer", float: "number", list: "array", dict: "object"}[type(value)]


def _count_single_values(schema: JsonValue, dialect: SchemaDialect) -> int:
    """The enumerations of one value, also those in place of empty objects."""
    if isinstance(schema, list):
        return sum(_count_single_values(one, dialect) for one in schema)
    if not isinstance(schema, dict):
        return 0
    if get_single_value(schema) is not None:
        return 1
    is_empty = schema.get("type") == "object" and not schema.get("properties")
    within = sum(_count_single_values(one, dialect) for name, one in schema.items() if name != "enum")
    return within + (is_empty and not dialect.has_empty_objects)
