"""`make eval-peers`: what a framework's process reaches and gives back, without the frameworks and without a model."""

import asyncio
import io
import json
from typing import Any, cast

import pytest
from aiohttp import ClientSession, web
from mcp import Client, MCPError
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

from gateway.feature_loader import load_features
from gateway.features.evaluation.conversation import ToolUse
from gateway.features.evaluation.task_files import WorldSpec, load_tasks
from mcp_tools.server.toolsets import Toolsets
from tests.bench.endpoint import Endpoint
from tests.bench.native_loops.frameworks import FRAMEWORKS, read_printed
from tests.bench.native_loops.loop_door import LoopDoor, choose_toolsets
from tests.bench.native_loops.loop_job import Job, run_job
from tests.support.model_endpoint import list_of, model_endpoint
from tests.support.processes import ROOT


def make_job(door: str = "http://127.0.0.1:9", **values: Any) -> Job:
    base: dict[str, Any] = {
        "door": door, "model": "m", "instructions": "Help.", "turns": ["Hello"], "tools": [], "max_requests": 3,
        "max_tokens": 64, "seed": 0, "seconds": 5.0,
    }  # fmt: skip
    return Job(**{**base, **values})


class FakeTools:
    """An MCP client with two pages of tools."""

    async def list_tools(self, *, cursor: str | None = None) -> ListToolsResult:
        names = ["desk__get_ticket"] if cursor else ["calculator", "tools_find"]
        tools = [Tool(name=name, description=f"Does {name}.", input_schema={"type": "object"}) for name in names]
        return ListToolsResult(tools=tools, next_cursor=None if cursor else "2")

    async def call_tool(self, name: str, arguments: dict[str, Any], **_: Any) -> CallToolResult:
        if name == "unknown":
            raise MCPError(-32602, "there is no tool 'unknown'")
        text = f"{name} {json.dumps(arguments)}"
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=name == "fails")


async def test_tools_are_called_and_models_asked_through_one_door_that_counts_them() -> None:
    async with (
        model_endpoint(list_of("m"), key="secret", answer=lambda body: "Hello.") as model,
        ClientSession() as http,
    ):
        door = LoopDoor(Endpoint(model.url, "m", "secret"), cast("Client", FakeTools()), http)
        runner = web.AppRunner(door.build_app())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        job = make_job(f"http://127.0.0.1:{runner.addresses[0][1]}")
        try:
            texts = [await job.call_tool(name, {"x": 1}) for name in ("calculator", "fails", "unknown")]
            async with http.post(f"{job.model_url}/chat/completions", json={"model": "m", "messages": []}) as reply:
                answered = await reply.json()
        finally:
            await runner.cleanup()
    assert texts == ['calculator {"x": 1}', 'Error: fails {"x": 1}', "Error: there is no tool 'unknown'"]
    assert door.uses == [
        ToolUse(tool="calculator", ok=True), ToolUse(tool="fails", ok=False), ToolUse(tool="unknown", ok=False),
    ]  # fmt: skip
    assert answered["choices"][0]["message"]["content"] == "Hello."
    assert (door.usage.model_calls, door.usage.total_tokens) == (1, 10)
    assert [tool["name"] for tool in await door.list_tools()] == ["calculator", "desk__get_ticket"]


def test_every_tool_of_the_reference_solutions_is_in_the_toolsets_of_its_world() -> None:
    toolsets = Toolsets(load_features("", with_installed=False).list_toolsets()).by_name
    for task in load_tasks():
        offered = {name for key in choose_toolsets(task.world) for name in toolsets[key].tools}
        own = {step.tool for step in task.solution.steps if "__" not in step.tool}
        assert own <= offered, task.id
    assert "search" not in choose_toolsets(WorldSpec())


def test_a_process_prints_its_answer_or_the_frameworks_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def hold(job: Job) -> str:
        await asyncio.sleep(0)
        if job.turns == ["fail"]:
            raise LookupError("the model named an unknown tool")
        return f"{job.model}: {job.turns[-1]}"

    for turns, answer, error in (
        (["Hello", "Bye"], "m: Bye", ""),
        (["fail"], "", "LookupError: the model named an unknown tool"),
    ):
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(vars(make_job(turns=turns)))))
        run_job(hold, (LookupError,))
        printed = read_printed(capsys.readouterr().out, "")
        assert (printed["answer"], printed["error"]) == (answer, error)


def test_a_process_that_crashed_has_its_last_words_as_the_error() -> None:
    assert (
        read_printed("", "Traceback\nImportError: no agents")["error"] == "the process failed: ImportError: no agents"
    )
    assert read_printed("a warning\n", "")["error"] == "the process failed: no output"
    assert read_printed('a warning\n{"answer": "x", "error": "", "seconds": 1}\n', "")["answer"] == "x"


def test_every_framework_has_requirements_and_a_loop() -> None:
    for one in FRAMEWORKS.values():
        assert one.version.startswith(one.package)
        assert (ROOT / "tests/bench/native_loops" / f"{one.loop}.py").is_file()
