"""A foreign MCP server that is removed, disabled or changed gets no further request and no credential."""

import asyncio
import functools
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.errors import AgentError, ToolError
from agent.tools import Tool, ToolContext, ToolRegistry
from mcp_tools.client import stdio
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.hub import McpHub
from mcp_tools.client.tool_pin_store import PinSettings
from tests.integration.conftest import Serve
from tests.integration.test_mcp_tool_pins import pins_of
from tests.integration.test_rooms import client_of, create
from tests.integration.test_rooms_everywhere import run_tool
from tests.support.mcp_client import until
from tests.support.mcp_raw_program import ECHO
from tests.support.mcp_server_raw import RawHttpServer, raw_program

CONTEXT = ToolContext(run_id="run_1", owner="local", idempotency_key="k")
OLD, NEW = "Bearer old", "Bearer new"
TIMEOUT_S = 1
"""How long a change waits for a server that holds back its answer."""
QUIET_S = 0.2
"""How long to watch a server that must get nothing."""
STAGES = ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call", "GET", ""]
"""What the server holds back when it is removed; nothing: calls and answers go back and forth."""


def config(server: RawHttpServer, credential: str = OLD, **options: Any) -> McpServerConfig:
    entry = {"url": server.url, "headers": {"Authorization": credential}, "timeout": TIMEOUT_S, **options}
    return McpServerConfig.model_validate(entry)


def changes(server: RawHttpServer) -> dict[str, dict[str, McpServerConfig]]:
    """Returns how a configuration can end the use of the server as it is."""
    return {
        "removed": {},
        "disabled": {"srv": config(server, disabled=True)},
        "changed": {"srv": config(server, NEW)},
    }


@asynccontextmanager
async def hub_of(
    folder: Path, servers: dict[str, McpServerConfig], pinning: PinSettings | None = None
) -> AsyncIterator[tuple[McpHub, ToolRegistry]]:
    registry = ToolRegistry()
    hub = McpHub(servers, registry, folder, pinning)
    await hub.start()
    try:
        yield hub, registry
    finally:
        await hub.aclose()


def _is_held(server: RawHttpServer) -> bool:
    """Whether the server holds back an answer."""
    return server.held in server.list_methods()


async def call_on_and_on(get_tool: Callable[[], Tool | None]) -> None:
    """Calls a tool again and again, as runs do that looked it up earlier."""
    while True:
        tool = get_tool()
        try:
            if tool is not None:
                await tool.call({}, CONTEXT)
        except AgentError:
            pass
        await asyncio.sleep(0.001)


def credentials_since(server: RawHttpServer, moment: float) -> list[str]:
    return [f"{method} {sent}" for at, method, sent in server.requests if at >= moment and sent != NEW]


@pytest.mark.parametrize("change", ["removed", "disabled", "changed"])
@pytest.mark.parametrize("stage", STAGES)
async def test_a_server_gets_nothing_after_its_removal(tmp_path: Path, stage: str, change: str) -> None:
    chance = random.Random(f"{stage} {change}")
    async with pins_of(tmp_path) as pinning:
        for round_ in range(2):
            server = RawHttpServer(held=stage, delay_s=chance.choice((0.0, 0.002)))
            async with server.serve(), hub_of(tmp_path / str(round_), {"srv": config(server)}, pinning) as found:
                hub, registry = found
                held: list[Tool] = []

                def get_tool(held: list[Tool] = held, registry: ToolRegistry = registry) -> Tool | None:
                    if not held and "srv__echo" in registry:
                        held.append(registry.get("srv__echo"))
                    return held[0] if held else None

                callers = [asyncio.create_task(call_on_and_on(get_tool)) for _ in range(3)]
                if stage:
                    reached = functools.partial(_is_held, server)
                    await asyncio.wait([asyncio.create_task(until(reached))], timeout=1)
                await asyncio.sleep(chance.random() * 0.06)
                before = time.monotonic()
                await hub.apply(changes(server)[change])
                answered = time.monotonic()
                await asyncio.sleep(QUIET_S)
                for caller in callers:
                    caller.cancel()
                assert credentials_since(server, answered) == [], f"round {round_}"
                assert answered - before < TIMEOUT_S + 3
                if change != "changed":
                    assert "srv__echo" not in registry
                assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "mcp srv"] == (
                    ["mcp srv"] if change == "changed" else []
                )


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.01])
async def test_a_server_that_lists_again_when_it_is_removed_does_not_register_its_tools_again(
    tmp_path: Path, delay: float
) -> None:
    async with pins_of(tmp_path) as pinning:
        server = RawHttpServer()
        async with server.serve(), hub_of(tmp_path, {"srv": config(server)}, pinning) as (hub, registry):
            for round_ in range(10):
                await until(lambda: hub.servers["srv"].status == "ready")
                connection = hub.servers["srv"]._connection
                assert connection is not None
                server.script = {"tools/list": {"result": {"tools": [ECHO, {**ECHO, "name": f"t{round_}"}]}}}
                connection.changed.set()
                await asyncio.sleep(delay)
                await hub.apply({})
                await asyncio.sleep(0.02)
                assert [tool.spec.name for tool in registry] == []
                await hub.apply({"srv": config(server)})


async def test_a_call_in_progress_fails_and_one_that_waits_is_refused(tmp_path: Path) -> None:
    server = RawHttpServer(held="tools/call")
    async with server.serve(), hub_of(tmp_path, {"srv": config(server)}) as (hub, registry):
        await until(lambda: "srv__echo" in registry)
        tool = registry.get("srv__echo")
        running = asyncio.create_task(tool.call({}, CONTEXT))
        await until(lambda: "tools/call" in server.list_methods())
        await hub.apply({})
        with pytest.raises(ToolError, match=r"was stopped during the call.*not known whether the call was executed"):
            await running
        with pytest.raises(ToolError, match="no longer used"):
            await tool.call({}, CONTEXT)
    down = McpServerConfig.model_validate({"url": "http://127.0.0.1:9/mcp"})
    async with hub_of(tmp_path, {"srv": down}) as (hub, registry):
        waiting = asyncio.create_task(registry.get("srv__echo").call({}, CONTEXT))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        await hub.apply({})
        with pytest.raises(ToolError, match="no longer used"):
            await waiting
        assert time.monotonic() - began < 2


async def test_a_removed_program_gets_no_further_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "SHUTDOWN_GRACE_S", 0.3)
    for round_ in range(2):
        folder = tmp_path / str(round_)
        folder.mkdir()
        entry = McpServerConfig.model_validate(raw_program(folder, {}))
        async with hub_of(folder, {"srv": entry}) as (hub, registry):
            await until(lambda r=registry: "srv__echo" in r)  # type: ignore[misc]
            tool = registry.get("srv__echo")
            callers = [asyncio.create_task(call_on_and_on(lambda t=tool: t)) for _ in range(3)]  # type: ignore[misc]
            await asyncio.sleep(0.02 * round_)
            await hub.apply({})
            answered = time.monotonic()
            await asyncio.sleep(QUIET_S)
            for caller in callers:
                caller.cancel()
        lines = (folder / "script.log").read_text().splitlines()
        assert lines
        assert [line for line in lines if float(line.split()[0]) > answered] == []


async def test_the_answer_to_a_change_of_a_room_comes_after_the_last_request(serve: Serve) -> None:
    server = RawHttpServer()
    async with server.serve():
        host = server.url.split("/")[2]
        async with serve(fetch_allow_hosts=(host,)) as url, client_of(url) as client:
            for _ in range(3):
                await create(client, name="Ours", mcp_servers={"srv": {"url": server.url}})
                name = await find_tool(client)
                calls = [asyncio.create_task(run_tool(url, name, room="ours")) for _ in range(4)]
                await until(lambda: "tools/call" in server.list_methods())
                assert (await client.delete("/v1/rooms/ours")).status_code == 204
                answered = time.monotonic()
                await asyncio.gather(*calls, return_exceptions=True)
                await asyncio.sleep(QUIET_S)
                assert server.list_methods(answered) == []
                server.requests.clear()


async def find_tool(client: httpx.AsyncClient) -> str:
    async with asyncio.timeout(20):
        while True:
            listed = (await client.get("/v1/tools")).json()["data"]
            if found := [tool["name"] for tool in listed if "__echo" in tool["name"]]:
                return str(found[0])
            await asyncio.sleep(0.05)
