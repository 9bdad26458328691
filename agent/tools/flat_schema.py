"""JSON schemas of Pydantic models without references: some clients drop tools over them."""

from functools import cache

from pydantic import BaseModel, JsonValue

from agent.core.models import JsonObject

ANY_VALUE: JsonObject = {
    "anyOf": [{"type": name} for name in ("string", "number", "boolean", "object", "array", "null")]
}
"""The schema of any JSON value. One type a branch, because some clients know no lists of types."""


@cache
def build_flat_schema(model: type[BaseModel]) -> JsonObject:
    """The model's JSON schema without titles and with `$ref`s inlined: some clients drop tools over either.

    Cached per model and shared: do not change it.
    """
    schema = model.model_json_schema()
    flat = _inline_references(schema, schema.get("$defs", {}))
    if not isinstance(flat, dict):
        raise TypeError(f"{model.__name__} has no object schema")
    flat.pop("$defs", None)
    flat.setdefault("properties", {})
    return flat


def _inline_references(node: JsonValue, definitions: JsonObject) -> JsonValue:
    if isinstance(node, list):
        return [_inline_references(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    ref = node.get("$ref")
    if isinstance(ref, str):
        target = definitions[ref.rsplit("/", 1)[-1]]
        merged = {**target, **node} if isinstance(target, dict) else dict(node)
        merged.pop("$ref")
        return _inline_references(merged, definitions)
    flat: JsonObject = {}
    for key, value in node.items():
        if key == "properties" and isinstance(value, dict):  # "title" may be the name of a property
            flat[key] = {name: _name_any(_inline_references(sub, definitions)) for name, sub in value.items()}
        elif key == "items":
            flat[key] = _name_any(_inline_references(value, definitions))
        elif key not in ("title", "$defs"):
            flat[key] = _inline_references(value, definitions)
    if flat.get("additionalProperties") == {}:
        flat["additionalProperties"] = True
    return flat


def _name_any(schema: JsonValue) -> JsonValue:
    """The schema of any JSON value with its types: clients report a schema without keywords as a mistake."""
    is_any = isinstance(schema, dict) and schema.keys() <= {"description", "default"}
    return {**ANY_VALUE, **schema} if is_any and isinstance(schema, dict) else schema
