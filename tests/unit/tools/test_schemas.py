"""Foreign schemas: sound ones pass, broken ones are named before they can break a plan."""

from typing import Any

import pytest

from mcp_tools.schemas import MAX_CHARS, schema_problem


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x+$"}}},
        {"$defs": {"a/b": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a~1b"}}},
        {"type": "object", "properties": {"child": {"$ref": "#"}}},
    ],
)
def test_a_sound_schema(schema: dict[str, Any] | None) -> None:
    assert schema_problem(schema) is None


def deep() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(3000):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strin"}, "no JSON Schema"),
        ({"properties": {"a": {"$ref": "#/$defs/nowhere"}}}, "which is not in it"),
        ({"properties": {"a": {"$ref": "https://example.com/schema.json"}}}, "which is not in it"),
        ({"properties": {"a": {"pattern": "("}}}, "no JSON Schema"),
        ({"description": "x" * MAX_CHARS}, "longer than"),
        (deep(), "cannot be read"),
    ],
)
def test_a_broken_schema_is_named(schema: dict[str, Any], said: str) -> None:
    assert said in (schema_problem(schema) or "")
