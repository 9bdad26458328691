"""Schemas of 222 tools in the manner of public MCP servers, in the dialect of each kind of endpoint: none loses a tool.

The rules of the providers are written down here once more, from what they document and refuse.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

from agent.core.json_schema import iter_violations
from agent.core.models import Usage
from agent.llm.port import ModelReply
from agent.llm.schema_derivation import derive_schema
from agent.llm.schema_dialect import (
    ANTHROPIC,
    GEMINI,
    OPENAI,
    SIMPLE,
    SMALLEST,
    WHOLE,
    SchemaDialect,
    find_dialect,
    narrow_dialect,
)
from agent.llm.schema_values import restore_text
from agent.planning.reply import Answer, Ask, PlanReply
from agent.planning.rounds.decision_schema import build_decision_schema
from agent.planning.rounds.reply import read_decision
from tests.support.schema_samples import make_samples, write_value
from tests.support.server_tools import load_server_tools

TOOLS = load_server_tools()
AT_ONCE = 40
CHUNKS = [TOOLS[start : start + AT_ONCE] for start in range(0, len(TOOLS), AT_ONCE)]
KINDS = ["calls", "ask", "answer"]
STRUCTURE = {"type", "properties", "required", "items", "enum", "anyOf", "description"}


def iterate_nodes(schema: Any, depth: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """Every schema within a schema, and how many objects and lists it is in."""
    yield schema, depth
    for child in schema.get("anyOf", []):
        yield from iterate_nodes(child, depth)
    for child in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        yield from iterate_nodes(child, depth + 1)


def check_openai(schema: dict[str, Any]) -> None:
    nodes = [node for node, _ in iterate_nodes(schema)]
    objects = [node for node in nodes if node.get("type") == "object"]
    values = [value for node in nodes for value in node.get("enum", [])]
    assert all(node.keys() <= STRUCTURE | {"additionalProperties", "minItems", "maxItems"} for node in nodes)
    assert all(node["additionalProperties"] is False for node in objects)
    assert all({*node["required"]} == node["properties"].keys() for node in objects)
    assert sum(len(node["properties"]) for node in objects) <= 5_000
    assert max(depth for node, depth in iterate_nodes(schema) if node.get("type") == "object") <= 10
    assert len(values) <= 1_000
    assert (
        sum(len(name) for node in objects for name in node["properties"]) + sum(len(str(v)) for v in values) <= 120_000
    )


def check_anthropic(schema: dict[str, Any]) -> None:
    nodes = [node for node, _ in iterate_nodes(schema)]
    objects = [node for node in nodes if node.get("type") == "object"]
    assert all(node.keys() <= STRUCTURE | {"additionalProperties"} for node in nodes)
    assert all(node["additionalProperties"] is False for node in objects)
    assert sum(len(node["properties"]) - len(node["required"]) for node in objects) <= 24
    assert sum("anyOf" in node for node in nodes) <= 16
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for node in objects for name in node["properties"])


def check_gemini(schema: dict[str, Any]) -> None:
    nodes = [node for node, _ in iterate_nodes(schema)]
    assert all(node.keys() <= STRUCTURE | {"minItems", "maxItems"} for node in nodes)
    assert all(node["properties"] for node in nodes if node.get("type") == "object")
    assert all(
        node["type"] == "string" and all(isinstance(v, str) for v in node["enum"]) for node in nodes if "enum" in node
    )
    assert all(isinstance(node["type"], str) for node in nodes if "anyOf" not in node)


def check_simple(schema: dict[str, Any]) -> None:
    check_gemini(without_closing(schema))
    nodes = [node for node, _ in iterate_nodes(schema)]
    assert not any({"minItems", "maxItems", "maxLength"} & node.keys() for node in nodes)
    many = sum(len(node["enum"]) for node in nodes if len(node.get("enum", [])) > 1)
    assert many + sum(len(node.get("enum", [])) == 1 for node in nodes) <= 100


def check_smallest(schema: dict[str, Any]) -> None:
    check_simple(schema)
    check_openai(schema)
    assert not any("anyOf" in node for node, _ in iterate_nodes(schema))


def check_whole(schema: dict[str, Any]) -> None:
    assert all("type" in node or "anyOf" in node or "enum" in node for node, _ in iterate_nodes(schema))


def without_closing(schema: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(schema).replace(', "additionalProperties": false', "")
    stripped: dict[str, Any] = json.loads(text)
    return stripped


DIALECTS: list[tuple[SchemaDialect, Callable[[dict[str, Any]], None]]] = [
    (WHOLE, check_whole),
    (OPENAI, check_openai),
    (ANTHROPIC, check_anthropic),
    (GEMINI, check_gemini),
    (SIMPLE, check_simple),
    (SMALLEST, check_smallest),
    (OPENAI.join(ANTHROPIC), check_anthropic),
]
NAMES = ["whole", "openai", "anthropic", "gemini", "simple", "smallest", "openai-and-anthropic"]


@pytest.mark.parametrize(("dialect", "check"), DIALECTS, ids=NAMES)
def test_no_tool_is_lost_and_its_inputs_come_back_as_they_were_meant(
    dialect: SchemaDialect, check: Callable[[dict[str, Any]], None]
) -> None:
    count = 0
    for tools in CHUNKS:
        schema = build_decision_schema(tools, [], KINDS, 12).schema
        derived, differs = derive_schema(schema, dialect)
        jsonschema_rs.meta.validate(derived)  # a hundred times as fast as `check_schema`
        validator = jsonschema_rs.Draft202012Validator(derived)
        assert derived["type"] == "object"
        check(derived)
        for tool in tools:
            samples = make_samples(tool.input_schema)
            assert samples, tool.name
            for inputs in samples:
                named = inputs if isinstance(inputs, dict) else {}
                form = get_inputs_schema(schema, tool.name)
                call = {"tool": tool.name, "inputs": write_value(named, form)}
                meant = {"next": {"kind": "calls", "todo": ["one part"], "calls": [call]}}
                written = write_value(meant, derived)
                assert inputs is not samples[-1] or validator.is_valid(written), (tool.name, written)
                written = json.dumps(written)
                read = read_decision(
                    reply(restore_text(written, schema) if differs else written), {tool.name: tool.input_schema}
                )
                assert isinstance(read, PlanReply)
                steps: Any = read.data["steps"]
                assert [step["tool"] for step in steps] == [tool.name]
                assert not list(iter_violations(tool.input_schema, steps[0]["inputs"])), (tool.name, written)
                has_limit = not dialect.has_unions or dialect.max_unions is not None
                assert is_same(steps[0]["inputs"], named, takes_texts=has_limit), (tool.name, written)
                count += 1
    assert count > 450


@pytest.mark.parametrize(("dialect", "_"), DIALECTS, ids=NAMES)
def test_a_question_and_an_answer_can_be_written_beside_the_calls(dialect: SchemaDialect, _: object) -> None:
    schema = build_decision_schema(CHUNKS[0], [], KINDS, 12).schema
    derived, differs = derive_schema(schema, dialect)
    for decision, read in (
        ({"kind": "ask", "question": "Which one?"}, Ask("Which one?")),
        ({"kind": "answer"}, Answer("")),
    ):
        written = json.dumps(write_value({"next": decision}, derived))
        assert read_decision(reply(restore_text(written, schema) if differs else written)) == read


def is_same(read: Any, meant: Any, *, takes_texts: bool) -> bool:
    """Whether both are equal; where unions are few, a number may come as its text if the tool takes texts as well."""
    if isinstance(read, dict) and isinstance(meant, dict):
        return read.keys() == meant.keys() and all(is_same(read[n], meant[n], takes_texts=takes_texts) for n in read)
    if isinstance(read, list) and isinstance(meant, list):
        pairs = zip(read, meant, strict=False)
        return len(read) == len(meant) and all(is_same(*pair, takes_texts=takes_texts) for pair in pairs)
    return bool(read == meant) or (
        takes_texts and read == json.dumps(meant) and not isinstance(meant, dict | list | str)
    )


def get_inputs_schema(schema: dict[str, Any], tool: str) -> dict[str, Any]:
    calls = schema["properties"]["next"]["anyOf"][0]["properties"]["calls"]
    forms = calls["items"].get("anyOf", [calls["items"]])
    inputs: dict[str, Any] = next(
        form["properties"]["inputs"] for form in forms if form["properties"]["tool"]["enum"] == [tool]
    )
    return inputs


def reply(text: str) -> ModelReply:
    return ModelReply(text, "m", "stop", Usage(model_calls=1))


CHANGE: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "owner": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "required": ["id"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"id": "7", "others": "{}"}, {"id": "7"}),
        ({"id": "7", "others": '{"owner": null}'}, {"id": "7", "owner": None}),
        ({"id": "7", "others": '{"owner": "anna"}'}, {"id": "7", "owner": "anna"}),
    ],
)
def test_null_that_clears_a_value_is_not_null_that_gives_none(written: Any, meant: Any) -> None:
    derived, _ = derive_schema(CHANGE, OPENAI)
    assert Draft202012Validator(derived).is_valid(written)
    assert json.loads(restore_text(json.dumps(written), CHANGE)) == meant


@pytest.mark.parametrize("text", ["", "no JSON", '{"id": ', "[1, 2]", "null", '{"id": 7, "unknown": 1}'])
def test_a_reply_that_does_not_keep_to_the_schema_is_left_as_it_is(text: str) -> None:
    restored = restore_text(text, CHANGE)
    assert restored == text or json.loads(restored) == json.loads(text)


@pytest.mark.parametrize(
    ("message", "changed"),
    [
        (
            "Invalid schema: In context=(), 'required' is required to be supplied, including every key",
            {"requires_all"},
        ),
        ("In context=('properties', 'todo'), 'maxLength' is not permitted", {"has_lengths"}),
        ("For 'array' type, property 'maxItems' is not supported", {"has_counts"}),
        ("anyOf is not supported in response_format", {"has_unions"}),
        ('Unknown name "additionalProperties": Cannot find field', {"closes_objects"}),
        ("schema: enum has more than 100 values", {"max_values", "has_mixed_values"}),
        ("properties: should be non-empty for OBJECT type", {"has_empty_objects"}),
        ("schema exceeds the maximum allowed nesting depth", {"max_depth"}),
        ("Schemas contain too many optional parameters (31), limit 24", {"max_optional", "max_unions"}),
        ("ValueError: 'type' must be a string", {"has_mixed_values"}),
    ],
)
def test_a_refusal_costs_only_what_it_names(message: str, changed: set[str]) -> None:
    narrower = narrow_dialect(WHOLE, message)
    assert narrower is not None
    names = SchemaDialect.__dataclass_fields__
    assert {name for name in names if getattr(narrower, name) != getattr(WHOLE, name)} == changed


@pytest.mark.parametrize(
    "message",
    [
        "Failed to initialize samplers: failed to parse grammar",
        "The compiled grammar is too large",
        "invalid JSON schema in format",
    ],
)
def test_a_refusal_that_names_nothing_ends_at_no_schema_after_two_steps(message: str) -> None:
    first = narrow_dialect(WHOLE, message)
    assert first == SIMPLE
    assert narrow_dialect(SIMPLE, message) == SMALLEST
    assert narrow_dialect(SMALLEST, message) is None


@pytest.mark.parametrize(
    "message",
    [
        "response_format json_schema is not supported",
        "This response_format type is unavailable now",
        "'response_format.type' must be 'text'",
        "This model does not support structured output",
    ],
)
def test_an_endpoint_without_schemas_is_not_asked_for_smaller_ones(message: str) -> None:
    assert narrow_dialect(WHOLE, message) is None


def test_the_kind_of_an_endpoint_is_known_by_its_host() -> None:
    assert find_dialect("api.openai.com") == OPENAI
    assert find_dialect("mine.openai.azure.com") == OPENAI
    assert find_dialect("generativelanguage.googleapis.com") == GEMINI
    assert find_dialect("notapi.openai.com.example.test") == WHOLE
