"""The degraded model: every kind of damage does what it says, as often as asked, and the same for the same seed."""

import json
from random import Random
from typing import Any

import pytest

from gateway.features.evaluation.damage import DAMAGE, damage_message, list_known_tools
from gateway.features.evaluation.degraded import DegradedModel

TOOLS = ["calculator", "read_file", "web_fetch"]
PLAN = {
    "goal": "sum",
    "steps": [{"id": "s1", "tool": "calculator", "inputs": [{"name": "expression", "value": "1 + 1"}]}],
}


def damage(kind: str, message: dict[str, Any], seed: int = 1) -> bool:
    return damage_message(message, [kind], Random(seed), TOOLS) == kind


def plan_message() -> dict[str, Any]:
    return {"role": "assistant", "content": json.dumps(PLAN)}


def call_message() -> dict[str, Any]:
    function = {"name": "calculator", "arguments": '{"expression": "1 + 1"}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("seed", range(5))
def test_every_kind_changes_a_plan(kind: str, seed: int) -> None:
    message = plan_message()
    assert damage(kind, message, seed)
    assert message["content"] != json.dumps(PLAN)


@pytest.mark.parametrize("kind", sorted(DAMAGE.keys() - {"wrap_in_prose"}))
def test_every_kind_but_prose_changes_a_tool_call(kind: str) -> None:
    message = call_message()
    assert damage(kind, message)
    assert message != call_message()


def test_a_dropped_brace_leaves_no_json() -> None:
    message = plan_message()
    assert damage("drop_brace", message)
    with pytest.raises(json.JSONDecodeError):
        json.loads(message["content"])


def test_a_renamed_field_keeps_its_value() -> None:
    message = plan_message()
    assert damage("rename_field", message)
    assert message["content"].replace("_value", "") == json.dumps(PLAN)


def test_a_forgotten_argument_and_a_wrong_tool_leave_the_rest_of_the_plan() -> None:
    forgotten, wrong = plan_message(), plan_message()
    assert damage("forget_argument", forgotten)
    assert json.loads(forgotten["content"])["steps"][0] == {**PLAN["steps"][0], "inputs": []}  # type: ignore[dict-item]
    assert damage("wrong_tool", wrong)
    assert json.loads(wrong["content"])["steps"][0]["tool"] in ("read_file", "web_fetch")


def test_prose_is_only_repeated() -> None:
    message = {"role": "assistant", "content": "The sum is {2}."}
    assert damage_message(message, sorted(DAMAGE.keys() - {"repeat"}), Random(1), TOOLS) == ""
    assert message["content"] == "The sum is {2}."
    assert damage("repeat", message)
    assert message["content"] == "The sum is {2}.\nThe sum is {2}."


def test_known_tools_are_those_offered_and_those_listed() -> None:
    offered = {"tools": [{"type": "function", "function": {"name": "web_fetch"}}]}
    listed = {"messages": [{"role": "system", "content": "Available:\n- read_file(path): reads\n- calculator: counts"}]}
    assert list_known_tools(offered) == ["web_fetch"]
    assert list_known_tools(listed) == ["calculator", "read_file"]


def test_as_many_replies_are_damaged_as_the_rate_says() -> None:
    def count(rate: float) -> int:
        model = DegradedModel("http://127.0.0.1:1/v1", rate, seed=3)
        requests = [{"messages": [{"role": "user", "content": str(number)}]} for number in range(400)]
        return sum(bool(model.degrade(request, {"choices": [{"message": plan_message()}]})) for request in requests)

    assert count(0) == 0
    assert count(1) == 400
    assert 90 < count(0.3) < 150


def test_the_same_request_gets_the_same_damage_in_any_order_and_on_any_port() -> None:
    def degrade(model: DegradedModel, content: str) -> str:
        reply = {"choices": [{"message": plan_message()}]}
        model.degrade({"messages": [{"role": "user", "content": content}]}, reply)
        return json.dumps(reply)

    first, second = (DegradedModel("http://127.0.0.1:1/v1", 0.8, seed=5) for _ in range(2))
    asked = [f"http://127.0.0.1:80{number:02}/ page {number}" for number in range(20)]
    forward = {text: degrade(first, text) for text in asked}
    again = [degrade(first, asked[0]) for _ in range(5)]
    backward = {text: degrade(second, text.replace(":80", ":90")) for text in reversed(asked)}
    assert forward == backward
    assert len(set(again)) > 1, "a repeated request is damaged anew"
