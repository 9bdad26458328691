"""Foreign MCP servers that accept no first message but `initialize`: they are used, and asked no other way again."""

from pathlib import Path
from typing import Any

import pytest

from mcp_tools.client.config import McpServerConfig
from tests.integration.test_mcp_malformed import CONTEXT
from tests.support.mcp_client import hub_with, until
from tests.support.mcp_server_raw import raw_program


def list_methods(folder: Path) -> list[str]:
    lines = (folder / "script.log").read_text().splitlines()
    return [
        "server/discover" if "server/discover" in line else line.split('"method":"')[1].split('"')[0] for line in lines
    ]


def entry(folder: Path, how: str, **options: Any) -> McpServerConfig:
    return McpServerConfig.model_validate({**raw_program(folder, {"first": how}), **options})


@pytest.mark.parametrize("how", ["ends", "ignores", "hangs"])
async def test_it_is_used_and_later_asked_without_the_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr("mcp_tools.client.hub.PIN_POLL_SECONDS", 0.1)
    async with hub_with(tmp_path, entry(tmp_path, how, idle_stop=0.2, startup_timeout=3)) as server:
        await until(lambda: server.status == "ready")
        await until(lambda: server.status == "idle")
        begun = len(list_methods(tmp_path))
        await until(lambda: "srv__echo" in server._registration._registry)
        assert (await server._registration._registry.get("srv__echo").call({}, CONTEXT)).text == "done"
    assert list_methods(tmp_path)[begun] == "initialize"


async def test_a_server_that_always_ends_says_why(tmp_path: Path) -> None:
    config = McpServerConfig.model_validate({"command": "sh", "args": ["-c", "echo no licence >&2; exit 7"]})
    async with hub_with(tmp_path, config) as server:
        await until(lambda: server.status == "down")
        assert "exit code 7" in server.reason
        assert "no licence" in server.reason


async def test_a_slow_server_that_ends_by_itself_is_started_once_and_says_why(tmp_path: Path) -> None:
    command = f"echo started >> {tmp_path}/starts; sleep 1.2; echo token missing >&2; exit 7"
    config = McpServerConfig.model_validate({"command": "sh", "args": ["-c", command], "startup_timeout": 2})
    async with hub_with(tmp_path, config) as server:
        await until(lambda: server.status == "down")
        assert "exit code 7" in server.reason
        assert "token missing" in server.reason
        assert (tmp_path / "starts").read_text().count("started") == 1


async def test_a_start_that_is_cut_off_after_the_server_ended_says_why_it_ended(tmp_path: Path) -> None:
    again = f"[ -e {tmp_path}/again ] && sleep 60; touch {tmp_path}/again"
    command = f"{again}; echo token missing >&2; exit 7"
    config = McpServerConfig.model_validate({"command": "sh", "args": ["-c", command], "startup_timeout": 2})
    async with hub_with(tmp_path, config) as server:
        await until(lambda: server.status == "down")
        assert "token missing" in server.reason
        assert "no answer within 2 s" in server.reason


async def test_a_slow_server_that_the_probe_ends_is_used(tmp_path: Path) -> None:
    script = raw_program(tmp_path, {"first": "ends", "start_s": 2.2})
    async with hub_with(tmp_path, McpServerConfig.model_validate({**script, "startup_timeout": 4})) as server:
        await until(lambda: server.status == "ready")
    assert next(line for line in list_methods(tmp_path) if line != "server/discover") == "initialize"
