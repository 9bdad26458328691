"""The schema of a decision: closed, typed by each tool, the answer last; no tool is lost over its schema."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agent.core.models import JsonObject
from agent.planning.rounds.decision_schema import LATER, build_choice_schema, build_decision_schema
from agent.planning.rounds.input_schemas import MORE, OPTIONAL_INPUTS, build_inputs_schema, read_inputs
from agent.tools import READ_ONLY, ToolSpec
from agent.tools.catalogue import SkillCard

KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "minItems", "maxItems",
    "maxLength",
}  # fmt: skip


def make_tool(name: str, **schema: Any) -> ToolSpec:
    return ToolSpec(name, f"The tool {name}.", {"type": "object", **schema}, None, READ_ONLY, tainted=False)


def iterate_schemas(schema: Any) -> Iterator[JsonObject]:
    if isinstance(schema, dict):
        yield schema
        for name, value in schema.items():
            children = value.values() if name == "properties" else [value] if name != "enum" else []
            for child in children:
                yield from iterate_schemas(child)
    elif isinstance(schema, list):
        for item in schema:
            yield from iterate_schemas(item)


def accepts(schema: JsonObject, value: object) -> bool:
    return Draft202012Validator(schema).is_valid(value)


def decide(call: JsonObject) -> JsonObject:
    return {"next": {"kind": "calls", "todo": ["x"], "calls": [{"for": 1, **call}]}}


SUMMARIZE = {"for": 2, "tool": "summarize", "inputs": {"task": "x"}, "tools": ["read_file"]}
CALCULATOR = make_tool("calculator", properties={"expression": {"type": "string"}}, required=["expression"])


def test_a_decision_is_one_closed_object_with_the_answer_as_its_last_choice() -> None:
    schema = build_decision_schema(
        [CALCULATOR], [SkillCard("summarize", "Sums up.", tools=("read_file",))], ["calls", "ask", "answer"], 4
    ).schema
    assert schema["type"] == "object"
    forms: Any = schema["properties"]
    kinds = [form["properties"]["kind"]["enum"][0] for form in forms["next"]["anyOf"]]
    assert kinds == ["calls", "ask", "answer"]
    later = {"for": 3, "tool": LATER}
    calls = [{"for": 1, "tool": "calculator", "inputs": {"expression": "1 + 1"}}, SUMMARIZE, later]
    todo = {"kind": "calls", "todo": ["add", "sum up", "send"]}
    assert accepts(schema, {"next": {**todo, "calls": calls}})
    assert not accepts(schema, {"next": {"kind": "calls", "calls": calls}})
    assert accepts(schema, {"next": {"kind": "answer"}})
    assert not accepts(schema, {"next": {"kind": "answer", "calls": calls}})
    foreign = {**SUMMARIZE, "tools": ["send"]}
    assert not accepts(schema, {"next": {**todo, "calls": [foreign]}})
    assert not accepts(schema, {"next": {**todo, "calls": [{**later, "inputs": {}}]}})
    assert not accepts(schema, {"next": {**todo, "calls": []}})
    assert not accepts(schema, {"next": {**todo, "calls": calls * 3}})


@pytest.mark.parametrize(
    "call",
    [
        {"tool": "calculator", "inputs": {}},
        {"tool": "calculator", "inputs": {"expression": 7}},
        {"tool": "calculator", "inputs": {"expression": "1", "unit": "EUR"}},
        {"tool": "other", "inputs": {"expression": "1"}},
    ],
)
def test_a_call_that_the_tool_would_refuse_cannot_be_written(call: JsonObject) -> None:
    schema = build_decision_schema([CALCULATOR], [], ["calls", "answer"], 4).schema
    assert accepts(schema, decide({"tool": "calculator", "inputs": {"expression": "1"}}))
    assert not accepts(schema, decide(call))


def test_without_any_tool_only_the_answer_is_left() -> None:
    schema = build_decision_schema([], [], ["calls", "answer"], 4).schema
    assert accepts(schema, {"next": {"kind": "answer"}})
    assert not accepts(schema, {"next": {"kind": "calls", "todo": ["x"], "calls": []}})


def test_a_choice_is_one_of_the_names() -> None:
    schema = build_choice_schema(["calculator", "none"]).schema
    assert accepts(schema, {"tool": "none"})
    assert not accepts(schema, {"tool": "weather"})


def test_required_inputs_come_first_and_many_optional_ones_share_a_text() -> None:
    names = [f"option{number}" for number in range(OPTIONAL_INPUTS + 4)]
    properties = {**{name: {"type": "integer"} for name in names}, "path": {"type": "string"}}
    schema = build_inputs_schema(make_tool("find", properties=properties, required=["path"]))
    known: Any = schema["properties"]
    assert list(known) == ["path", *names[:OPTIONAL_INPUTS], MORE]
    assert schema["required"] == ["path"]


@pytest.mark.parametrize(
    ("inputs", "expanded"),
    [
        ({"path": "a", MORE: '{"limit": 3}'}, {"path": "a", "limit": 3}),
        ({"path": "a", MORE: ""}, {"path": "a"}),
        ({"path": "a", MORE: '{"path": "b"}'}, {"path": "a"}),
        ({"path": "a", MORE: "[1]"}, {"path": "a", MORE: "[1]"}),
        ({"path": "a", MORE: "{"}, {"path": "a", MORE: "{"}),
        ({"path": "a"}, {"path": "a"}),
    ],
)
def test_further_inputs_are_read_from_their_text(inputs: JsonObject, expanded: JsonObject) -> None:
    schema: JsonObject = {"properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}
    assert read_inputs(inputs, schema) == expanded


def test_what_the_subset_cannot_express_is_a_text() -> None:
    properties = {
        "open": {"type": "object"},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        "node": {"$ref": "#/$defs/node"},
        "many": {"enum": [str(number) for number in range(200)]},
        "pattern": {"type": "string", "pattern": "^(?<year>\\d{4})$", "format": "date"},
    }
    loop = {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}
    schema = build_inputs_schema(make_tool("odd", properties=properties, required=["open"], **{"$defs": loop}))
    known: Any = schema["properties"]
    for name in ("open", "pair", "many", "pattern"):
        assert known[name] == {"type": "string"}
    assert known["node"]["type"] == "object"


SCALARS = st.sampled_from([{"type": name} for name in ("string", "integer", "number", "boolean", "null")])
SCHEMAS = st.recursive(
    st.one_of(
        SCALARS,
        st.just({}),
        st.lists(st.text(max_size=5), min_size=1, max_size=4, unique=True).map(lambda values: {"enum": values}),
        st.sampled_from([{"type": ["string", "null"]}, {"const": 5}, {"type": "object"}, {"$ref": "#/$defs/missing"}]),
    ),
    lambda inner: st.one_of(
        inner.map(lambda one: {"type": "array", "items": one}),
        st.lists(inner, min_size=1, max_size=3).map(lambda forms: {"anyOf": forms}),
        st.lists(inner, min_size=1, max_size=3).map(lambda forms: {"oneOf": forms}),
        st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties, "required": list(properties)[:1]}
        ),
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1, max_size=6), SCHEMAS, max_size=9))
def test_no_tool_is_lost_over_its_schema_and_every_object_is_closed(properties: dict[str, Any]) -> None:
    tool = make_tool("tool", properties=properties, required=list(properties)[:2])
    schema = build_decision_schema([tool], [], ["calls", "answer"], 2).schema
    Draft202012Validator.check_schema(schema)
    for one in iterate_schemas(schema):
        assert set(one) <= KEYWORDS
        if one.get("type") == "object":
            assert one["additionalProperties"] is False
            assert isinstance(one["properties"], dict)
