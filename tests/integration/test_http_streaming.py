"""`/v1/agent` with `stream: true`: progress comes while the work is going on, not after it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.core.settings import Settings
from agent.tools import Tool
from gateway.bootstrap import build_gateway
from tests.support.serving import serving
from tests.support.tools import FunctionTool


@asynccontextmanager
async def gateway(folder: Path, *tools: Tool, **options: Any) -> AsyncIterator[str]:
    """A gateway in rules mode with tools of the test's own."""
    settings = Settings(_env_file=None, data_dir=folder, port=0, skills_dirs=(), drain_seconds=1, **options)
    async with build_gateway(settings) as stepgate:
        stepgate.registry.register(*tools)
        async with serving(settings, stepgate) as url:
            yield url


@pytest.mark.row("S001-35")
async def test_the_first_step_arrives_before_the_last_tool_has_finished(tmp_path: Path) -> None:
    seen = asyncio.Event()

    async def wait_until_seen(_: JsonObject) -> JsonValue:
        async with asyncio.timeout(20):
            await seen.wait()
        return "the client has seen the first step"

    body = {
        "prompt": "do both",
        "stream": True,
        "metadata": {"tool_calls": [{"tool": "calculator", "args": {"expression": "6*7"}}, {"tool": "slow"}]},
    }
    events: list[tuple[str, Any]] = []
    async with (
        gateway(tmp_path, FunctionTool("slow", wait_until_seen)) as url,
        httpx.AsyncClient(timeout=30) as client,
        client.stream("POST", f"{url}/v1/agent", json=body) as response,
    ):
        name = ""
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                events.append((name, json.loads(line.removeprefix("data: "))))
            if name == "step.finished":
                # Without this the slow tool times out, and the run with it: no buffering can hide here.
                seen.set()
    names = [name for name, _ in events]
    returned = [data["data"]["tool"] for name, data in events if name == "tool.returned"]
    assert returned == ["calculator", "slow"]
    assert names.index("step.finished") < len(names) - 1 - names[::-1].index("tool.returned")
    assert names[-1] == "response"
    assert "the client has seen the first step" in events[-1][1]["response"]
