"""The way of a call through the tool gateway: arguments nobody knows, and connections that break."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from agent.core import events as ev
from agent.core.errors import ToolError
from agent.core.models import AgentResponse, Room
from agent.execution.arguments import find_undeclared_args
from agent.runs.response import build_response
from agent.tools import READ_ONLY, ToolSpec
from tests.integration.conftest import Serve
from tests.support.engine import engine_bench
from tests.support.script import Call, plans, says, script
from tests.support.tools import EFFECT, FunctionTool, returning

BROKEN = OSError("connection reset")


async def call_tool_once(tmp_path: Path, tool: FunctionTool, **args: Any) -> AgentResponse:
    """An explicit call of the tool with `settings` and `args`."""
    settings = args.pop("settings", {})
    async with engine_bench(tmp_path / "data", None, tools=[tool], **settings) as bench:
        return build_response(
            await bench.events("go", metadata={"tool_calls": [{"tool": tool.spec.name, "args": args}]})
        )


@pytest.mark.row("S004-14")
async def test_a_call_with_arguments_that_a_tool_does_not_declare_fails_and_names_them(tmp_path: Path) -> None:
    tool = returning("lookup", "found")
    response = await call_tool_once(tmp_path, tool, x="here", colour="red", size=3)
    assert tool.calls == []
    (result, *_) = response.metadata["tool_results"]
    assert (result["ok"], result["error_code"]) == (False, "ERR_TOOL_INPUT")
    assert result["error"].startswith("lookup: unknown argument 'colour', 'size'; known: x")


@pytest.mark.row("S004-14")
async def test_a_value_that_does_not_fit_is_a_failed_result_that_names_the_field(tmp_path: Path) -> None:
    tool = returning("lookup", "found")
    (result, *_) = (await call_tool_once(tmp_path, tool, x=7)).metadata["tool_results"]
    assert tool.calls == []
    assert (result["ok"], result["error_code"]) == (False, "ERR_TOOL_INPUT")
    assert result["error"].startswith("lookup: x: 7 is not of type 'string'")


async def test_the_model_of_a_skill_is_told_which_argument_is_unknown(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculate", "inputs": {"task": "six times seven"}}),
        says(to="skill", calls=(Call("calculator", {"expression": "6*7", "precision": 2}),), times=1),
        says("It was told.", to="skill", about="unknown argument 'precision'; known: expression"),
        says("It was not told.", to="skill"),
    )
    async with engine_bench(tmp_path / "data", model, room=Room(id="test", supervision="checks")) as bench:
        events = await bench.events("use your skill on six times seven, please, and then tell me about it")
    (returned,) = [event.body for event in events if isinstance(event.body, ev.ToolReturned)]
    assert returned.error_code == "ERR_TOOL_INPUT"
    assert build_response(events).response == "It was told."


async def test_a_call_of_a_skill_counts_whatever_its_template_writes_around_the_name(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculate", "inputs": {"task": "six times seven"}}),
        says(to="skill", calls=(Call("calculator<|channel|>commentary", {"expression": "6*7"}),), times=1),
        says("It is 42.", to="skill"),
    )
    async with engine_bench(tmp_path / "data", model, room=Room(id="test", supervision="checks")) as bench:
        events = await bench.events("use your skill on six times seven, please, and then tell me about it")
    (returned,) = [event.body for event in events if isinstance(event.body, ev.ToolReturned)]
    assert (returned.tool, returned.error_code) == ("calculator", None)
    assert not any(isinstance(event.body, ev.ToolRefused) for event in events)


@pytest.mark.parametrize(
    ("schema", "origin", "effect", "undeclared"),
    [
        ({"additionalProperties": False}, "mcp:notes", "read", ("y",)),
        ({}, "mcp:notes", "read", ("y",)),
        ({"additionalProperties": True}, "mcp:notes", "read", ()),
        ({"additionalProperties": False}, "mcp:notes", "effect", ("y",)),
        ({}, "client", "read", ("y",)),
        ({}, "generated", "read", ("y",)),
        ({}, "recipe", "effect", ("y",)),
        ({"additionalProperties": {"type": "string"}}, "builtin", "read", ()),
        ({"additionalProperties": False, "patternProperties": {"^y": {}}}, "builtin", "read", ()),
        ({}, "builtin", "effect", ("y",)),
    ],
)
def test_what_is_unknown_depends_on_what_the_tool_says(schema: Any, origin: str, effect: str, undeclared: Any) -> None:
    spec = ToolSpec(
        name="t",
        description="",
        input_schema={"type": "object", "properties": {"x": {}}, **schema},
        output=None,
        annotations=READ_ONLY if effect == "read" else EFFECT,
        tainted=False,
        origin=origin,
    )
    assert find_undeclared_args(spec, {"x": 1, "y": 2}) == undeclared


@pytest.mark.row("S004-14")
async def test_over_mcp_a_call_with_an_unknown_argument_is_an_error_that_names_it(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp") as client:
        result = await client.call_tool("calculator", {"expression": "6*7", "digits": 2})
    assert result.is_error
    assert "calculator: unknown argument 'digits'; known: expression" in str(result.content)


@pytest.mark.row("S004-15", "S004-16")
async def test_a_broken_connection_is_tried_again_after_a_growing_wait_and_both_are_recorded(tmp_path: Path) -> None:
    tool = returning("fetch_it", BROKEN, BROKEN, "there")
    response = await call_tool_once(
        tmp_path, tool, settings={"tool_max_retries": 2, "tool_retry_backoff_s": 0.05}, x="a"
    )
    (result,) = response.metadata["tool_results"]
    assert (result["ok"], result["attempts"], len(tool.calls)) == (True, 3, 3)
    assert 150 <= result["duration_ms"] < 5_000, "50 ms, then 100"
    assert result["implementation"] == "rules"
    assert len(set(tool.keys)) == 1, "the same call, under the same key"


@pytest.mark.row("S004-15")
@pytest.mark.parametrize(("retries", "options", "tries"), [(0, {}, 1), (2, {"annotations": EFFECT}, 1), (1, {}, 2)])
async def test_no_further_than_the_setting_and_never_where_something_may_have_changed(
    tmp_path: Path, retries: int, options: Any, tries: int
) -> None:
    tool = returning("fetch_it", BROKEN, **options)
    settings = {"tool_max_retries": retries, "tool_retry_backoff_s": 0.0}
    results = (await call_tool_once(tmp_path, tool, settings=settings, x="a")).metadata["tool_results"]
    assert {result["attempts"] for result in results} == {tries}
    assert "connection reset" in results[0]["error"]


@pytest.mark.row("S004-15")
@pytest.mark.parametrize(
    ("cause", "tries"),
    [
        (httpx.ConnectError("refused"), 3),
        (httpx.RemoteProtocolError("closed"), 3),
        (ConnectionResetError("reset"), 3),
        (httpx.ReadTimeout("late"), 1),
        (FileNotFoundError("gone"), 1),
    ],
)
@pytest.mark.parametrize("wrapped", [True, False])
async def test_a_connection_error_that_a_tool_wraps_is_tried_again_too(
    tmp_path: Path, cause: Exception, tries: int, wrapped: bool
) -> None:
    calls = []

    async def work(_: Any) -> str:
        calls.append(1)
        if not wrapped and not isinstance(cause, OSError):
            raise cause
        raise ToolError("the page cannot be fetched") from cause

    settings = {"tool_max_retries": 2, "tool_retry_backoff_s": 0.0}
    response = await call_tool_once(tmp_path, FunctionTool("fetch_it", work), settings=settings, x="a")
    assert {one["attempts"] for one in response.metadata["tool_results"]} == {tries}
    assert len(calls) % tries == 0


@pytest.mark.row("S004-15")
async def test_a_slow_tool_is_cut_at_the_limit(tmp_path: Path) -> None:
    async def work(_: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    tool = FunctionTool("slow", work)
    results = (await call_tool_once(tmp_path, tool, settings={"tool_timeout_s": 0.1}, x="a")).metadata["tool_results"]
    assert len(results) == 2, "the step is tried once more"
    for result in results:
        assert (result["error_code"], result["attempts"]) == ("ERR_TOOL_TIMEOUT", 1)
        assert 100 <= result["duration_ms"] < 5_000
