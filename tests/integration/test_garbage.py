"""What an answered request leaves in memory: nothing that only the garbage collector could find."""

import asyncio
import gc
from pathlib import Path

import httpx
import pytest

from agent.core.events import Event
from agent.run_context.run import Run
from agent.runs import run_worker
from tests.integration.test_http_streaming import gateway

PROMPT = {"prompt": "wait", "metadata": {"tool_calls": [{"tool": "calculator", "args": {"expression": "2*21"}}]}}


async def test_an_ended_run_is_in_no_reference_cycle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_worker, "FOLLOW_SECONDS", 0.05)
    async with gateway(tmp_path) as url, httpx.AsyncClient(timeout=20) as client:
        await client.post(f"{url}/v1/agent", json=PROMPT)  # what is loaded at the first one may leave cycles
        await asyncio.sleep(0.2)
        gc.collect()
        gc.freeze()  # what other tests have left in this process need not be walked through again
        gc.disable()
        try:
            answers = [await client.post(f"{url}/v1/agent", json=PROMPT) for _ in range(3)]
            await asyncio.sleep(0.2)
            ended = {answer.headers["x-stepgate-run-id"] for answer in answers}
            # By their type, since a weak proxy is an instance too; of these runs, since other tests may have left some.
            kept = [type(one) for one in gc.get_objects() if type(one) in (Run, Event) and one.run_id in ended]
        finally:
            gc.enable()
    assert len(ended) == 3
    assert kept == []
