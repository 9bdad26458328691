"""Answers that take their time: what is held of a request meanwhile, and what becomes of those that fail."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.models import JsonObject
from agent.core.settings import Settings
from gateway.bootstrap import build_gateway
from gateway.doors.json_body import _JsonRequest
from gateway.doors.openai_wire import ChatCompletionRequest
from tests.integration.test_http_streaming import gateway
from tests.support.serving import serving
from tests.support.tools import FunctionTool

CALLS: JsonObject = {"tool_calls": [{"tool": "wait"}]}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "stepgate",
        "messages": [{"role": "user", "content": "wait"}],
        "metadata": CALLS,
    },
    "/v1/agent": {"prompt": "wait", "metadata": CALLS},
}
doors = pytest.mark.parametrize("door", list(BODIES))


@doors
async def test_a_turn_under_way_holds_nothing_of_the_body_it_came_in(tmp_path: Path, door: str) -> None:
    begun, held = asyncio.Event(), asyncio.Event()
    gc.collect()
    gc.freeze()  # what other tests have left in this process need not be walked through again

    async def wait(_: JsonObject) -> str:
        begun.set()
        async with asyncio.timeout(20):
            await held.wait()
        return "done"

    async with gateway(tmp_path, FunctionTool("wait", wait)) as url, httpx.AsyncClient(timeout=20) as client:
        asking = asyncio.create_task(client.post(url + door, json=BODIES[door]))
        await begun.wait()
        gc.collect()
        kept = [type(one).__name__ for one in gc.get_objects() if isinstance(one, _JsonRequest | ChatCompletionRequest)]
        held.set()
        answer = await asking
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-stepgate-run-id"].startswith("run_")
    assert kept == []


@doors
async def test_a_defect_while_an_answer_is_awaited_is_told_like_any_other(tmp_path: Path, door: str) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, port=0, skills_dirs=(), drain_seconds=1)
    body = BODIES[door] | {"metadata": {"tool_calls": [{"tool": "calculator", "args": {"expression": "1+1"}}]}}

    async def defective(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a private matter")

    async with build_gateway(settings) as stepgate:
        vars(stepgate.service)["wait_until_stopped"] = defective
        async with serving(settings, stepgate) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
            answer = await client.post(door, json=body, headers={"x-request-id": "mine"})
            del vars(stepgate.service)["wait_until_stopped"]
            told = (await client.get("/metrics")).text
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] == "mine"
    assert "private" not in answer.text
    assert answer.json()["error"]["message"].endswith("request id mine")
    assert f'stepgate_http_requests_total{{method="POST",route="{door}",status="500"}} 1.0' in told
