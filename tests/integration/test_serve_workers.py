"""`stepgate serve --workers 2`: two processes behind one port do what one does."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.support import redis_server
from tests.support.mcp_client import until
from tests.support.processes import GatewayProcess, start
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux spreads connections over processes")

QUESTION = {"model": "stepgate", "messages": [{"role": "user", "content": "What is 17*3?"}]}


class Workers(GatewayProcess):
    """A gateway of two workers."""

    def pids(self) -> list[int]:
        """The workers' process ids, the parent's children."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        return [int(pid) for pid in listed.split()]


@pytest.fixture
def redis_prefix() -> Iterator[str]:
    with redis_server.own_prefix() as prefix:
        yield prefix


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Three processes load a whole gateway here, so the tests share them; each leaves two workers that serve."""
    with redis_server.own_prefix() as prefix:
        settings = {"serve_workers": "2", "redis_url": redis_server.URL, "redis_prefix": prefix}
        with Workers(tmp_path_factory.mktemp("workers") / "data", **settings) as running:
            yield running


async def ask(url: str) -> httpx.Response:
    """One question over a connection of its own."""
    async with httpx.AsyncClient(timeout=30) as client:
        return await client.post(f"{url}/v1/chat/completions", json=QUESTION)


async def ask_often(url: str, count: int) -> None:
    for _ in range(count):
        response = await ask(url)
        assert response.json()["choices"][0]["message"]["content"] == "17*3 = 51"


async def count_runs(url: str) -> float:
    """The counter of runs, over a connection of its own."""
    async with httpx.AsyncClient(timeout=30) as client:
        text = (await client.get(f"{url}/metrics")).text
    found = re.search(r'stepgate_runs_total\{room="stepgate",status="succeeded"\} (\S+)', text)
    return float(found[1]) if found is not None else 0


async def test_both_workers_answer_and_their_metrics_are_one(workers: Workers) -> None:
    before = await count_runs(workers.url)
    await ask_often(workers.url, 20)
    assert [await count_runs(workers.url) - before for _ in range(6)] == [20] * 6


async def test_a_worker_that_dies_is_replaced_and_no_request_is_refused(workers: Workers) -> None:
    first = workers.pids()
    assert len(first) == 2
    os.kill(first[0], signal.SIGKILL)
    await ask_often(workers.url, 12)
    await until(lambda: len(workers.pids()) == 2 and workers.pids() != first)
    assert first[1] in workers.pids()
    await ask_often(workers.url, 6)


async def test_sessions_of_mcp_reach_their_worker_from_any_connection(workers: Workers) -> None:
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    sessions = set()
    for _ in range(8):
        async with httpx.AsyncClient(headers=headers, timeout=30) as client:
            begun = await client.post(f"{workers.url}/mcp", json=initialize)
        session = begun.headers["mcp-session-id"]
        sessions.add(session[-3:])
        for number in range(2, 6):
            async with httpx.AsyncClient(headers={**headers, "mcp-session-id": session}, timeout=30) as client:
                listed = await client.post(
                    f"{workers.url}/mcp", json={"jsonrpc": "2.0", "id": number, "method": "tools/list"}
                )
            assert listed.status_code == 200, listed.text
            assert "calculator" in listed.text
    assert sessions == {"-w0", "-w1"}


async def test_the_official_client_works_through_two_workers(workers: Workers) -> None:
    @asynccontextmanager
    async def connected() -> AsyncIterator[ClientSession]:
        async with streamable_http_client(f"{workers.url}/mcp") as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            yield session

    for _ in range(4):
        async with connected() as session:
            result = await session.call_tool("calculator", {"expression": "6*7"})
            assert "42" in str(result.content)


async def test_an_unknown_session_is_404_as_in_one_process(workers: Workers) -> None:
    for suffix in ("-w0", "-w1", "-w9", ""):
        async with httpx.AsyncClient(timeout=30) as client:
            response = await client.post(
                f"{workers.url}/mcp",
                json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
                headers={"accept": "application/json, text/event-stream", "mcp-session-id": "0" * 32 + suffix},
            )
        assert response.status_code == 404, response.text


async def test_a_signal_drains_both_and_ends_with_zero(tmp_path: Path, redis_prefix: str) -> None:
    with ScriptedServer(script(says("late", delay_s=1.5))) as upstream:
        settings = {"serve_workers": "2", "redis_url": redis_server.URL, "redis_prefix": redis_prefix}
        model = {"llm_base_url": upstream.url, "model_fast": "m"}
        with Workers(tmp_path / "data", **settings, **model) as running:
            body = {"model": "chat", "messages": [{"role": "user", "content": "hello there, write one word"}]}
            async with httpx.AsyncClient(timeout=30) as client:
                asked = asyncio.create_task(client.post(f"{running.url}/v1/chat/completions", json=body))
                await asyncio.to_thread(upstream.wait_for, "completion")
                running.process.signal(signal.SIGTERM)
                response = await asked
            assert response.json()["choices"][0]["message"]["content"] == "late"
            assert await asyncio.to_thread(running.process.wait) == 0


async def test_workers_end_when_their_parent_is_killed(tmp_path: Path, redis_prefix: str) -> None:
    settings = {"serve_workers": "2", "redis_url": redis_server.URL, "redis_prefix": redis_prefix}
    with Workers(tmp_path / "data", **settings) as running:
        pids = running.pids()
        running.process.kill()
        await until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in pids))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"AGENT_SERVE_WORKERS": "2"}, "set AGENT_REDIS_URL"),
        ({"AGENT_SERVE_WORKERS": "0"}, "AGENT_SERVE_WORKERS"),
    ],
)
def test_what_cannot_work_is_said(settings: dict[str, str], message: str, tmp_path: Path) -> None:
    environment = {"AGENT_DATA_DIR": str(tmp_path), "AGENT_PORT": "0", **settings}
    process = start([sys.executable, "-m", "gateway.cli", "serve"], environment=environment)
    assert process.wait() != 0
    assert message in "\n".join(process.output)


def test_a_store_that_cannot_be_opened_ends_all_with_one_message(tmp_path: Path, redis_prefix: str) -> None:
    (tmp_path / "data").write_text("a file", "utf-8")
    environment = {
        "AGENT_DATA_DIR": str(tmp_path / "data"),
        "AGENT_PORT": "0",
        "AGENT_SERVE_WORKERS": "2",
        "AGENT_REDIS_URL": redis_server.URL,
        "AGENT_REDIS_PREFIX": redis_prefix,
    }
    process = start([sys.executable, "-m", "gateway.cli", "serve"], environment=environment)
    assert process.wait() != 0
    assert len([line for line in process.output if line.startswith("stepgate:")]) == 1, process.output
