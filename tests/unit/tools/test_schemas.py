"""Foreign schemas: valid ones pass, broken ones are named before they break a plan."""

from typing import Any

import pytest

from agent.tools.external_schema import MAX_CHARS, find_schema_problem


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
    assert find_schema_problem(schema) is None


def deep() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(3000):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strin"}, "not a valid JSON Schema"),
        ({"properties": {"a": {"$ref": "#/$defs/nowhere"}}}, "which it does not contain"),
        ({"properties": {"a": {"$ref": "https://example.com/schema.json"}}}, "which it does not contain"),
        ({"description": "x" * MAX_CHARS}, "longer than"),
        (deep(), "cannot be read"),
    ],
)
def test_a_broken_schema_is_named(schema: dict[str, Any], said: str) -> None:
    assert said in (find_schema_problem(schema) or "")
