"""Optional inputs that a model fills though it has nothing to say."""

from typing import Any

import pytest

from agent.core.models import JsonObject
from agent.tools import READ_ONLY, ToolAnnotations, ToolSpec
from agent.tools.spec import drop_unset_inputs, limit_numbers

PROPERTIES: JsonObject = {
    "path": {"type": "string"},
    "pattern": {"type": "string"},
    "zone": {"type": "string", "minLength": 1},
    "line": {"type": "integer", "minimum": 1},
    "limit": {"type": "integer"},
    "deep": {"type": "boolean"},
    "kind": {"enum": ["a", "b"]},
}


def make_tool(origin: str = "builtin", annotations: ToolAnnotations = READ_ONLY) -> ToolSpec:
    schema: JsonObject = {"type": "object", "properties": PROPERTIES, "required": ["path"]}
    return ToolSpec("t", "A tool.", schema, None, annotations, tainted=False, origin=origin)


@pytest.mark.parametrize("unset", [{"pattern": ""}, {"zone": None}, {"line": 0}, {"pattern": "", "limit": None}])
def test_an_empty_optional_input_of_our_own_tools_is_unset(unset: dict[str, Any]) -> None:
    assert drop_unset_inputs(make_tool(), {"path": "x", **unset}) == {"path": "x"}


@pytest.mark.parametrize("said", [{"limit": 0}, {"deep": False}, {"kind": "c"}, {"line": -1}, {"pattern": "0"}])
def test_what_may_be_meant_stays(said: dict[str, Any]) -> None:
    assert drop_unset_inputs(make_tool(), {"path": "x", **said}) == {"path": "x", **said}


def test_a_required_input_stays_also_if_it_is_empty() -> None:
    assert drop_unset_inputs(make_tool(), {"path": ""}) == {"path": ""}


def test_of_a_foreign_tool_only_what_its_schema_refuses_is_dropped() -> None:
    spec = make_tool("mcp")
    assert drop_unset_inputs(spec, {"path": "x", "pattern": "", "zone": "", "line": 0, "kind": None}) == {
        "path": "x",
        "pattern": "",
    }


def test_an_empty_text_may_clear_a_value_where_something_is_changed() -> None:
    changes = ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False)
    for origin in ("builtin", "mcp"):
        spec = make_tool(origin, changes)
        assert drop_unset_inputs(spec, {"path": "x", "pattern": "", "line": 0}) == {
            "path": "x",
            "pattern": "",
            "line": 0,
        }


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"rows": 10**15}, {"rows": 1000}),
        ({"rows": 1e9}, {"rows": 1000}),
        ({"rows": 1000}, {"rows": 1000}),
        ({"rows": "many"}, {"rows": "many"}),
        ({"least": 5000}, {"least": 5000}),
        ({"rows": -5}, {"rows": -5}),
        ({"unknown": 10**9}, {"unknown": 10**9}),
    ],
)
def test_more_than_a_reading_tool_gives_means_all_that_it_gives(given: JsonObject, taken: JsonObject) -> None:
    properties: JsonObject = {
        "rows": {"type": "integer", "maximum": 1000},
        "least": {"type": "integer", "maximum": 10},
    }
    schema: JsonObject = {"type": "object", "properties": properties, "required": ["least"]}
    tool = ToolSpec("t", "A tool.", schema, None, READ_ONLY, tainted=False)
    assert limit_numbers(tool, given) == taken
    changing = ToolSpec("t", "A tool.", schema, None, ToolAnnotations(read_only=False), tainted=False)
    assert limit_numbers(changing, given) == given, "a change is made as it was asked for or not at all"
