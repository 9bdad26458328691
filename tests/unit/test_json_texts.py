"""JSON that tools of other servers return as text."""

import pytest
from pydantic import JsonValue

from agent.core.failure_fields import is_blank
from agent.core.json_texts import MAX_DEPTH, read_json_text
from agent.llm.schema_values import read_json_texts

NUMBER: JsonValue = {"type": "object", "properties": {"x": {"type": "number"}}}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_what_is_no_number_of_json_stays_text(number: str) -> None:
    assert read_json_text(f'{{"a": {number}}}') == f'{{"a": {number}}}'
    assert read_json_text(f"[[{number}]]") == f"[[{number}]]"
    assert isinstance(NUMBER, dict)
    assert read_json_texts({"x": number}, NUMBER, NUMBER) == {"x": number}


def test_numbers_are_read_as_json_has_them() -> None:
    assert read_json_text('{"a": 1e3, "b": 12, "c": 1.5}') == {"a": 1000.0, "b": 12, "c": 1.5}
    assert isinstance(NUMBER, dict)
    assert read_json_texts({"x": "1e3"}, NUMBER, NUMBER) == {"x": 1000.0}


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 400, 900, 50_000])
def test_json_of_too_many_levels_stays_text(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        assert read_json_text(text) == text


def test_json_of_many_levels_is_read() -> None:
    assert isinstance(read_json_text("[" * MAX_DEPTH + "]" * MAX_DEPTH), list)


def test_a_value_of_any_depth_may_say_nothing() -> None:
    value: JsonValue = []
    for _ in range(20_000):
        value = [value]
    assert is_blank(value)
    assert not is_blank([value, "x"])
