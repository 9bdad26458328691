"""An operator's wishes about foreign tools: names, descriptions, defaults, approval; and what is not heeded."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from typer.testing import CliRunner

from agent.core.errors import ToolQuarantinedError
from agent.core.models import AgentRequest
from agent.core.run_reducer import fold
from agent.core.settings import Settings
from agent.policy.approval import format_approval_question
from agent.tools import ToolContext, ToolRegistry
from gateway.cli import mcp_servers, mcp_servers_login
from mcp_tools.client.config import McpServerConfig, read_servers
from mcp_tools.client.hub import McpHub
from mcp_tools.client.tool_pin_store import PinSettings
from mcp_tools.client.tool_pins import ToolDefinition
from tests.integration.test_mcp_client import stdio
from tests.integration.test_mcp_tool_pins import pins_of
from tests.support.engine import engine_bench
from tests.support.mcp_client import until
from tests.support.mcp_server_basic import build
from tests.support.serving import running

CONTEXT = ToolContext(run_id="run_1", owner="local", idempotency_key="k")
CHOICE: dict[str, Any] = {
    "rename": {"echo": "say_back"},
    "describe": {"echo": "Repeats a sentence."},
    "defaults": {"echo": {"text": "by default"}},
}


def config_of(**tools: Any) -> McpServerConfig:
    return McpServerConfig.model_validate({"command": "x", "tools": tools})


async def test_tools_have_the_names_texts_and_defaults_of_the_operator(tmp_path: Path) -> None:
    registry = ToolRegistry()
    hub = McpHub({"srv": stdio(tools=CHOICE)}, registry, tmp_path, None)
    await hub.start()
    await until(lambda: hub.servers["srv"].status == "ready")
    tool = registry.get("srv__say_back")
    assert (tool.spec.description, tool.spec.input_schema.get("required")) == ("Repeats a sentence.", [])
    assert "by default" not in json.dumps(tool.spec.input_schema), "defaults may be secrets"
    assert (await tool.call({}, CONTEXT)).text == "echo: by default"
    assert (await tool.call({"text": "given"}, CONTEXT)).text == "echo: given"
    assert "srv__echo" not in registry
    await hub.aclose()


async def test_pins_are_over_what_the_server_offers_whatever_it_is_called_here(tmp_path: Path) -> None:
    registry = ToolRegistry()
    async with pins_of(tmp_path / "pins") as pinning:
        seen = ToolDefinition.from_parts({"name": "other"})  # seen before with another tool: these are new
        await pinning.store.record_offers("srv", {"other": seen}, "first_use")
        hub = McpHub({"srv": stdio(tools=CHOICE)}, registry, tmp_path, PinSettings(pinning.store, "first_use"))
        await hub.start()
        await until(lambda: hub.servers["srv"].status == "ready")
        row = await pinning.store.read("srv")
        await hub.aclose()
    assert row is not None
    assert "echo" in row.pins.quarantined
    with pytest.raises(ToolQuarantinedError):
        registry.get("srv__say_back")


@pytest.mark.parametrize("approve", [True, ["echo"], ["say_back"]])
async def test_a_tool_of_which_every_call_is_to_be_approved_waits_in_any_room(tmp_path: Path, approve: object) -> None:
    config = stdio(trusted=True, tools={**CHOICE, "approve": approve})
    async with engine_bench(tmp_path / "data", None) as bench:
        hub = McpHub({"srv": config}, bench.engine.registry, tmp_path / "mcp", None)
        await hub.start()
        await until(lambda: hub.servers["srv"].status == "ready")
        calls = [{"tool": "srv__say_back", "args": {"text": "hello"}}]
        run_id = await bench.service.start_run(AgentRequest(metadata={"tool_calls": calls}))
        response = await bench.service.wait_for_response(run_id)
        assert response.metadata["status"] == "awaiting_approval"
        asked = format_approval_question(fold(run_id, await bench.service.read_events(run_id)))
        assert "every call of this tool" in asked
        assert "changes something" not in asked, "it only reads"
        decided = await bench.service.submit_decision(run_id, "approve")
        response = await bench.service.wait_for_response(run_id, seen_seq=decided.last_seq)
        await hub.aclose()
    assert (response.metadata["status"], response.response) == ("complete", "echo: hello")


def test_wishes_that_cannot_be_fulfilled_are_told() -> None:
    choice = config_of(
        rename={"a": "b"},
        describe={"gone": "x"},
        defaults={"a": {"y": 1}, "b": {"x": 1}},
        approve=["b", "nope"],
    ).tools
    told = choice.list_ignored_settings({"a": {"x"}, "b": {"x"}})
    assert [line.split(",")[0] for line in told] == [
        "tools.describe names 'gone'",
        "tools.approve names 'nope'",
        "tools.rename gives the name 'b' to a second tool",
        "tools.defaults gives 'a' the argument 'y'",
    ]


async def test_they_stand_in_the_servers_status(tmp_path: Path) -> None:
    registry = ToolRegistry()
    hub = McpHub({"srv": stdio(tools={"approve": ["ecko"]})}, registry, tmp_path, None)
    await hub.start()
    await until(lambda: hub.servers["srv"].status == "ready")
    standing = hub.servers["srv"].status_line
    await hub.aclose()
    assert "tools.approve names 'ecko'" in standing


def test_keys_that_ask_for_what_is_not_done_are_problems(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    entries = {
        "login": {"url": "https://a.test", "auth": "user"},
        "idle": {"url": "http://b.test", "idle_stop": 300},
        "block": {"command": "x", "pin": "block", "auth": "static"},
        "warn": {"command": "x", "pin": "warn"},
        "typo": {"command": "x", "tools": {"aprove": ["echo"]}},
    }
    path.write_text(json.dumps({"mcpServers": entries}))
    servers, problems = read_servers(path)
    assert sorted(servers) == ["block", "idle"]
    assert servers["block"].pin == "first_use"
    assert [problem.split("'")[1] for problem in problems] == ["login", "idle", "warn", "typo"]
    assert "a caller's token is never forwarded" in problems[0]
    assert "idle_stop" in problems[1]
    assert "first_use" in problems[2]
    assert "tools.aprove" in problems[3]


async def test_the_command_line_tells_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "servers.json"
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", mcp_servers=path)
    monkeypatch.setattr(mcp_servers, "load_command_settings", lambda: settings)
    monkeypatch.setattr(mcp_servers_login, "load_command_settings", lambda: settings)
    async with running(uvicorn.Config(build("good").streamable_http_app(), port=0, log_config=None)) as url:
        path.write_text(json.dumps({"mcpServers": {"srv": {"url": f"{url}/mcp", "idle_stop": 3}}}))
        for words in (["list"], ["test", "srv"]):
            result = await asyncio.to_thread(CliRunner().invoke, mcp_servers.app, words)
            assert result.exit_code == 0, result.output
            assert "idle_stop has no effect: it only stops servers that a `command` starts" in result.output
