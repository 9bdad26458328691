"""Other people's MCP servers: mounted, called, broken in every way, and back again."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ConfigError, ToolError, ToolTimeoutError
from agent.tools import Tool, ToolContext, ToolRegistry
from mcp_tools.client.config import McpServerConfig, add_server, read_servers
from mcp_tools.client.hub import McpHub, McpServer
from mcp_tools.client.remote_tool import RemoteCall, make_definition, make_local_tool_name
from tests.support import warm
from tests.support.engine import engine_bench
from tests.support.mcp_client import hub_with, until
from tests.support.processes import start
from tests.support.script import plans, says, script

CONTEXT = ToolContext(run_id="run_1", owner="local", idempotency_key="k")


def stdio(mode: str = "good", **options: Any) -> McpServerConfig:
    return McpServerConfig.model_validate({**warm.server("tests.support.mcp_server_basic", "stdio", mode), **options})


@asynccontextmanager
async def hub_of(folder: Path, **servers: McpServerConfig) -> AsyncIterator[McpHub]:
    registry = ToolRegistry()
    hub = McpHub(servers, registry, folder, None)
    hub.registry = registry  # type: ignore[attr-defined]
    await hub.start()
    try:
        yield hub
    finally:
        await hub.aclose()


def tool(hub: McpHub, name: str) -> Tool:
    registry: ToolRegistry = hub.registry  # type: ignore[attr-defined]
    return registry.get(name)


def server(hub: McpHub) -> McpServer:
    return hub.servers["srv"]


@pytest.mark.row("Scard-02")
async def test_a_servers_tools_join_the_registry_and_are_called_in_plans(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "srv__echo", "inputs": {"text": "hello"}}, {"tool": "completion"}),
        says("It said hello.", to="completion", about="echo: hello"),
    )
    async with engine_bench(tmp_path / "data", model) as bench:
        hub = McpHub({"srv": stdio(trusted=True)}, bench.engine.registry, tmp_path / "mcp", None)
        await hub.start()
        await until(lambda: server(hub).status == "ready")
        response = await bench.run("search with the echo server")
        await hub.aclose()
    assert response.response == "It said hello."
    assert response.metadata["tool_results"][0]["tainted"] is True
    assert response.metadata["plan"]["steps"][0]["effect"] == "read", "its hints are believed of a trusted server only"


@pytest.mark.row("S001-22")
async def test_an_empty_text_of_a_foreign_tool_is_no_success(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None) as bench:
        hub = McpHub({"srv": stdio("hollow", trusted=True)}, bench.engine.registry, tmp_path / "mcp", None)
        await hub.start()
        await until(lambda: server(hub).status == "ready")
        empty = await bench.run("", metadata={"tool_calls": [{"tool": "srv__nothing", "args": {}}]})
        mute = await bench.run("", metadata={"tool_calls": [{"tool": "srv__mute", "args": {}}]})
        await hub.aclose()
    told = [[s.detail["outcome"] for s in one.steps if s.type == "supervision"] for one in (empty, mute)]
    assert told == [["RETRY", "REPLAN"], ["SUCCESS"]]


async def test_hints_of_a_server_that_is_not_trusted_are_not_believed(tmp_path: Path) -> None:
    async with hub_of(tmp_path, srv=stdio()) as hub:
        await until(lambda: server(hub).status == "ready")
        spec = tool(hub, "srv__echo").spec
        names = [t.spec.name for t in hub.registry]  # type: ignore[attr-defined]
    assert spec.effect == "effect"
    assert spec.description == "Say it back."
    assert names == ["srv__big", "srv__die", "srv__echo", "srv__fail", "srv__slow"]


async def test_errors_of_a_tool_are_tool_errors_and_large_results_arrive(tmp_path: Path) -> None:
    async with hub_of(tmp_path, srv=stdio(timeout=20)) as hub:
        await until(lambda: server(hub).status == "ready")
        with pytest.raises(ToolError, match="fail"):
            await tool(hub, "srv__fail").call({"text": "it"}, CONTEXT)
        result = await tool(hub, "srv__big").call({"size": 3_000_000}, CONTEXT)
        assert len(result.text) == 3_000_000
        assert (await tool(hub, "srv__echo").call({"text": "still"}, CONTEXT)).text == "echo: still"


async def test_a_server_that_dies_in_mid_call_is_told_and_comes_back(tmp_path: Path) -> None:
    count = tmp_path / "count"
    config = stdio(env={"MCP_FIXTURE_COUNT": str(count)}, timeout=20)
    async with hub_of(tmp_path, srv=config) as hub:
        await until(lambda: server(hub).status == "ready")
        with pytest.raises(ToolError):
            await tool(hub, "srv__die").call({}, CONTEXT)
        await until(lambda: server(hub).status != "ready" or server(hub)._connection is None)
        await until(lambda: server(hub).status == "ready")
        assert (await tool(hub, "srv__echo").call({"text": "back"}, CONTEXT)).text == "echo: back"
    assert count.read_text() == "died\n", "a call that broke is not repeated"


async def test_a_call_that_takes_too_long_is_timed_out(tmp_path: Path) -> None:
    async with hub_of(tmp_path, srv=stdio(timeout=1)) as hub:
        await until(lambda: server(hub).status == "ready")
        with pytest.raises((ToolTimeoutError, ToolError)):
            await tool(hub, "srv__slow").call({}, CONTEXT)


@pytest.mark.parametrize(
    "config", [stdio("silent"), stdio("noisy"), McpServerConfig(transport="stdio", command="/nope")]
)
async def test_a_broken_server_stops_nobody_and_keeps_its_last_list(
    tmp_path: Path, config: McpServerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_tools.client.remote_tool.WAIT_FOR_SERVER_S", 0.2)
    async with hub_of(tmp_path, srv=stdio()) as hub:
        await until(lambda: server(hub).status == "ready")
    config = config.model_copy(update={"startup_timeout": 4.0})
    async with hub_of(tmp_path, srv=config, other=stdio()) as hub:
        await until(lambda: hub.servers["other"].status == "ready")
        await until(lambda: server(hub).status == "down")
        assert server(hub).reason
        assert len(server(hub).tools) == 5, "the last good list stays"
        with pytest.raises(ToolError, match="srv"):
            await tool(hub, "srv__echo").call({"text": "x"}, CONTEXT)
        assert (await tool(hub, "other__echo").call({"text": "x"}, CONTEXT)).text == "echo: x"


async def test_a_restarted_http_server_is_met_again_with_its_new_tools(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "tests.support.mcp_server_basic", port]
    config = McpServerConfig.model_validate({"url": f"http://127.0.0.1:{port}/mcp", "timeout": 20})
    first = start([*command, "good"])
    first.line_with("Uvicorn running")
    async with hub_of(tmp_path, srv=config) as hub:
        await until(lambda: server(hub).status == "ready")
        first.kill()
        second = start([*command, "more"])
        second.line_with("Uvicorn running")
        got = ""
        async with asyncio.timeout(60):
            while not got:
                try:
                    got = (await tool(hub, "srv__echo").call({"text": "again"}, CONTEXT)).text
                except ToolError:
                    await asyncio.sleep(0.1)
        server(hub)._connection.changed.set()  # type: ignore[union-attr]
        await until(lambda: any(t.name == "added" for t in server(hub).tools))
        second.kill()
    assert got == "echo: again"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"command": "/no/such-program"}, "there is no program '/no/such-program'; install it"),
        ({"command": sys.executable, "cwd": "/no/such-folder"}, "there is no folder '/no/such-folder'"),
    ],
)
async def test_what_cannot_be_started_is_named(tmp_path: Path, config: dict[str, Any], told: str) -> None:
    async with hub_of(tmp_path, srv=McpServerConfig.model_validate(config)) as hub:
        await until(lambda: server(hub).status == "down")
        assert told in server(hub).reason


def test_the_file_is_read_in_every_form_people_have(tmp_path: Path) -> None:
    path = tmp_path / "mcp_servers.json"
    path.write_text(
        """{"mcpServers": {
        "a": {"command": "npx", "args": ["${HOME_X:-/home}/x"], "env": {"KEY": "${env:TOKEN}"}},
        "b": {"type": "streamable-http", "url": "https://b.test/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "c": {"url": "http://c.test"}, "d": {"type": "sse", "url": "http://d.test"},
        "e": {"command": "x", "env": {"K": "${NOT_SET}"}}, "f": {"type": "telepathy", "url": "http://f"}, "g": {}
        }}"""
    )
    servers, problems = read_servers(path, {"TOKEN": "t"})
    assert {name: config.transport for name, config in servers.items()} == {
        "a": "stdio", "b": "http", "c": "http", "d": "sse",
    }  # fmt: skip
    assert servers["a"].args == ("/home/x",)
    assert servers["a"].env == {"KEY": "t"}
    assert servers["b"].headers == {"Authorization": "Bearer t"}
    assert len(problems) == 3
    assert "NOT_SET" in problems[0]
    path.write_text('{"servers": {"v": {"url": "http://v.test"}}}')
    assert list(read_servers(path)[0]) == ["v"]
    path.write_text("{broken")
    with pytest.raises(ConfigError, match="is not valid JSON"):
        read_servers(path)
    assert read_servers(tmp_path / "none.json") == ({}, [])


def test_adding_a_server_keeps_the_others_and_refuses_nonsense(tmp_path: Path) -> None:
    path = tmp_path / "mcp_servers.json"
    path.write_text('{"servers": {"v": {"url": "http://v.test", "note": "kept"}}}')
    add_server(path, "w", {"command": "w", "args": []})
    assert '"note": "kept"' in path.read_text()
    assert sorted(read_servers(path)[0]) == ["v", "w"]
    with pytest.raises(ConfigError):
        add_server(path, "x", {"url": "ftp://x"})


@pytest.mark.parametrize(
    ("names", "mounted"),
    [
        (("git-hub", "list_issues"), "git_hub__list_issues"),
        (("srv", "echo"), "srv__echo"),
        (("1st", "a"), "m1st__a"),
    ],
)
def test_foreign_names_become_ours(names: tuple[str, str], mounted: str) -> None:
    assert make_local_tool_name(*names) == mounted


def test_long_and_odd_names_get_a_stable_hash() -> None:
    long = make_local_tool_name("server", "x" * 300)
    assert len(long) <= 48
    assert long == make_local_tool_name("server", "x" * 300)
    assert make_local_tool_name("s", "a.b") != make_local_tool_name("s", "a_b")


async def test_a_server_that_leaves_out_fields_of_its_revision_works(tmp_path: Path) -> None:
    config = McpServerConfig.model_validate(warm.server("tests.support.mcp_server_terse"))
    async with hub_with(tmp_path, config) as server:
        await until(lambda: server.status == "ready")
        (shout,) = [tool for tool in server.tools if tool.name == "shout"]
        call = RemoteCall("shout", make_definition(shout), {"text": "hello"}, "key", lambda line: None)
        assert getattr((await server.call(call)).content[0], "text", "") == "HELLO"
