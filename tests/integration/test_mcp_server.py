"""The MCP server through the official client: both eras over HTTP, and stdio."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from tests.integration.conftest import Serve
from tests.support import warm
from tests.support.processes import ROOT
from tests.support.script import Script, plans, says, script
from tests.support.scripted_server import ScriptedServer

MODEL = script(
    plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
    says("It is 42.", to="completion"),
)
Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(params=["2026-07-28", "legacy", "stdio"])
def connect(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path, model_server: ScriptedServer) -> Connect:
    """`async with connect(script) as client` over one of the transports."""

    @asynccontextmanager
    async def connected(rules: Script | None = None) -> AsyncIterator[Client]:
        if request.param != "stdio":
            async with serve(rules) as url, Client(f"{url}/mcp/all", mode=request.param) as client:
                yield client
            return
        environment = {"AGENT_DATA_DIR": str(tmp_path / "data"), "AGENT_SKILLS_DIRS": "none"}
        if rules is not None:
            model_server.load(rules)
            environment |= {
                "AGENT_LLM_BASE_URL": model_server.url,
                "AGENT_MODEL_FAST": "m",
                "AGENT_MODEL_PROFILE": "capable",
            }
        program, *words = warm.command("gateway.cli", "mcp", "--view", "all")
        command = StdioServerParameters(command=program, args=words, env=environment, cwd=ROOT)
        async with Client(command) as client:
            yield client

    return connected


@pytest.mark.row("Scard-01", "Scard-07")
async def test_the_agent_is_a_tool_with_progress(connect: Connect) -> None:
    told: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with connect(MODEL) as client:
        result = await client.call_tool("agent_run", {"task": "search and compute"}, progress_callback=progress)
        report: Any = result.structured_content
        again = await client.call_tool("run_get", {"run_id": report["run_id"]})
    assert not result.is_error
    assert report["status"] == "complete"
    assert report["response"] == "It is 42."
    assert [step["type"] for step in report["steps"]][:3] == ["route", "memory", "plan"]
    assert told[0] == "plan: 2 steps"
    assert "step 1/2: calculator" in told
    assert again.structured_content == report


async def test_every_tool_is_listed_flat_and_honest(connect: Connect) -> None:
    async with connect() as client:
        first, second = await client.list_tools(), await client.list_tools()
    names = [tool.name for tool in first.tools]
    assert names[:4] == ["agent_run", "run_get", "run_respond", "run_cancel"]
    assert names[4:] == sorted(names[4:])
    assert first.tools == second.tools
    for tool in first.tools:
        schema = json.dumps(tool.input_schema)
        assert tool.input_schema["type"] == "object"
        assert "properties" in tool.input_schema
        assert not {"$ref", "anyOf", "$defs"} & set(schema.replace('"', " ").split())
        assert tool.output_schema is not None
        assert tool.annotations is not None
    hints = {tool.name: tool.annotations for tool in first.tools}
    assert hints["calculator"] is not None
    assert hints["calculator"].read_only_hint is True
    assert hints["agent_run"] is not None
    assert hints["agent_run"].read_only_hint is False
    respond = hints["run_respond"]
    assert respond is not None
    assert (respond.read_only_hint, respond.destructive_hint, respond.idempotent_hint) == (False, True, False)


async def test_a_single_tool_returns_structured_results_and_errors_as_tool_errors(connect: Connect) -> None:
    async with connect() as client:
        good = await client.call_tool("calculator", {"expression": "6*7"})
        bad = await client.call_tool("calculator", {"expression": "1/0"})
        written = await client.call_tool("memory_search", {"query": "boat", "limit": "3"})
        wrong = await client.call_tool("calculator", {"expression": 7})
        missing = await client.call_tool("agent_run", {})
        room = await client.call_tool("agent_run", {"task": "x", "room": "nope"})
        with pytest.raises(MCPError, match="no tool named"):
            await client.call_tool("x" * 300, {})
    assert good.structured_content == {"expression": "6*7", "value": "42"}
    assert good.content[0].type == "text"
    assert not written.is_error
    for result, told in ((bad, "divides by zero"), (wrong, "expression"), (missing, "task"), (room, "no room named")):
        assert result.is_error
        assert result.structured_content is None
        assert result.content[0].type == "text"
        assert told in result.content[0].text


@pytest.mark.row("Scard-01")
async def test_skills_are_prompts_and_runs_are_resources(connect: Connect) -> None:
    async with connect() as client:
        prompts = (await client.list_prompts()).prompts
        prompt = await client.get_prompt("summarize", {"task": "notes.txt"})
        report: Any = (await client.call_tool("agent_run", {"task": "what is 6*7"})).structured_content
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        text = (await client.read_resource(f"run://{report['run_id']}/report")).contents[0]
        steps = (await client.read_resource(f"run://{report['run_id']}/steps")).contents[0]
        with pytest.raises(MCPError, match="no run"):
            await client.read_resource("run://run_none/report")
    assert {"summarize", "research-web-page"} <= {p.name for p in prompts}
    assert prompt.messages[0].content.type == "text"
    assert "notes.txt" in prompt.messages[0].content.text
    runs = [str(r.uri) for r in resources if str(r.uri).startswith("run://")]
    assert runs == [f"run://{report['run_id']}/report"], "single tool calls are not listed"
    assert len(templates) == 2
    assert "42" in str(getattr(text, "text", ""))
    assert json.loads(str(getattr(steps, "text", "[]")))[0]["type"] == "route"


async def test_a_long_task_returns_working_and_can_be_fetched_or_stopped(connect: Connect) -> None:
    slow = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("It is 42.", to="completion", delay_s=1),
    )
    async with connect(slow) as client:
        result = await client.call_tool("agent_run", {"task": "search and compute", "wait_s": 0.2})
        working: Any = result.structured_content
        ended: Any = (await client.call_tool("run_get", {"run_id": working["run_id"], "wait_s": 30})).structured_content
        second: Any = (
            await client.call_tool("agent_run", {"task": "search, compute", "wait_s": 0.2})
        ).structured_content
        stopped: Any = (await client.call_tool("run_cancel", {"run_id": second["run_id"]})).structured_content
        unchanged: Any = (await client.call_tool("run_cancel", {"run_id": working["run_id"]})).structured_content
    assert working["status"] == "working"
    assert result.content[0].type == "text"
    assert "run_get" in result.content[0].text
    assert (ended["status"], ended["response"]) == ("complete", "It is 42.")
    assert stopped["status"] == "cancelled"
    assert unchanged["status"] == "complete"


async def test_a_cancelled_call_cancels_its_run(connect: Connect) -> None:
    stuck = script(says("never", to="planner", fault="hang"))
    async with connect(stuck) as client:
        call = asyncio.create_task(client.call_tool("agent_run", {"task": "search for ever"}))
        uri = ""
        async with asyncio.timeout(20):
            while not uri:
                listed = [str(r.uri) for r in (await client.list_resources(cache_mode="bypass")).resources]
                uri = next((found for found in listed if found.startswith("run://")), "")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            status = ""
            while status != "cancelled":
                got: Any = (
                    await client.call_tool("run_get", {"run_id": uri.split("/")[2], "wait_s": 1})
                ).structured_content
                status = got["status"]


async def test_another_host_and_an_unknown_revision_are_refused(serve: Serve) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}
    async with serve() as url, httpx.AsyncClient() as client:
        foreign = await client.post(f"{url}/mcp", json=body, headers={**accept, "host": "evil.example"})
        origin = await client.post(f"{url}/mcp", json=body, headers={**accept, "origin": "https://evil.example"})
        revision = await client.post(f"{url}/mcp", json=body, headers={**accept, "mcp-protocol-version": "1999-01-01"})
        huge = await client.post(f"{url}/mcp", content=b"x" * 6_000_000, headers=accept)
        alive = await client.get(f"{url}/health")
    assert foreign.status_code == 421
    assert origin.status_code == 403
    assert revision.status_code == 400
    assert huge.status_code == 413
    assert alive.status_code == 200
