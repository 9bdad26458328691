"""Calls of foreign tools whose answer comes late or never: progress gives them time, and no change is made twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agent.core.errors import ToolOutcomeUnknownError, ToolTimeoutError
from agent.core.events import ToolCalled
from agent.core.models import JsonObject
from agent.core.run_reducer import fold
from agent.execution.repeated_calls import find_unknown_outcome
from agent.tools import ToolRegistry, ToolResult
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.hub import McpHub
from tests.integration.test_mcp_malformed import CONTEXT
from tests.support.engine import engine_bench
from tests.support.mcp_client import until
from tests.support.mcp_raw_program import ECHO
from tests.support.mcp_server_raw import raw_program
from tests.support.script import decides, plans, says, script, wants
from tests.support.tools import EFFECT, FunctionTool, returning

READER = {**ECHO, "annotations": {"readOnlyHint": True}}
SENDING = plans({"tool": "srv__echo", "inputs": {"to": "Anna"}}, {"tool": "completion"})


@asynccontextmanager
async def tools_of(folder: Path, script: dict[str, Any], registry: ToolRegistry, **entry: Any) -> AsyncIterator[None]:
    """A server that answers by the script, with its tools in the registry."""
    config = McpServerConfig.model_validate({**raw_program(folder, script), **entry})
    hub = McpHub({"srv": config}, registry, folder / "mcp", None)
    await hub.start()
    try:
        await until(lambda: hub.servers["srv"].status == "ready")
        yield
    finally:
        await hub.aclose()


def count_calls(folder: Path) -> int:
    return (folder / "script.log").read_text().count('"tools/call"')


async def call(folder: Path, script: dict[str, Any], **entry: Any) -> ToolResult:
    registry = ToolRegistry()
    async with tools_of(folder, script, registry, **entry):
        return await registry.get("srv__echo").call({}, CONTEXT)


async def test_progress_gives_a_call_more_time(tmp_path: Path) -> None:
    assert (await call(tmp_path, {"progress tools/call": 6}, timeout=0.6)).text == "done"


async def test_progress_does_not_keep_a_call_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_tools.client.remote_tool.MAX_PROGRESS_LIMITS", 2)
    with pytest.raises(ToolOutcomeUnknownError, match=r"did not finish within 1\.2 s; it is not known whether"):
        await call(tmp_path, {"progress tools/call": 50}, timeout=0.6)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(("tool", "kind"), [(ECHO, ToolOutcomeUnknownError), (READER, ToolTimeoutError)])
async def test_a_silent_call_fails_by_what_it_may_have_done(
    tmp_path: Path, tool: dict[str, Any], kind: type[Exception], trusted: bool
) -> None:
    script = {"tools/list": {"result": {"tools": [tool]}}, "sleep tools/call": 3}
    with pytest.raises(kind, match=r"srv did not answer within 0\.4 s") as raised:
        await call(tmp_path, script, timeout=0.4, trusted=trusted)
    assert type(raised.value) is kind


async def test_a_change_that_ran_out_of_time_is_not_made_again(tmp_path: Path) -> None:
    """The model gives the same plan as often as it is asked."""
    model = script(SENDING, says("Sorry.", to="completion"))
    async with (
        engine_bench(tmp_path / "data", model) as bench,
        tools_of(tmp_path, {"sleep tools/call": 2}, bench.engine.registry, timeout=0.4),
    ):
        response = await bench.run("search for Anna and send her the news then")
    assert count_calls(tmp_path) == 1
    (result, *_) = response.metadata["tool_results"]
    assert result["error_code"] == "ERR_TOOL_UNKNOWN_OUTCOME"
    (uncertainty,) = response.metadata["uncertainties"]
    assert uncertainty["level"] == "blocking"
    assert "it is not known whether the call was executed" in uncertainty["message"]


async def test_a_search_of_an_untrusted_server_that_ran_out_of_time_is_made_again(tmp_path: Path) -> None:
    """It is asked about like a change, but its answer is not doubted for what it may have done."""
    listed = {"tools/list": {"result": {"tools": [READER]}}}
    model = script(SENDING, says("Nothing came.", to="completion"))
    async with (
        engine_bench(tmp_path / "data", model) as bench,
        tools_of(tmp_path, {**listed, "sleep tools/call": 1}, bench.engine.registry, timeout=0.4),
    ):
        assert bench.engine.registry.get("srv__echo").spec.has_side_effect
        response = await bench.run("search for Anna")
    assert count_calls(tmp_path) > 1
    assert {one["error_code"] for one in response.metadata["tool_results"]} == {"ERR_TOOL_TIMEOUT"}
    assert not [one for one in response.metadata["uncertainties"] if one["level"] == "blocking"]


async def test_a_change_of_unknown_outcome_is_refused_until_something_was_read(tmp_path: Path) -> None:
    async def send(args: JsonObject) -> JsonValue:
        await asyncio.sleep(5)
        return "sent"

    sender = FunctionTool("send", send, annotations=EFFECT, timeout_s=0.3)
    sending = decides({"tool": "send", "inputs": {"x": "carla"}}, times=1)
    looking = decides({"tool": "outbox", "inputs": {"x": "carla"}}, times=1)
    model = script(wants("send"), sending, sending, looking, decides(), says("Carla has it.", to="completion"))
    tools = [sender, returning("outbox", "nothing was sent")]
    async with engine_bench(tmp_path, model, tools=tools, model_profile="small") as bench:
        events = await bench.events("Send the news to carla, and look into the outbox.")
        asked = [str(one["body"]["messages"]) for one in bench.client.requests if one["purpose"] == "planner"]
    assert len(sender.calls) == 1
    assert any("send may have done this already" in messages for messages in asked)
    (look,) = [event for event in events if isinstance(event.body, ToolCalled) and event.body.tool == "outbox"]
    before = fold("r", [event for event in events if event.seq < look.seq])
    after = fold("r", events)
    reason = find_unknown_outcome(before, sender.spec, {"x": "carla"})
    assert reason is not None
    assert "the same call may have been executed" in reason
    assert find_unknown_outcome(before, sender.spec, {"x": "bert"}) is None
    assert find_unknown_outcome(after, sender.spec, {"x": "carla"}) is None
    for claims in (True, False):  # the outbox of a server that is not trusted
        outside = look.body.model_copy(update={"effect": "effect", "claims_read_only": claims})
        changed = [event._replace(body=outside) if event is look else event for event in events]
        reason = find_unknown_outcome(fold("r", changed), sender.spec, {"x": "carla"})
        assert (reason is None) is claims
