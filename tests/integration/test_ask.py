"""The planner asks the user: the run ends with the question, and the reply goes on with what was found."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.core.models import Room
from agent.runs.response import build_response
from tests.support.engine import engine_bench
from tests.support.script import answers, judges, plans, says, script
from tests.support.tools import returning

QUESTION = "Which month do you mean?"
ASKS = says(json.dumps({"kind": "ask", "question": QUESTION}), to="planner", times=1)


async def test_the_run_ends_with_the_question_and_its_status_says_so(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, script(ASKS)) as bench:
        events = await bench.events("how many orders?", conversation_id="c")
        response = build_response(events)
        row = await bench.service.get_run(events[0].run_id, owner="local")
        assert bench.client.purposes() == ["planner"]
        turns = await bench.store.conversations.list_turns("local", "c")
    assert response.response == QUESTION
    assert (response.metadata["status"], row.status) == ("awaiting_input", "awaiting_input")
    assert turns == [("user", "how many orders?"), ("assistant", QUESTION)]
    assert [line.title for line in response.steps if line.type == "plan"] == ["asks the user"]


def last_completion(bench: Any) -> str:
    """The user's part of the last call before the verdict on the answer."""
    calls = [request for request in bench.client.requests if request["purpose"] != "supervisor"]
    return str(calls[-1]["body"]["messages"][1]["content"])


@pytest.mark.parametrize("door", ["conversation", "messages"])
async def test_the_reply_goes_on_with_what_was_found(tmp_path: Path, door: str) -> None:
    orders = returning("list_orders", "January 4, February 9, March 17")
    broken = returning("convert", "not reached")
    model = script(
        plans(
            {"tool": "list_orders", "inputs": {"x": "all"}},
            {"tool": "completion", "depends_on": ["s1"]},
            about="how many orders?",
            times=1,
        ),
        judges("REPLAN", "the month is missing", times=1),
        ASKS,
        answers("March had 17 orders."),
    )
    room = Room(id="test", supervision="always")
    async with engine_bench(tmp_path, model, tools=[orders, broken], room=room) as bench:
        request: dict[str, Any] = {"conversation_id": "c"} if door == "conversation" else {}
        first = await bench.run("how many orders?", **request)
        assert first.metadata["status"] == "awaiting_input"
        if door == "messages":
            request = {
                "messages": (
                    {"role": "user", "content": "how many orders?"},
                    {"role": "assistant", "content": QUESTION},
                )
            }
        second = await bench.run("March", **request)
        prompt = last_completion(bench)
    assert (first.response, second.response) == (QUESTION, "March had 17 orders.")
    assert f"assistant: {QUESTION}" in prompt
    assert "<user_request>\nMarch\n</user_request>" in prompt


async def test_results_that_were_accepted_are_given_to_the_next_run(tmp_path: Path) -> None:
    orders, rates = returning("list_orders", "January 4, March 17"), returning("rates", "none for this")
    model = script(
        plans(
            {"tool": "list_orders", "inputs": {"x": "all"}},
            {"tool": "rates", "inputs": {"x": "SEK"}},
            {"tool": "completion", "depends_on": ["s1", "s2"]},
            times=1,
        ),
        judges("REPLAN", "the currency is missing", about="none for this", times=1),
        judges("SUCCESS"),
        ASKS,
        answers("March had 17 orders."),
    )
    room = Room(id="test", supervision="always")
    async with engine_bench(tmp_path, model, tools=[orders, rates], room=room) as bench:
        await bench.run("how many orders?", conversation_id="c")
        second = await bench.run("March", conversation_id="c")
        prompt = last_completion(bench)
        other = await bench.run("March", conversation_id="another")
        unrelated = last_completion(bench)
    assert "<earlier_results>\nlist_orders (use list_orders): January 4, March 17\n</earlier_results>" in prompt
    assert "none for this" not in prompt, "what was judged away is no result"
    assert second.response == other.response == "March had 17 orders."
    assert "earlier_results" not in unrelated, "another conversation has none of it"
    assert len(orders.calls) == 1, "nothing is looked up again"


async def test_where_nobody_can_answer_the_planner_is_not_offered_to_ask(tmp_path: Path) -> None:
    model = script(says(json.dumps({"kind": "ask", "question": QUESTION}), to="planner", times=1), answers("Unknown."))
    async with engine_bench(tmp_path, model) as bench:
        response = await bench.run("how many orders?", interactive=False)
        first, second = bench.client.requests
    assert '"kind": "ask"' not in first["body"]["messages"][0]["content"]
    assert "nobody is there to answer" in second["body"]["messages"][-1]["content"]
    assert (response.response, response.metadata["status"]) == ("Unknown.", "complete")
