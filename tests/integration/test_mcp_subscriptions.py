"""What MCP clients of both eras are told without asking again: changes, and log messages."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.subscriptions import ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import LoggingMessageNotificationParams

from agent.core.cancellation import cancel_and_wait
from agent.tools import ToolRegistry
from mcp_tools.server import subscriptions as server_changes
from tests.conformance import run
from tests.integration.conftest import Serve
from tests.integration.test_mcp_server import MODEL
from tests.support.conformance_wire import ACCEPT, BEGIN, META, SLOW
from tests.support.engine import engine_bench
from tests.support.keys import bearer, created_key
from tests.support.processes import GatewayProcess
from tests.support.tools import returning


@pytest.fixture(autouse=True)
def _quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_changes, "WATCH_SECONDS", 0.05)


@pytest.fixture
async def fixtures(tmp_path: Path) -> AsyncIterator[str]:
    """A gateway with the suite's fixtures."""
    async with run.gateway_with_fixtures(tmp_path / "data") as url:
        yield url


async def test_a_run_can_be_listened_to(serve: Serve) -> None:
    async with serve(SLOW) as url, Client(f"{url}/mcp", mode="2026-07-28") as client:
        started: Any = (await client.call_tool("agent_run", BEGIN)).structured_content
        report = f"run://{started['run_id']}/report"
        async with asyncio.timeout(20), client.listen(resource_subscriptions=[report]) as events:
            first = await anext(aiter(events))
        with pytest.raises(MCPError, match="at most 100"):
            async with client.listen(resource_subscriptions=[f"run://{n}/report" for n in range(101)]):
                pass
    assert first == ResourceUpdated(report)


async def test_new_runs_and_changed_lists_are_told(fixtures: str) -> None:
    async with (
        Client(f"{fixtures}/mcp", mode="2026-07-28") as client,
        asyncio.timeout(20),
        client.listen(tools_list_changed=True, resources_list_changed=True) as events,
    ):
        told = aiter(events)
        await client.call_tool("test_trigger_tool_change", {})
        tools = await anext(told)
        following = asyncio.ensure_future(anext(told))
        while not following.done():
            await client.call_tool("agent_run", {"task": "what is 6*7"})
            await asyncio.wait([following], timeout=0.5)
        runs = following.result()
    assert (type(tools).__name__, type(runs).__name__) == ("ToolsListChanged", "ResourcesListChanged")


@asynccontextmanager
async def client_of_owner(url: str, folder: Path, owner: str) -> AsyncIterator[Client]:
    """A client of era 2026 with a key of an owner."""
    key = await created_key(folder / "data", owner, owner=owner, scopes="mcp,agent")
    async with (
        httpx2.AsyncClient(headers=bearer(key), timeout=30) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode="2026-07-28") as client,
    ):
        yield client


async def test_the_runs_of_the_owner_who_listens_are_watched(serve: Serve, tmp_path: Path) -> None:
    async with (
        serve(None, require_key="always") as url,
        client_of_owner(url, tmp_path, "anna") as anna,
        asyncio.timeout(20),
        anna.listen(resources_list_changed=True) as events,
    ):
        following = asyncio.ensure_future(anext(aiter(events)))
        while not following.done():
            await anna.call_tool("agent_run", {"task": "what is 6*7"})
            await asyncio.wait([following], timeout=0.5)
    assert type(following.result()).__name__ == "ResourcesListChanged"


async def test_the_owner_of_a_run_hears_of_it_and_nobody_else(serve: Serve, tmp_path: Path) -> None:
    async with (
        serve(SLOW, require_key="always") as url,
        client_of_owner(url, tmp_path, "anna") as anna,
        client_of_owner(url, tmp_path, "bob") as bob,
    ):
        started: Any = (await anna.call_tool("agent_run", BEGIN)).structured_content
        report = f"run://{started['run_id']}/report"
        async with (
            asyncio.timeout(20),
            bob.listen(resource_subscriptions=[report]) as others,
            anna.listen(resource_subscriptions=[report]) as events,
        ):
            assert await anext(aiter(events)) == ResourceUpdated(report)
            waiting = asyncio.ensure_future(anext(aiter(others)))
            assert not (await asyncio.wait([waiting], timeout=0.5))[0]
            await cancel_and_wait(waiting)


async def test_a_stopping_gateway_lets_its_listeners_go(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data", drain_seconds="30") as gateway:
        async with (
            Client(f"{gateway.url}/mcp", mode="2026-07-28") as client,
            client.listen(tools_list_changed=True) as events,
        ):
            gateway.process.signal(signal.SIGTERM)
            told = [event async for event in events]
        code = await asyncio.to_thread(gateway.process.wait, 10)
    assert (told, code) == ([], 0)
    assert "Traceback" not in "\n".join(gateway.process.output)


async def test_a_tool_that_appears_is_told_in_both_eras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_changes, "WATCH_SECONDS", 0.01)
    registry, heard = ToolRegistry(), asyncio.Event()
    server: Any = None
    async with engine_bench(tmp_path, None) as bench:
        changes = server_changes.ChangeNotifier(lambda: bench.service, lambda: registry)
        changes.subscribe(lambda event: heard.set() if isinstance(event, ToolsListChanged) else None)
        async with changes.serve(server), asyncio.timeout(5):
            await asyncio.sleep(0.05)
            assert not heard.is_set()
            registry.register(returning("echo", "x"))
            await heard.wait()


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_session_of_2025_is_told_of_what_it_subscribed_to(serve: Serve) -> None:
    heard: list[str] = []
    updated = asyncio.Event()

    async def hear(message: Any) -> None:
        heard.append(getattr(message, "method", ""))
        if getattr(message, "method", "") == "notifications/resources/updated":
            updated.set()

    async with serve(SLOW) as url, Client(f"{url}/mcp", mode="legacy", message_handler=hear) as client:
        started: Any = (await client.call_tool("agent_run", BEGIN)).structured_content
        uri = f"run://{started['run_id']}/steps"
        await client.subscribe_resource(uri)
        async with asyncio.timeout(20):
            await updated.wait()
        await client.unsubscribe_resource(uri)
        await client.unsubscribe_resource(uri)
        with pytest.raises(MCPError, match="no run"):
            await client.subscribe_resource("run://run_none/steps")
        with pytest.raises(MCPError, match="no resource"):
            await client.subscribe_resource("test://none")
        capabilities = client.server_capabilities
    assert capabilities.resources is not None
    assert capabilities.resources.subscribe
    assert capabilities.tools is not None
    assert capabilities.tools.list_changed
    assert capabilities.logging is not None


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_session_of_2025_sets_the_level_of_what_it_is_told(serve: Serve) -> None:
    heard: list[str] = []

    async def hear(params: LoggingMessageNotificationParams) -> None:
        heard.append(str(params.data))

    async with serve(MODEL) as url, Client(f"{url}/mcp", mode="legacy", logging_callback=hear) as client:
        await client.call_tool("agent_run", {"task": "search and compute"})
        informed = list(heard)
        await client.set_logging_level("error")
        await client.call_tool("agent_run", {"task": "search and compute"})
    assert "step 1/2: calculator" in informed
    assert heard == informed


async def test_the_client_of_2026_is_told_only_what_it_asked_for(serve: Serve) -> None:
    async with serve(MODEL) as url:
        call = {"name": "agent_run", "arguments": {"task": "search and compute"}}
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "agent_run", **ACCEPT}
        texts = []
        async with httpx.AsyncClient(timeout=20) as client:
            for meta in (META, {**META, "io.modelcontextprotocol/logLevel": "info"}):
                body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta, **call}}
                answer = await client.post(f"{url}/mcp", json=body, headers=headers)
                texts.append(answer.text)
    assert ["notifications/message" in text for text in texts] == [False, True]
