"""Reads values back that were written under a narrower schema: texts that hold JSON, nulls that say "not given".

A value that fits its schema stays as it is.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass

from pydantic import JsonValue

from agent.core.json_schema import get_properties, iter_violations, list_required
from agent.core.json_texts import load_json, read_json_text
from agent.core.models import JsonObject
from agent.core.schema_references import MAX_DEPTH, list_forms, resolve_schema
from agent.llm.schema_derivation import get_single_value, get_type, name_others, takes_null


def restore_text(text: str, schema: JsonObject) -> str:
    """A reply that was written under a schema derived from this one; unchanged if it is not JSON alone."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(_Reading(schema, is_derived=True).read(value, schema, 0), ensure_ascii=False)


def read_json_texts(value: JsonValue, schema: JsonValue, root: JsonObject) -> JsonValue:
    """A value with the JSON of texts in it read where the schema, a part of `root`, takes an object, a list or a
    number."""
    return _Reading(root, is_derived=False).read(value, schema, 0)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One value that is read. References point into `root`."""

    root: JsonObject
    is_derived: bool
    """Whether it was written under a schema that `derive_schema` made: then objects may have properties that say "not
    given", that hold others, or that belong to another form of their union."""

    def read(self, value: JsonValue, schema: JsonValue, depth: int) -> JsonValue:
        """The value as its schema has it."""
        resolved = resolve_schema(schema, self.root)
        if resolved is None or depth > MAX_DEPTH:
            return value
        if isinstance(value, str):
            return self._read_text(value, resolved, depth)
        forms = list_forms(resolved, self.root)
        if len(forms) > 1 or forms[0] is not resolved:
            return self._read_form(value, forms, depth)
        if isinstance(value, list):
            return [self.read(one, resolved.get("items", True), depth + 1) for one in value]
        return self._read_object(value, resolved, depth) if isinstance(value, dict) else value

    def _read_text(self, text: str, schema: JsonObject, depth: int) -> JsonValue:
        """A text; the JSON value in it where the schema takes no text, or takes an object or a list as well."""
        kinds = {kind for form in list_forms(schema, self.root) for kind in list_types(form)}
        if self.is_derived and text == "null" and "null" in kinds:  # written where there was no form for null
            return None
        if kinds <= {"string", "null"} or ("string" in kinds and text.lstrip()[:1] not in ("{", "[")):
            return text
        try:
            value = load_json(text)
        except ValueError:
            return text
        if isinstance(value, str) or not _is_of_types(value, kinds):
            return text
        return self.read(value, schema, depth + 1)

    def _read_form(self, value: JsonValue, forms: list[JsonObject], depth: int) -> JsonValue:
        """The value in the first form of a union that it fits."""
        chosen = [form for form in forms if _may_be(value, form)]
        for form in chosen:
            one = self._drop_foreign(value, form, forms) if isinstance(value, dict) and self.is_derived else value
            read = self.read(one, form, depth + 1)
            if len(chosen) == 1 or next(iter_violations(_add_definitions(form, self.root), read), None) is None:
                return read
        return value

    def _drop_foreign(self, value: JsonObject, form: JsonObject, forms: list[JsonObject]) -> JsonObject:
        """The object without the properties that only other forms of its union have."""
        own = get_properties(form)
        foreign = {name for other in forms for name in get_properties(other) if name not in own}
        return {name: one for name, one in value.items() if name not in foreign}

    def _read_object(self, value: JsonObject, schema: JsonObject, depth: int) -> JsonObject:
        properties, required = get_properties(schema), list_required(schema)
        written = expand_text(value, name_others(properties)) if self.is_derived else value
        return {
            name: self.read(one, properties.get(name, True), depth + 1)
            for name, one in written.items()
            if one is not None or not self.is_derived or name in required or takes_null(properties.get(name))
        }


def expand_text(value: JsonObject, name: str) -> JsonObject:
    """The object with the properties of the JSON object in its text of this name; unchanged if there is none."""
    text = value.get(name)
    if not isinstance(text, str):
        return value
    further = read_json_text(text or "{}")
    if not isinstance(further, dict):
        return value
    return {**further, **{key: one for key, one in value.items() if key != name}}


def _may_be(value: JsonValue, form: JsonObject) -> bool:
    """Whether the types agree, and the properties that have one value only in this form."""
    if not _is_of_types(value, list_types(form)):
        return False
    if not isinstance(value, dict):
        return True
    singles = {name: get_single_value(one) for name, one in get_properties(form).items()}
    return all(value[name] == single for name, single in singles.items() if single is not None and name in value)


def _is_of_types(value: JsonValue, kinds: Collection[str]) -> bool:
    kind = get_type(value)
    return kind in kinds or (kind == "integer" and "number" in kinds)


def _add_definitions(form: JsonObject, root: JsonObject) -> JsonObject:
    """The form with what its references point to."""
    return {**form, **{name: root[name] for name in ("$defs", "definitions") if name in root and name not in form}}


_ALL_TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")


def list_types(schema: JsonObject) -> tuple[str, ...]:
    """The JSON types of a schema's values."""
    kind = schema.get("type")
    if isinstance(kind, list):
        return tuple(map(str, kind))
    if isinstance(kind, str):
        return (kind,)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        return tuple({get_type(value) for value in values})
    if "properties" in schema:
        return ("object",)
    return ("array",) if "items" in schema else _ALL_TYPES
