"""The schema a model is asked for: closed, strict, small, and in agreement with the parser."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.planning.reply_schema import build_plan_schema, build_reply_schema
from agent.tools.catalogue import Catalogue, SkillCard
from tests.unit.planning.kitchen import CALCULATOR, CATALOGUE, wire_plan, wire_step

SCHEMA = build_plan_schema(CATALOGUE.list_names(), 4)


def objects(node: JsonValue) -> Iterator[JsonObject]:
    """Every object schema within a schema."""
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for child in node.values():
            yield from objects(child)


def accepted(plan: JsonObject) -> bool:
    return Draft202012Validator(SCHEMA.schema).is_valid(plan)


def test_it_is_a_valid_schema_that_meets_the_strict_rules() -> None:
    Draft202012Validator.check_schema(SCHEMA.schema)
    found = list(objects(SCHEMA.schema))
    assert len(found) == 3, "a plan, a step, an input"
    for node in found:
        properties = node["properties"]
        assert isinstance(properties, dict)
        assert node["additionalProperties"] is False
        assert node["required"] == list(properties)


def test_the_model_reasons_before_it_decides() -> None:
    properties = SCHEMA.schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["reasoning", "goal", "language", "answer_tier", "steps"]


def test_a_plan_as_it_is_asked_for_passes() -> None:
    assert accepted(wire_plan(wire_step("s1"), wire_step("s2", "deep_research", "s1", task="t")))
    assert accepted(wire_plan(wire_step("s1", "completion"), answer_tier="high"))


@pytest.mark.parametrize(
    "plan",
    [
        wire_plan(),
        wire_plan(*(wire_step(f"s{n}") for n in range(5))),
        wire_plan(wire_step("s1", "rocket")),
        wire_plan(wire_step("s1"), answer_tier="medium"),
        wire_plan(wire_step("s1"), extra=1),
        wire_plan({**wire_step("s1"), "args": {}}),
        wire_plan({**wire_step("s1"), "inputs": {"expression": "1"}}),
        wire_plan({**wire_step("s1"), "inputs": [{"name": "expression", "value": 1}]}),
        wire_plan({**wire_step("s1"), "depends_on": "s2"}),
        {"steps": [wire_step("s1")]},
    ],
)
def test_any_other_plan_does_not(plan: JsonObject) -> None:
    assert not accepted(plan)


def tool_enum(catalogue: Catalogue) -> Any:
    schema: dict[str, Any] = build_plan_schema(catalogue.list_names(), 3).schema
    return schema["properties"]["steps"]["items"]["properties"]["tool"]["enum"]


def test_a_tool_is_one_of_the_catalogue_or_the_completion() -> None:
    assert tool_enum(CATALOGUE) == [*CATALOGUE.list_names(), "completion"]
    assert tool_enum(Catalogue()) == ["completion"]


def test_a_skill_that_bears_the_name_of_a_tool_is_listed_once() -> None:
    twins = Catalogue(skills=(SkillCard("calculator", "c"), SkillCard("completion", "c")), tools=(CALCULATOR,))
    assert tool_enum(twins) == ["calculator", "completion"]


def test_of_several_kinds_the_kind_comes_first_and_its_text_next() -> None:
    schema = build_reply_schema(["calculator"], 4, ["answer", "plan", "ask"]).schema
    Draft202012Validator.check_schema(schema)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties)[:4] == ["kind", "answer", "question", "reasoning"]
    assert properties["kind"] == {"type": "string", "enum": ["answer", "plan", "ask"]}
    assert schema["required"] == list(properties)
    told = {"kind": "answer", "answer": "Hello.", "question": "", **wire_plan()}
    assert Draft202012Validator(schema).is_valid(told), "an answer has no steps"
