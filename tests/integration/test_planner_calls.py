"""What a capable model calls in its own form instead of planning: calls are a plan, never the answer."""

from pathlib import Path

import pytest

from agent.core.models import AgentResponse
from tests.support.engine import engine_bench
from tests.support.script import Call, Rule, says, script
from tests.support.tools import EFFECT, FunctionTool, returning

QUESTION = "How many orders are open, and tell Bo?"
CALL = '{"name": "list_orders", "arguments": {"x": "open"}}'
ALONE = {
    "Hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "Hermes, thinking": f"<think>I look.</think>\n<tool_call>\n{CALL}\n</tool_call>",
    "Llama 3.1": '<|python_tag|>{"name": "list_orders", "parameters": {"x": "open"}}',
    "Llama 3.2": '[list_orders(x="open")]',
    "Mistral": f"[TOOL_CALLS] [{CALL}]",
    "Phi-4": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "Command R": f"Action: ```json\n[{CALL}]\n```",
    "GLM": "<tool_call>list_orders\n<arg_key>x</arg_key>\n<arg_value>open</arg_value>\n</tool_call>",
    "Kimi": '<|tool_call_begin|>functions.list_orders:0<|tool_call_argument_begin|>{"x": "open"}<|tool_call_end|>',
    "twice": f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{CALL}\n</tool_call>",
    "another spelling": CALL.replace("list_orders", "ListOrders"),
}


async def ask(tmp_path: Path, *rules: Rule) -> tuple[AgentResponse, FunctionTool, list[str]]:
    orders = returning("list_orders", "17 orders", annotations=EFFECT)
    model = script(*rules, says("There are 17.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[orders]) as bench:
        return await bench.run(QUESTION), orders, bench.client.purposes()


@pytest.mark.parametrize("form", ALONE)
async def test_calls_in_the_form_of_a_family_are_the_plan(tmp_path: Path, form: str) -> None:
    response, orders, purposes = await ask(tmp_path, says(ALONE[form], to="planner"))
    assert (response.response, response.metadata["status"]) == ("There are 17.", "complete")
    assert orders.calls == [{"x": "open"}]
    assert purposes == ["planner", "completion"]


async def test_native_calls_are_the_plan_whatever_is_said_beside_them(tmp_path: Path) -> None:
    native = says("Let me check.", to="planner", calls=(Call("list_orders", {"x": "open"}),))
    response, orders, _ = await ask(tmp_path, native)
    assert (response.response, orders.calls) == ("There are 17.", [{"x": "open"}])


@pytest.mark.parametrize(
    "text",
    [
        f"I look.\n<tool_call>\n{CALL}\n</tool_call>",
        f"I make this call:\n```json\n{CALL}\n```\nIs that right?",
        f"Sure! {CALL}",
        'Thought: I look.\nAction: list_orders\nAction Input: {"x": "open"}\nObservation: 12\nFinal Answer: 12',
        f"<tool_call>\n{CALL}\n</tool_call>\n<tool_response>\n12\n</tool_response>\nThere are 12.",
    ],
)
async def test_words_beside_a_call_are_asked_about_once_more(tmp_path: Path, text: str) -> None:
    """They may quote a text that the user pasted, so that nothing is called; and they are no answer."""
    said, then = says(text, to="planner", times=1), says(ALONE["Hermes"], to="planner")
    response, orders, purposes = await ask(tmp_path, said, then)
    assert (response.response, orders.calls) == ("There are 17.", [{"x": "open"}])
    assert purposes == ["planner", "planner", "completion"]


async def test_an_answer_that_is_marked_may_hold_a_call(tmp_path: Path) -> None:
    response, orders, _ = await ask(tmp_path, says(f"ANSWER\nWrite `{CALL}`.", to="planner"))
    assert (response.response, orders.calls) == (f"Write `{CALL}`.", [])


@pytest.mark.parametrize("thought", ["<think>Hmm, how many", ""])
async def test_a_thought_without_an_end_is_answered_without_a_plan(tmp_path: Path, thought: str) -> None:
    said = says(thought, to="planner", reasoning="" if thought else "Hmm, how many")
    response, orders, purposes = await ask(tmp_path, said)
    assert (response.response, orders.calls) == ("There are 17.", [])
    assert purposes == ["planner", "planner", "completion"]


@pytest.mark.parametrize(
    "said",
    [
        says(f"I look.\n<tool_call>\n{CALL}\n</tool_call>", to="planner"),
        says(f"Sure! {CALL}", to="planner"),
        says("Done.", to="planner", calls=(Call("send_fax", {"x": "open"}),)),
    ],
)
async def test_a_change_whose_call_was_refused_is_said_to_be_not_made(tmp_path: Path, said: Rule) -> None:
    response, orders, _ = await ask(tmp_path, said)
    assert orders.calls == []
    assert response.response.startswith("Nothing was changed, sent or saved.")
    assert response.metadata["status"] == "partial"
