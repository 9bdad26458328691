"""Schemas of our tools: flat, without references, and with a type wherever any JSON value may stand."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, JsonValue

from agent.core.models import JsonObject
from agent.tools import READ_ONLY, ToolSpec
from agent.tools.catalogue import format_tool
from agent.tools.flat_schema import ANY_VALUE, build_flat_schema


class Inner(BaseModel):
    """A part of another model."""

    title: str
    value: JsonValue = Field(description="anything")


class Outer(BaseModel):
    """A model with everything that stays untyped by itself."""

    inner: Inner
    cells: list[list[JsonValue]]
    more: dict[str, JsonValue] = {}


def test_the_planner_is_shown_any_as_one_word() -> None:
    spec = ToolSpec("t", "Takes a value.", build_flat_schema(Inner), None, READ_ONLY, tainted=False)
    assert format_tool(spec) == "- t(title: string, value: any): Takes a value."


def list_untyped(schema: Any, path: str = "") -> list[str]:
    """The places of schemas without any keyword, which accept everything without saying so."""
    found: list[str] = []
    if isinstance(schema, list):
        return [place for number, one in enumerate(schema) for place in list_untyped(one, f"{path}[{number}]")]
    if not isinstance(schema, dict):
        return []
    for key, value in schema.items():
        subschemas = value if key == "properties" else {key: value} if key in ("items", "additionalProperties") else {}
        for name, one in subschemas.items() if isinstance(subschemas, dict) else ():
            if isinstance(one, dict) and not one.keys() - {"description", "default", "title"}:
                found.append(f"{path}.{name}")
            found += list_untyped(one, f"{path}.{name}")
        if key in ("anyOf", "oneOf", "allOf"):
            found += list_untyped(value, f"{path}.{key}")
    return found


def test_a_model_becomes_one_flat_schema_with_types_everywhere() -> None:
    schema = build_flat_schema(Outer)
    properties: Any = schema["properties"]
    assert "$defs" not in schema
    assert properties["inner"]["properties"] == {
        "title": {"type": "string"},
        "value": {**ANY_VALUE, "description": "anything"},
    }
    assert properties["cells"]["items"]["items"] == ANY_VALUE
    assert properties["more"]["additionalProperties"] is True
    assert list_untyped(schema) == []
    assert list_untyped({"properties": {"a": {"description": "d"}, "b": {"items": {}}}}) == [".a", ".b.items"]


@pytest.mark.parametrize("value", [1, 1.5, None, "x", {"a": [1]}, [1, {}], False])
def test_any_json_value_fits_where_any_may_stand(value: Any) -> None:
    example: JsonObject = {"inner": {"title": "t", "value": value}, "cells": [[value]], "more": {"x": value}}
    assert Draft202012Validator(build_flat_schema(Outer)).is_valid(example)
