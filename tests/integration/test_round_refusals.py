"""Rounds in which a person does not allow a change: it is settled, what else was asked for is still done."""

import asyncio
from pathlib import Path

from agent.core.models import AgentRequest, AgentResponse
from tests.support.engine import Bench, engine_bench
from tests.support.script import decides, says, script, wants
from tests.support.tools import EFFECT, FunctionTool, returning

SEND = {"tool": "send_mail", "inputs": {"x": "the offer"}}
LOOK = {"tool": "look", "inputs": {"x": "the stock"}}


def make_tools() -> list[FunctionTool]:
    return [returning("send_mail", "sent", annotations=EFFECT, requires_approval=True), returning("look", "7 are left")]


async def reject(bench: Bench, prompt: str) -> AgentResponse:
    async with asyncio.timeout(20):
        run_id = await bench.service.start_run(AgentRequest(prompt=prompt))
        asked = await bench.service.wait_for_response(run_id)
        assert asked.metadata["status"] == "awaiting_approval"
        decided = await bench.service.submit_decision(run_id, "reject", reason="not today")
        return await bench.service.wait_for_response(run_id, seen_seq=decided.last_seq)


async def test_a_change_that_a_person_rejects_is_not_tried_in_another_way(tmp_path: Path) -> None:
    """And the answer says so in the engine's words: a small model takes what it planned for done."""
    other = {"tool": "look", "inputs": {"x": "another way"}}
    model = script(
        wants("send_mail"), decides(SEND, times=1), decides(other), says("The mail was sent.", to="completion")
    )
    tools = make_tools()
    async with engine_bench(tmp_path, model, tools=tools, model_profile="small") as bench:
        done = await reject(bench, "Send the mail with the offer")
        purposes = bench.client.purposes()
    assert purposes == ["planner"] * 2, "the decision, and whether the request asks for a change"
    assert [tool.calls for tool in tools] == [[], []]
    assert done.response == "You did not allow `send_mail` (not today), so it was not done."
    assert done.metadata["status"] == "partial"


async def test_the_other_parts_of_a_request_are_done_after_a_refusal(tmp_path: Path) -> None:
    model = script(
        wants("send_mail"),
        decides(SEND, missing=["send_mail the offer", "look at the stock"], times=1),
        decides(LOOK, times=1),
        decides(),
        says("7 are left; the mail was not allowed.", to="completion"),
    )
    tools = make_tools()
    async with engine_bench(tmp_path, model, tools=tools, model_profile="small") as bench:
        done = await reject(bench, "Send the mail with the offer, and look at the stock")
        written = bench.client.requests[-1]["body"]["messages"][-1]["content"]
    assert [len(tool.calls) for tool in tools] == [0, 1]
    assert '<failed step="s1" tool="send_mail"' in written
    assert "the user did not allow this call: not today" in written
    assert done.response == "7 are left; the mail was not allowed."
    assert any(one["message"].startswith("given up") for one in done.metadata["uncertainties"])
