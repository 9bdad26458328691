"""When other people's MCP servers run: stopped while unused, back at once when they fell, and what they may ask us."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp import Client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.core.errors import ToolError
from agent.tools import ToolContext
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.hub import McpServer
from tests.integration.conftest import Serve
from tests.support.mcp_client import hub_with, until
from tests.support.processes import ROOT
from tests.support.serving import running

CONTEXT = ToolContext(run_id="run_1", owner="local", idempotency_key="k")


class OfSessions:
    """A server of the 2025 era. It knows no other session than `session`, as after a restart, and says so by
    `refusal`: a status, and perhaps an error of the protocol."""

    def __init__(self, refusal: tuple[int, dict[str, Any]]) -> None:
        self.session = "first"
        self.refusal = refusal
        self.calls = 0

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/", self._post, methods=["POST"])])

    async def _post(self, request: Request) -> Response:
        message = await request.json()
        method, known = message["method"], request.headers.get("mcp-session-id") == self.session
        if method == "initialize":
            version, info = message["params"]["protocolVersion"], {"name": "old", "version": "1"}
            result: Any = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        elif not known:
            return JSONResponse(self.refusal[1], self.refusal[0])
        elif method == "tools/list":
            result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            self.calls += 1
            result = {"content": [{"type": "text", "text": f"call {self.calls}"}]}
        else:
            return Response(status_code=202)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return JSONResponse(answer, headers={"mcp-session-id": self.session})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a server is needed is looked at several times a second."""
    monkeypatch.setattr("mcp_tools.client.hub.PIN_POLL_SECONDS", 0.1)


def program(python: str | Path, folder: Path) -> dict[str, Any]:
    """The process, as an entry of the file of servers. It imports next to nothing."""
    return {
        "command": str(python),
        "args": ["-m", "tests.support.mcp_server_requests", f"{folder / 'diary'}"],
        "cwd": str(ROOT),
    }


@asynccontextmanager
async def server_of(folder: Path, **options: Any) -> AsyncIterator[McpServer]:
    """A server of our own, on a process of its own whose diary is `folder/diary`."""
    process = program(sys.executable, folder)
    async with hub_with(folder, McpServerConfig.model_validate({**process, "timeout": 20, **options})) as server:
        yield server


async def call(server: McpServer, tool: str, **args: Any) -> str:
    return (await server._registration._registry.get(f"srv__{tool}").call(args, CONTEXT)).text


def diary(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "diary").read_text().splitlines()]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


async def test_an_unused_server_is_stopped_and_the_next_call_starts_it(tmp_path: Path) -> None:
    async with server_of(tmp_path, idle_stop=0.5) as server:
        await until(lambda: server.status == "ready")
        first = int(await call(server, "pid"))
        await until(lambda: server.status == "idle")
        assert not alive(first)
        assert "srv__pid" in server._registration._registry
        assert "stopped while unused" in server.status_line
        calls = await asyncio.gather(*(call(server, "pid") for _ in range(5)))
        assert len(set(calls)) == 1, "all of them by one process"
        assert int(calls[0]) != first


async def test_a_server_is_not_stopped_under_a_call(tmp_path: Path) -> None:
    async with server_of(tmp_path, idle_stop=0.2) as server:
        await until(lambda: server.status == "ready")
        pid = int(await call(server, "pid"))
        hanging = asyncio.create_task(call(server, "hang"))
        await until(lambda: any(m.get("params", {}).get("name") == "hang" for m in diary(tmp_path)))
        await asyncio.sleep(0.6)  # three times what it may be unused
        assert alive(pid)
        assert server.status == "ready"
        hanging.cancel()
        await until(lambda: server.status == "idle")


async def test_an_idle_server_that_does_not_come_back_is_told_as_down(tmp_path: Path) -> None:
    missing = tmp_path / "program"
    missing.symlink_to(sys.executable)
    config = McpServerConfig.model_validate({**program(missing, tmp_path), "idle_stop": 0.2})
    async with hub_with(tmp_path, config) as server:
        await until(lambda: server.status == "idle")
        missing.unlink()
        calling = asyncio.create_task(call(server, "pid"))
        await until(lambda: server.status == "down")
        assert "there is no program" in server.reason
        missing.symlink_to(sys.executable)
        assert int(await calling) > 0, "a call that waits has it tried again"


async def test_one_that_fell_while_nobody_called_is_back_for_the_next_call(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        await until(lambda: server.status == "ready")
        pid = int(await call(server, "pid"))
        os.kill(pid, signal.SIGKILL)
        await until(lambda: server.status == "down")
        assert "its process ended with" in server.reason
        assert int(await call(server, "pid")) != pid


async def test_a_call_under_which_it_falls_is_told_how_it_ended_and_the_next_one_waits(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        await until(lambda: server.status == "ready")
        pid = int(await call(server, "pid"))
        hanging = asyncio.create_task(call(server, "hang"))
        await until(lambda: any(m.get("params", {}).get("name") == "hang" for m in diary(tmp_path)))
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ToolError, match=r"it is not known whether the call was executed \(its process ended with"):
            await hanging
        assert int(await call(server, "pid")) != pid


@pytest.mark.parametrize(
    "refusal",
    [
        (404, {}),
        (404, {"jsonrpc": "2.0", "error": {"code": -32001, "message": "Session not found"}, "id": None}),
        (400, {"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}}),
    ],
)
async def test_a_call_that_a_restarted_server_refused_unread_is_made_again(
    tmp_path: Path, refusal: tuple[int, dict[str, Any]]
) -> None:
    old = OfSessions(refusal)
    async with (
        running(uvicorn.Config(old.app(), port=0, log_config=None)) as url,
        hub_with(tmp_path, McpServerConfig(transport="http", url=url)) as server,
    ):
        await until(lambda: server.status == "ready")
        assert await call(server, "echo") == "call 1"
        old.session = "after a restart"
        assert await call(server, "echo") == "call 2"


async def test_a_cancelled_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        await until(lambda: server.status == "ready")
        hanging = asyncio.create_task(call(server, "hang"))
        await until(lambda: any(m.get("params", {}).get("name") == "hang" for m in diary(tmp_path)))
        hanging.cancel()
        await until(lambda: any(m.get("method") == "notifications/cancelled" for m in diary(tmp_path)))
        asked = next(m for m in diary(tmp_path) if m.get("params", {}).get("name") == "hang")
        told = next(m for m in diary(tmp_path) if m.get("method") == "notifications/cancelled")
        assert told["params"]["requestId"] == asked["id"]


async def test_what_a_server_asks_in_the_middle_of_a_call_is_not_answered_where_no_client_waits(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        await until(lambda: server.status == "ready")
        assert json.loads(await call(server, "ask_person")) == {"action": "cancel"}
        for tool in ("ask_model", "ask_folders"):
            assert "not supported" in json.loads(await call(server, tool))["message"]
    begun = next(m for m in diary(tmp_path) if m["method"] == "initialize")
    assert begun["params"]["capabilities"].keys() == {"elicitation"}, "the server is not trusted"


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_who_calls_a_tool_over_mcp_hears_of_its_progress_and_can_end_it(
    tmp_path: Path, serve: Serve, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_tools.server.progress.HEARTBEAT_SECONDS", 0.3)
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"srv": program(sys.executable, tmp_path)}}))
    lines: list[str | None] = []

    async def record_progress(progress: float, total: float | None, message: str | None) -> None:
        lines.append(message)

    async with serve(mcp_servers=servers) as url, Client(f"{url}/mcp/all", mode=era) as client:
        async with asyncio.timeout(40):
            while not any(  # noqa: ASYNC110 - another process' tools
                tool.name == "srv__hang" for tool in (await client.list_tools(cache_mode="bypass")).tools
            ):
                await asyncio.sleep(0.05)
        said = await client.call_tool("srv__chatter", {}, progress_callback=record_progress)
        assert getattr(said.content[0], "text", "") == "said"
        assert "srv__chatter: half (1)" in lines
        hanging = asyncio.create_task(client.call_tool("srv__hang", {}, progress_callback=record_progress))
        await until(lambda: "srv__hang is working" in lines)  # which may be said before the server has the call
        await until(lambda: any(m.get("params", {}).get("name") == "hang" for m in diary(tmp_path)))
        hanging.cancel()
        await until(lambda: any(m.get("method") == "notifications/cancelled" for m in diary(tmp_path)))


async def test_the_file_says_what_idle_stop_cannot_do() -> None:
    config = McpServerConfig.model_validate({"url": "http://a.test", "idle_stop": 5})
    assert config.ignored_settings == ("idle_stop has no effect: it only stops servers that a `command` starts",)
