"""Lines of foreign MCP servers over stdio: other text beside messages, notices at the start, errors without an id."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from mcp_types import JSONRPCResponse

from agent.core.errors import ToolError
from mcp_tools.client.lenient_messages import IndentedMessages, parse_line
from tests.integration.test_mcp_malformed import CONTEXT, TEXT, call, server_of
from tests.support.mcp_client import until
from tests.support.mcp_raw_program import ECHO

CHANGED = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}) + "\n"


async def test_a_change_that_is_announced_during_the_start_is_seen(tmp_path: Path) -> None:
    script = {
        "lines tools/list": [CHANGED],
        "then tools/list": {
            "lines tools/list": [], "tools/list": {"result": {"tools": [ECHO, {**ECHO, "name": "later"}]}},
        },
    }  # fmt: skip
    async with server_of(tmp_path, "stdio", script) as (_, registry):
        await until(lambda: "srv__later" in registry)


async def test_an_error_without_an_id_answers_the_only_call(tmp_path: Path) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "disk is full"}}
    script: dict[str, Any] = {"lines tools/call": [json.dumps(error) + "\n"], "sleep tools/call": 0}
    with pytest.raises(ToolError, match="MCP server 'srv': disk is full"):
        await call(tmp_path, {"id": "none"}, **script)


async def test_an_error_without_an_id_about_a_notification_costs_nothing(tmp_path: Path) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no notifications/initialized"}}
    script: dict[str, Any] = {"lines notifications/initialized": [json.dumps(error) + "\n"]}
    async with server_of(tmp_path, "stdio", script) as (server, registry):
        assert server.status == "ready"
        assert (await registry.get("srv__echo").call({}, CONTEXT)).text == "done"


@pytest.mark.parametrize(
    "text",
    [
        "50 % [=====     ]",
        "\u001b[2K\u001b[1Gdone {so far} ",
        '{"level": "info", "id": 7, "message": "a log of its own"} ',
        "{" * 3 + '{"broken": ',
        json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}),
    ],
)
async def test_a_message_behind_other_text_of_its_line_is_read(tmp_path: Path, text: str) -> None:
    script: dict[str, Any] = {"lines tools/list": [text], "lines tools/call": [text]}
    assert (await call(tmp_path, {"result": {"content": [TEXT]}}, **script)).text == "kept"


@pytest.mark.parametrize("indent", [1, 2, "\t"])
@pytest.mark.parametrize("is_batch", [False, True])
def test_a_message_over_several_lines_is_read(indent: int | str, is_batch: bool) -> None:
    body: Any = {"jsonrpc": "2.0", "id": 7, "result": {"content": [TEXT], "structuredContent": {}}}
    text = json.dumps([body] if is_batch else body, indent=indent)
    indented = IndentedMessages()
    noise = [b"starting {", b"}", b'{"not": ', b"["]
    outcomes = [indented.add_line(line) for line in [*noise, *text.encode().split(b"\n"), b"} trailing"]]
    assert outcomes[:3] == [[], [], []]
    assert outcomes[3:-2] == [None] * (len(outcomes) - 5)
    assert outcomes[-1] == [], "what follows is no part of it"
    assert outcomes[-2] is not None
    (message,) = outcomes[-2]
    assert isinstance(message, JSONRPCResponse)
    assert (message.id, message.result) == (7, body["result"])


async def test_a_server_that_indents_its_messages_is_used(tmp_path: Path) -> None:
    script: dict[str, Any] = {"indent": 2}
    async with server_of(tmp_path, "stdio", script) as (server, registry):
        assert server.status == "ready", server.reason
        assert (await registry.get("srv__echo").call({}, CONTEXT)).text == "done"


def test_a_line_without_a_message_is_searched_in_bounded_time() -> None:
    started = monotonic()
    assert parse_line(b'{"a": ' * 500_000) == []
    assert parse_line(b'{"a": 1} ' * 500_000) == []
    assert monotonic() - started < 5
