"""What a schema says of a tool's arguments."""

import pytest
from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.execution.arguments import list_text_arg_names, read_container_args
from agent.tools import READ_ONLY, ToolSpec


def spec_of(schema: JsonObject) -> ToolSpec:
    return ToolSpec("t", "A tool.", schema, output=None, annotations=READ_ONLY, tainted=False)


@pytest.mark.parametrize(
    ("schema", "is_text"),
    [
        ({"type": "string"}, True),
        ({"type": ["string", "null"]}, True),
        ({"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, True),
        ({"oneOf": [{"type": "string"}, {"type": "array"}]}, False),
        ({"type": ["string", "object"]}, False),
        ({"anyOf": [{"type": "string"}, {}]}, False),
        ({"type": "integer"}, False),
        ({"type": "object"}, False),
        ({"enum": ["a", "b"]}, False),
        ({}, False),
        (True, False),
    ],
)
def test_an_argument_takes_text_where_its_schema_takes_a_string_and_nothing_of_many_values(
    schema: JsonValue, *, is_text: bool
) -> None:
    spec = spec_of({"type": "object", "properties": {"x": schema}})
    assert list_text_arg_names(spec) == ({"x"} if is_text else set())


def test_a_tool_without_named_arguments_has_none_that_take_text() -> None:
    assert list_text_arg_names(spec_of({"type": "object"})) == frozenset()


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "array"}, '["a"]', ["a"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"anyOf": [{"type": "array"}, {"type": "null"}]}, '["a"]', ["a"]),
        ({"type": ["array", "string"]}, '["a"]', '["a"]'),
        ({"type": "string"}, '["a"]', '["a"]'),
        ({"type": "integer"}, '["a"]', '["a"]'),
        ({}, '["a"]', '["a"]'),
        ({"type": "array"}, "[a", "[a"),
    ],
)
def test_json_text_is_read_where_only_a_list_or_an_object_fits(schema: JsonValue, text: str, value: JsonValue) -> None:
    spec = spec_of({"type": "object", "properties": {"x": schema}})
    assert read_container_args(spec, {"x": text, "y": text}) == {"x": value, "y": text}
