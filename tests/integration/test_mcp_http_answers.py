"""HTTP answers of foreign MCP servers that the SDK refuses, although the call has had its effect: other media types and
ids, batches, refusals in plain words."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ToolError, ToolOutcomeUnknownError
from agent.tools import ToolRegistry
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.hub import McpHub
from tests.integration.test_mcp_malformed import CONTEXT, listed, raw_server_of, server_of
from tests.support.mcp_client import until
from tests.support.mcp_raw_program import ECHO
from tests.support.mcp_server_raw import WRITTEN, Endless, RawHttpServer

RESULT = '"result": {"content": [{"type": "text", "text": "kept"}]}'
ANSWER = f'{{"jsonrpc": "2.0", "id": ID, {RESULT}}}'
ANSWERS: list[tuple[str, str]] = [
    ("text/plain", ANSWER),
    ("", ANSWER),
    ("application/json-rpc; charset=utf-8", ANSWER),
    ("application/json", f"[{ANSWER}]"),
    ("application/json", f'[{{"jsonrpc": "2.0", "method": "notifications/message"}}, {ANSWER}]'),
    ("application/json", ANSWER.replace("ID", '"ID"')),
    ("application/json", ANSWER.replace("ID", "null")),
    ("application/json", ANSWER.replace("ID", "99999")),
    ("application/json", f"{{{RESULT}}}"),
    ("application/json", "\u00ef\u00bb\u00bf" + ANSWER),
    ("application/octet-stream", f"event: message\ndata: {ANSWER}\n\n"),
    ("text/plain", f"data: {ANSWER}\n\n"),
    ("text/event-stream", f"event: response\ndata: {ANSWER}\n\n"),
    ("text/event-stream", f"id: 1\nevent: result\nretry: 5\ndata: {ANSWER}\n\n"),
    ("text/event-stream", f"event: ping\n\nevent: ping\ndata: {{}}\n\nevent: message\ndata: {ANSWER}\n\n"),
    ("text/event-stream", "\u00ef\u00bb\u00bf" + f"data: {ANSWER}\n\n"),
    ("text/event-stream", f"event: message\rdata: {ANSWER}\r\r"),
    ("text/event-stream", f'event: status\ndata: {{"id": ID, "status": "queued"}}\n\ndata: {ANSWER}\n\n'),
    ("text/event-stream", f'event: progress\ndata: {{"id": ID, "result": "50%"}}\n\ndata: {ANSWER}\n\n'),
    ("text/event-stream", f'event: log\ndata: {{"level": "warning", "error": "slow"}}\n\ndata: {ANSWER}\n\n'),
    ("text/event-stream", f"event: error\ndata: it is tried again\n\ndata: {ANSWER}\n\n"),
    ("application/x-ndjson", f'{{"jsonrpc": "2.0", "method": "notifications/message"}}\n{ANSWER}\n'),
    ("application/json", f"{ANSWER.replace('ID', '99999').replace('kept', 'other')}\n{ANSWER}\n"),
]


def script_of(replies: list[Any]) -> dict[str, Any]:
    tools = [{**ECHO, "name": f"t{number}"} for number in range(len(replies))]
    return {**listed(*tools), **{f"tools/call t{number}": {WRITTEN: reply} for number, reply in enumerate(replies)}}


async def test_an_answer_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    async with server_of(tmp_path, "json", script_of([(200, *answer) for answer in ANSWERS])) as (_, registry):
        for number, answer in enumerate(ANSWERS):
            assert (await registry.get(f"srv__t{number}").call({}, CONTEXT)).text == "kept", answer


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (200, "application/json", Endless('{"jsonrpc": "2.0"')),
        (200, "application/json", Endless('{"jsonrpc": "2.0"', is_packed=True)),
        (200, "text/event-stream", Endless('data: {"jsonrpc": "2.0"')),
        (200, "text/event-stream", Endless('data: {"jsonrpc": "2.0"', is_packed=True)),
        (500, "application/json", Endless('{"error": "no such note"')),
        (403, "text/plain", Endless("no")),
    ],
    ids=["a body", "a bomb", "an event", "a bomb of events", "a failure", "a refusal"],
)
async def test_an_answer_that_never_ends_fails_and_the_next_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, kind: str, body: Endless
) -> None:
    for module in ("bounded_bodies", "lenient_http"):
        monkeypatch.setattr(f"mcp_tools.client.{module}.MAX_MESSAGE_BYTES", 4 * 2**20)
    script = script_of([(status, kind, body), (200, *ANSWERS[0])])
    async with raw_server_of(tmp_path, script) as (_, registry):
        async with asyncio.timeout(4):  # before the time limit of the call
            with pytest.raises(ToolError, match=r"more than|HTTP 500|HTTP 403"):
                await registry.get("srv__t0").call({}, CONTEXT)
        assert (await registry.get("srv__t1").call({}, CONTEXT)).text == "kept"


async def test_letters_of_an_older_encoding_are_read(tmp_path: Path) -> None:
    reply = (200, "application/json", ANSWER.replace("kept", "Größe"))  # sent as Latin-1
    async with server_of(tmp_path, "json", script_of([reply])) as (_, registry):
        assert (await registry.get("srv__t0").call({}, CONTEXT)).text == "Größe"


REFUSALS: list[tuple[tuple[int, str, str], str]] = [
    ((429, "text/plain", "quota of this month is used up"), "quota of this month is used up (HTTP 429)"),
    ((500, "application/json", '{"error": "no such note"}'), "no such note (HTTP 500)"),
    ((422, "application/problem+json", '{"title": "Closed", "detail": "the account is closed"}'), "account is closed"),
    ((400, "application/json", '{"message": "the date is in the past"}'), "the date is in the past"),
    ((503, "application/json", '{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "down"}}'), "down"),
    ((503, "text/plain", "Service Unavailable"), "HTTP 503 and gives no reason"),
    ((502, "text/html", "<h1>Bad Gateway</h1>"), "HTTP 502 and gives no reason"),
    ((500, "application/json", "{broken"), "HTTP 500 and gives no reason"),
    ((200, "text/html", "<h1>Log in</h1>"), "text/html"),
    ((200, "text/event-stream", 'event: error\ndata: {"detail": "worker crashed"}\n\n'), "'srv': worker crashed"),
    ((200, "text/event-stream", "event: error\ndata: worker crashed\n\n"), "'srv': worker crashed"),
]


@pytest.mark.parametrize(("reply", "words"), REFUSALS)
async def test_a_refusal_reaches_the_caller_in_the_servers_words(
    tmp_path: Path, reply: tuple[int, str, str], words: str
) -> None:
    async with server_of(tmp_path, "json", script_of([reply])) as (_, registry):
        with pytest.raises(ToolError) as raised:
            await registry.get("srv__t0").call({}, CONTEXT)
        assert words in raised.value.message


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (
            "application/json",
            '{"jsonrpc": "2.0", "id": ID, "error": {"code": -32000, "message": "Browser session 17 does not exist"}}',
            "Browser session 17 does not exist",
        ),
        ("application/json", '{"error": "session not found"}', "session not found"),
        ("text/plain", "the session of parliament is over", "the session of parliament is over"),
        ("text/html", "<h1>No</h1>", "and gives no reason"),
    ],
)
async def test_a_refusal_in_a_session_that_the_server_knows_is_the_calls_own(
    tmp_path: Path, status: int, kind: str, body: str, words: str
) -> None:
    async with raw_server_of(tmp_path, script_of([(status, kind, body)])) as (raw, registry):
        with pytest.raises(ToolError, match=words) as raised:
            await registry.get("srv__t0").call({}, CONTEXT)
        assert "our session" not in raised.value.message
        assert raw.list_methods().count("tools/call") == 1


async def test_a_forbidden_call_says_why_beside_what_to_do(tmp_path: Path) -> None:
    protocol = '{"jsonrpc": "2.0", "id": ID, "error": {"code": -32000, "message": "This repository is archived"}}'
    replies = [
        (403, "application/json", protocol),
        (403, "application/json", '{"message": "This repository is archived"}'),
        (403, "text/html", "<h1>Forbidden</h1>"),
    ]
    messages = []
    async with server_of(tmp_path, "json", script_of(replies)) as (_, registry):
        for number in range(len(replies)):
            with pytest.raises(ToolError) as raised:
                await registry.get(f"srv__t{number}").call({}, CONTEXT)
            messages.append(raised.value.message)
    assert messages[0] == "MCP server 'srv': This repository is archived"
    assert "rejects our credential with HTTP 403 (This repository is archived): check `headers`" in messages[1]
    assert "rejects our credential with HTTP 403: check `headers`" in messages[2]


@pytest.mark.parametrize("session", ["", "s1"])
async def test_a_passing_404_of_a_proxy_takes_no_tool_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: str
) -> None:
    for name, seconds in (("RELIST_SECONDS", 0.2), ("PIN_POLL_SECONDS", 0.1), ("LIST_PAUSE_S", 0.0)):
        monkeypatch.setattr(f"mcp_tools.client.hub.{name}", seconds)
    raw, registry = RawHttpServer(session=session), ToolRegistry()
    async with raw.serve():
        hub = McpHub({"srv": McpServerConfig.model_validate({"url": raw.url})}, registry, tmp_path, None)
        await hub.start()
        try:
            await until(lambda: hub.servers["srv"].status == "ready")
            raw.script["tools/list"] = {WRITTEN: (404, "text/html", "<h1>not here</h1>")}
            await until(lambda: hub.servers["srv"].status == "down" or "srv__echo" not in registry)
            assert "srv__echo" in registry
            assert "404" in hub.servers["srv"].reason
            del raw.script["tools/list"]
            await until(lambda: hub.servers["srv"].status == "ready")
            assert hub.servers["srv"].status_line == "ready, 1 tool"
        finally:
            await hub.aclose()


async def test_a_server_that_says_with_404_that_it_knows_no_tools_is_used_without(tmp_path: Path) -> None:
    body = '{"jsonrpc": "2.0", "id": ID, "error": {"code": -32601, "message": "Method not found"}}'
    script = {"tools/list": {WRITTEN: (404, "application/json", body)}}
    async with server_of(tmp_path, "json", script) as (server, _):
        assert server.status_line == "ready, 0 tools: it offers no tools of its own"


@pytest.mark.parametrize("reply", [(202, "", ""), (200, "application/xml", "<done/>")])
async def test_a_call_whose_answer_cannot_be_read_has_an_unknown_outcome(
    tmp_path: Path, reply: tuple[int, str, str]
) -> None:
    async with server_of(tmp_path, "json", script_of([reply])) as (_, registry):
        with pytest.raises(ToolOutcomeUnknownError, match="no answer that can be read"):
            await registry.get("srv__t0").call({}, CONTEXT)


async def test_notices_in_another_form_fill_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    notices: list[tuple[str, Any]] = [
        ("progress", {"progress": 1}),
        ("progress", {"progressToken": "x", "progress": "50%"}),
        ("progress", None),
        ("message", {"level": "trace", "data": "kept in the log"}),
        ("message", {"level": "info", "logger": 7, "data": "also kept"}),
        ("message", {"level": "info"}),
        ("whatever", {"a": 1}),
    ]
    heads = [{"jsonrpc": "2.0", "method": f"notifications/{name}", "params": params} for name, params in notices]
    events = "".join(f"data: {json.dumps(head)}\n\n" for head in heads)
    reply = (200, "text/event-stream", f"{events}data: {ANSWER}\n\n")
    async with server_of(tmp_path, "json", script_of([reply])) as (_, registry):
        assert (await registry.get("srv__t0").call({}, CONTEXT)).text == "kept"
    assert "Failed to validate" not in caplog.text
    assert "kept in the log" in caplog.text
    assert "also kept" in caplog.text
