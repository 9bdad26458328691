"""Days and times in the form that a tool's input asks for."""

import pytest

from agent.core.models import JsonObject
from agent.tools.moment_formats import format_moments

ISO = "2026-05-19T10:00:00"


def describe(text: str) -> JsonObject:
    return {"type": "object", "properties": {"start": {"type": "string", "description": text}}}


@pytest.mark.parametrize(
    ("description", "value", "written"),
    [
        ("The start, in format YYYY-MM-DD HH:MM.", ISO, "2026-05-19 10:00"),
        ("format '%Y-%m-%d %H:%M'", ISO, "2026-05-19 10:00"),
        ("Must be YYYY-MM-DDTHH:MM:SS", "2026-05-19 10:00", "2026-05-19T10:00:00"),
        ("The day (YYYY-MM-DD)", "2026-05-19T00:00:00", "2026-05-19"),
        ("DD.MM.YYYY", "2026-05-19", "19.05.2026"),
        ("US date, MM/DD/YYYY", "2026-05-19", "05/19/2026"),
        ("The start, in format YYYY-MM-DD HH:MM.", "2026-05-19 10:00", "2026-05-19 10:00"),
    ],
)
def test_a_moment_is_written_as_the_input_says(description: str, value: str, written: str) -> None:
    assert format_moments(describe(description), {"start": value}) == {"start": written}


@pytest.mark.parametrize(
    ("description", "value"),
    [
        ("The day (YYYY-MM-DD)", ISO),
        ("in format YYYY-MM-DD HH:MM", "2026-05-19T10:00:30"),
        ("in format YYYY-MM-DD HH:MM", "2026-05-19"),
        ("in format YYYY-MM-DD HH:MM", "2026-05-19T10:00:00Z"),
        ("in format YYYY-MM-DD HH:MM", "2026-02-30T10:00:00"),
        ("in format YYYY-MM-DD HH:MM", "tomorrow at 10"),
        ("YYYY-MM-DD or DD.MM.YYYY", "2026-05-19T00:00:00"),
        ("The start of the event.", ISO),
    ],
    ids=["a time is lost", "seconds are lost", "no time", "a zone", "no day", "words", "two forms", "no form"],
)
def test_nothing_else_is_changed(description: str, value: str) -> None:
    assert format_moments(describe(description), {"start": value}) == {"start": value}


def test_nested_inputs_are_written_so_too() -> None:
    schema: JsonObject = {"type": "object", "properties": {"stay": describe("DD.MM.YYYY"), "n": {"type": "integer"}}}
    inputs: JsonObject = {"stay": {"start": "2026-05-19"}, "n": 3, "other": ISO}
    assert format_moments(schema, inputs) == {"stay": {"start": "19.05.2026"}, "n": 3, "other": ISO}


def test_references_unions_and_lists_are_followed() -> None:
    """As servers that are written with Pydantic declare nested and optional inputs."""
    day: JsonObject = {"type": "string", "pattern": r"^\d{2}\.\d{2}\.\d{4}$", "description": "DD.MM.YYYY"}
    job: JsonObject = {
        "type": "object",
        "properties": {"bike": {"type": "string"}, "ready_by": {"anyOf": [day, {"type": "null"}], "default": None}},
    }
    schema: JsonObject = {
        "type": "object",
        "properties": {"job": {"$ref": "#/$defs/Job"}, "jobs": {"type": "array", "items": {"$ref": "#/$defs/Job"}}},
        "$defs": {"Job": job},
    }
    given: JsonObject = {"bike": "red", "ready_by": "2026-05-19"}
    fitting: JsonObject = {"bike": "red", "ready_by": "19.05.2026"}
    assert format_moments(schema, {"job": {**given}, "jobs": [{**given}, "x"]}) == {
        "job": fitting,
        "jobs": [fitting, "x"],
    }


def test_a_schema_that_refers_to_itself_ends() -> None:
    node: JsonObject = {"type": "object", "properties": {"day": {"description": "DD.MM.YYYY"}, "next": {"$ref": "#"}}}
    inputs: JsonObject = {"day": "2026-05-19", "next": {"day": "2026-05-20"}}
    for _ in range(30):
        inputs = {"day": "2026-05-19", "next": inputs}
    written = format_moments(node, inputs)
    assert written["day"] == "19.05.2026"
    assert isinstance(written["next"], dict)
    assert written["next"]["day"] == "19.05.2026"
    looping: JsonObject = {"type": "object", "properties": {"day": {"$ref": "#/properties/day"}}}
    assert format_moments(looping, {"day": "2026-05-19"}) == {"day": "2026-05-19"}
