"""Decisions as models write them where the endpoint ignores the schema: a written call is never an answer."""

import json
from typing import Any

import pytest

from agent.core.errors import PlanInvalidError
from agent.core.models import JsonObject, Usage
from agent.llm.port import ModelReply
from agent.planning.reply import Answer, PlanReply
from agent.planning.rounds.reply import read_decision

TOOLS: dict[str, JsonObject] = {
    "weather": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "current_time": {"type": "object", "properties": {"timezone": {"type": "string"}}},
}
INPUTS = {"city": "Lund"}


def decide(value: Any, **reply: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return read_decision(ModelReply(text, "m", "stop", Usage(), **reply), TOOLS)


CALLS: list[Any] = [
    {"kind": "calls", "calls": [{"tool": "weather", "inputs": INPUTS}]},
    {"kind": "calls", "calls": [{"name": "weather", "arguments": INPUTS}]},
    {"kind": "calls", "calls": [{"name": "weather", "arguments": json.dumps(INPUTS)}]},
    {"kind": "calls", "calls": [{"type": "function", "function": {"name": "weather", "arguments": INPUTS}}]},
    {"kind": "calls", "calls": [{"tool": "weather", "city": "Lund"}]},
    {"kind": "calls", "calls": [{"weather": INPUTS}]},
    {"kind": "calls", "todo": ["the weather"], "calls": [{"for": 1, "tool_name": "weather", "args": INPUTS}]},
    {"kind": "call", "call": {"tool": "weather", "parameters": INPUTS}},
    {"kind": "weather", "inputs": INPUTS},
    {"kind": "calls", "tool": "weather", "inputs": INPUTS},
    {"tool": "weather", "inputs": INPUTS},
    {"action": "weather", "action_input": INPUTS},
    {"tool_calls": [{"name": "weather", "arguments": INPUTS}]},
    {"calls": [{"tool": "weather", "input": INPUTS}]},
    [{"tool": "weather", "inputs": INPUTS}],
]


@pytest.mark.parametrize("value", CALLS, ids=json.dumps)
@pytest.mark.parametrize("write", [lambda one: {"next": one}, lambda one: one], ids=["next", "bare"])
def test_a_call_is_read_whatever_its_fields_are_called(value: Any, write: Any) -> None:
    meant = decide(write(value))
    assert isinstance(meant, PlanReply), meant
    steps: Any = meant.data["steps"]
    assert [(step["tool"], step["inputs"]) for step in steps] == [("weather", INPUTS)]


@pytest.mark.parametrize("text", [json.dumps({"next": CALLS[1]}), f"Sure:\n```json\n{json.dumps(CALLS[0])}\n```"])
def test_a_call_is_read_in_words_and_as_reasoning_alone(text: str) -> None:
    assert isinstance(decide(f"<think>Which one?</think>{text}"), PlanReply)
    if text.startswith("{"):
        assert isinstance(decide("", reasoning=text), PlanReply)


@pytest.mark.parametrize("value", [{"next": "answer"}, {"next": {"kind": "answer"}}, {"kind": "answer"}])
def test_an_answer_is_one_in_any_wrapper(value: Any) -> None:
    assert decide(value) == Answer("")


@pytest.mark.parametrize("value", [{"next": "current_time"}, {"next": {"tool": "current_time"}}])
def test_a_tool_without_inputs_is_called(value: Any) -> None:
    meant = decide(value)
    assert isinstance(meant, PlanReply)
    steps: Any = meant.data["steps"]
    assert [step["tool"] for step in steps] == ["current_time"]


@pytest.mark.parametrize("none", ["none", "nothing", ""])
def test_a_step_that_says_nothing_is_needed_is_an_answer(none: str) -> None:
    assert decide({"next": {"kind": "calls", "todo": [none], "calls": [{"tool": "weather", "inputs": {}}]}}) == Answer(
        ""
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"next": {"kind": "calls", "calls": [{"inputs": INPUTS}]}}, 'no "tool"'),
        ({"next": {"kind": "calls", "calls": [{"tool": "weather", "inputs": "in Lund"}]}}, "complete JSON"),
        ({"next": "hm"}, "neither calls"),
        ({"next": 3}, "neither calls"),
        ({"next": {"kind": "calls"}}, "neither calls"),
    ],
)
def test_an_unreadable_decision_is_asked_for_again(value: Any, problem: str) -> None:
    with pytest.raises(PlanInvalidError, match=problem):
        decide(value)


def test_a_marked_answer_may_quote_a_call() -> None:
    quoted = json.dumps({"name": "weather", "arguments": INPUTS})
    assert decide(f"ANSWER\nWrite {quoted} to ask it.") == Answer(f"Write {quoted} to ask it.")
    with pytest.raises(PlanInvalidError, match="words beside a call"):
        decide(f"Write {quoted} to ask it.")
