"""Comparing values with schemas that others wrote: right, in bounded time, without reaching any address."""

from time import monotonic

import pytest
from jsonschema import Draft202012Validator

from agent.answers.structured_answer import read_json_answer
from agent.core import json_schema
from agent.core.json_schema import iter_violations
from agent.core.models import JsonObject


def _messages(schema: dict[str, object], value: object) -> list[str]:
    return [f"{one.where}: {one.message}" for one in iter_violations(schema, value)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^[A-Z]{2}-\\d+$"}, "AB-12"),
        ({"pattern": "^[A-Z]{2}-\\d+$"}, "AB-x"),
        ({"pattern": "b"}, "abc"),
        ({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False}, {"x1": 1}),
        ({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False}, {"x1": "1"}),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"y": 1}),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, {"a": 1, "b": 2}),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1, "b": 2}),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}]),
        ({"uniqueItems": True}, [1, 1.0]),
        ({"uniqueItems": True}, [{"a": [1]}, {"a": [1.0]}]),
        ({"uniqueItems": True}, [[True], [1]]),
        ({"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}, [1, "2"]),
        ({"properties": {"a": {"type": "string", "title": "A"}, "b": {"type": "string"}}}, {"a": "x", "b": 1}),
        ({"properties": {"a": {"type": "string", "minLength": 2}}}, {"a": "x"}),
        ({"properties": {"a": {"type": "string", "minLength": 1, "maxLength": 2}}}, {"a": "xyz"}),
        ({"properties": {"a": {"type": "string", "maxLength": 3}}}, {"a": "xyz"}),
        ({"properties": {"a": {"type": "string", "enum": ["x"]}}}, {"a": "y"}),
        ({"properties": {"a": {"type": "string", "pattern": "^y"}}}, {"a": "x"}),
        ({"properties": {"a": {"type": "string", "not": {}}}}, {"a": "x"}),
        ({"properties": {"a": {"type": ["string", "null"]}, "b": False, "c": True}}, {"a": "x", "b": "x", "c": "x"}),
        ({"properties": {"a": {"properties": {"b": {"type": "string"}}}}}, {"a": {"b": None}}),
        ({"properties": {"a": {"type": "string"}}, "unevaluatedProperties": False}, {"a": "x", "b": "x"}),
        ({"properties": {"a": {"type": "string"}}}, ["a"]),
    ],
)
def test_the_same_places_are_refused_as_by_jsonschema(schema: dict[str, object], value: object) -> None:
    expected = [tuple(fault.absolute_path) for fault in Draft202012Validator(schema).iter_errors(value)]
    assert [one.path for one in iter_violations(schema, value)] == expected


def test_every_schema_has_its_own_validator() -> None:
    for length in range(json_schema.MAX_KNOWN_SCHEMAS + 100):  # without a reference to any of them
        assert not _messages({"maxLength": length}, "x" * length)
        assert len(_messages({"maxLength": length}, "x" * (length + 1))) == 1


def test_a_pattern_that_backtracks_takes_no_time() -> None:
    began = monotonic()
    assert len(_messages({"pattern": "(a+)+$"}, "a" * 5_000 + "b")) == 1
    assert monotonic() - began < 5


def test_references_that_double_end_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "COMPARE_SECONDS", 0.2)
    doubling: dict[str, object] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(60)
    }
    schema: dict[str, object] = {"$ref": "#/$defs/d0", "$defs": {**doubling, "d60": {"type": "integer"}}}
    began = monotonic()
    assert _messages(schema, 1) == [": a check against the schema takes longer than 0.2 s; simplify it"]
    assert monotonic() - began < 5


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"$ref": "#"}, 1, "nested too deeply"),
        ({"$ref": "http://127.0.0.1:9/x"}, 1, "cannot be resolved"),
        ({"$dynamicRef": "http://127.0.0.1:9/x"}, 1, "cannot be resolved"),
        ({"multipleOf": 0.1}, float("inf"), "cannot be used for a check"),
    ],
)
def test_a_schema_that_cannot_be_compared_with_is_a_violation(
    schema: dict[str, object], value: object, told: str
) -> None:
    assert told in _messages(schema, value)[0]


def test_patterns_that_are_not_known_are_not_compared() -> None:
    assert _messages({"pattern": "(?=x)y"}, "z") == []
    assert _messages({"patternProperties": {"(?=x)y": {"type": "null"}}}, {"z": 1}) == []


async def test_an_answer_of_many_brackets_is_read_in_bounded_time() -> None:
    options: JsonObject = {"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "#"}}}}
    began = monotonic()
    assert (await read_json_answer("no json " + "{} " * 20_000, options))[1]
    assert monotonic() - began < 20


def test_the_time_that_loading_the_library_takes_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    build = json_schema._build_validator

    def build_slowly(schema: str) -> object:
        clock.now += 2 * json_schema.COMPARE_SECONDS
        return build(schema)

    class Clock:
        now = 0.0

    clock = Clock()
    monkeypatch.setattr(json_schema, "thread_time", lambda: clock.now)
    monkeypatch.setattr(json_schema, "_build_validator", build_slowly)
    assert not list(json_schema.iter_violations({"type": "array", "items": {"pattern": "a"}}, ["a"]))


def test_tuples_and_limits_of_older_drafts_are_compared() -> None:
    pair = {"type": "array", "items": [{"type": "number"}, {"type": "string"}], "additionalItems": False}
    above = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "enum": [0, 0.5, 2]}
    schema = {"type": "object", "properties": {"pair": pair, "above": above, "items": {"enum": [["a"], "b"]}}}
    assert not list(iter_violations(schema, {"pair": [1, "a"], "above": 0.5, "items": ["a"]}))
    for wrong in ({"pair": ["a", "a"]}, {"pair": [1, "a", 2]}, {"above": 0}, {"items": "a"}):
        assert list(iter_violations(schema, wrong)), wrong


@pytest.mark.parametrize("schema", [{"properties": {"a": ["text"]}}, {"items": 5}, {"minimum": "low"}])
def test_a_schema_that_is_none_is_named(schema: dict[str, object]) -> None:
    for value in ({"a": 1}, [1], 1):
        for fault in iter_violations(schema, value):
            assert "cannot be used for a check" in fault.message


def test_a_long_value_does_not_hide_what_is_wrong_with_it() -> None:
    schema = {"properties": {"text": {"type": "string", "maxLength": 500}}}
    [fault] = iter_violations(schema, {"text": "1+" * 400 + "1"})
    assert fault.message == f"'{('1+' * 40)[:79]}…' is too long"
    [short] = iter_violations(schema, {"text": 7})
    assert short.message == "7 is not of type 'string'"


OPTIONAL_DAY: JsonObject = {"anyOf": [{"type": "string", "pattern": r"^\d{2}\.\d{2}$"}, {"type": "null"}]}
OPTIONAL_JOB: JsonObject = {
    "oneOf": [{"type": "object", "properties": {"day": OPTIONAL_DAY}, "required": ["bike"]}, {"type": "null"}]
}


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (OPTIONAL_DAY, "2026", [((), r"'2026' does not match '^\\d{2}\\.\\d{2}$'")]),
        (OPTIONAL_DAY, 5, [((), "5 is not valid under any of the given schemas")]),
        ({"anyOf": [False, {"minLength": 3}]}, "a", [((), "'a' is too short")]),
        ({"anyOf": [False]}, "a", [((), "'a' is not valid under any of the given schemas")]),
        (OPTIONAL_JOB, {}, [((), "'bike' is a required property")]),
        (OPTIONAL_JOB, {"bike": "red", "day": "x"}, [(("day",), r"'x' does not match '^\\d{2}\\.\\d{2}$'")]),
        (
            {"anyOf": [{"minLength": 3}, {"pattern": "z"}]},
            "a",
            [((), "'a' is not valid under any of the given schemas")],
        ),
    ],
)
def test_of_a_union_the_form_that_was_meant_is_told(
    schema: JsonObject, value: object, told: list[tuple[tuple[str, ...], str]]
) -> None:
    assert [(fault.path, fault.message) for fault in iter_violations(schema, value)] == told
