"""Qdrant dying in mid-call: a request does not fail for want of what is remembered, and the log says why it was not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from agent.core.events import MemoryRetrieved
from agent.llm.embedder import LocalEmbedder
from tests.faults.gateway import faulty_gateway
from tests.support.scripted_wire import reset

FAULTS = (
    "resets",
    "hangs",
    "stops in the middle",
    "500",
    "HTML with 200",
    "half a JSON",
    "another JSON",
    "200 and no byte",
)
"""How it dies in the search itself; what it was asked before, it answered well."""


class FakeQdrant:
    """What stands for Qdrant: it knows one collection, and fails in every search in the way it was told."""

    def __init__(self) -> None:
        self.fault = ""
        self.searches = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One request."""
        if not request.path.endswith("/points/query"):
            return web.json_response({"result": COLLECTION, "status": "ok", "time": 0.0})
        self.searches += 1
        match self.fault:
            case "resets":
                reset(request)
            case "hangs":
                await asyncio.sleep(30)
            case "stops in the middle":
                return await _half(request)
            case "500":
                return web.json_response({"status": {"error": "out of memory"}}, status=500)
            case "HTML with 200":
                return web.Response(text="<html>it works</html>", content_type="text/html")
            case "half a JSON":
                return web.Response(text='{"result": {"points": [', content_type="application/json")
            case "another JSON":
                return web.json_response(["no", "answer"])
        return web.Response(content_type="application/json")


async def _half(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-length": "100000", "content-type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"result": ')
    assert request.transport is not None
    request.transport.close()
    return response


COLLECTION = {
    "status": "green",
    "optimizer_status": "ok",
    "segments_count": 1,
    "config": {
        "params": {"vectors": {"size": LocalEmbedder.space.dimension, "distance": "Cosine"}},
        "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
        "optimizer_config": {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        },
        "metadata": {"embedder": LocalEmbedder.space.embedder, "dimension": LocalEmbedder.space.dimension},
    },
    "payload_schema": {},
}


@asynccontextmanager
async def fake_qdrant() -> AsyncIterator[tuple[FakeQdrant, str]]:
    qdrant, app = FakeQdrant(), web.Application()
    app.router.add_route("*", "/{path:.*}", qdrant.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield qdrant, "http://{}:{}".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()


async def test_whatever_qdrant_does_the_request_is_answered_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.storage.vectors.qdrant.TIMEOUT_SECONDS", 1)
    room, found = "memory: true", {}
    async with fake_qdrant() as (qdrant, url), faulty_gateway(tmp_path, None, room=room, qdrant_url=url) as gateway:
        for number, qdrant.fault in enumerate(FAULTS, start=1):
            told = await gateway.ask(f"What is the {number}th colour?", stream=False)
            log = gateway.logs.get(told.run_id, [])
            why = next((event.body.fallback_reason for event in log if isinstance(event.body, MemoryRetrieved)), None)
            faults = gateway.faults_of_log(told.run_id)
            if faults or told.status != 200 or "check AGENT_QDRANT_URL" not in (why or "") or qdrant.searches != number:
                found[qdrant.fault] = (faults, told, why, qdrant.searches)
    assert found == {}
