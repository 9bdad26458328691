"""What the conformance suite relies on, checked without Node: each seam of the MCP server over the real protocol."""

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
from mcp import Client
from mcp.server.streamable_http import EventMessage
from mcp_types import ElicitRequestParams, ElicitResult, JSONRPCNotification

from agent.core.key_file import load_or_create_key
from mcp_tools.server.sessions import SessionEventLog
from tests.conformance import run
from tests.conformance.results import Outcome, Scenario, outcome_of, required, table
from tests.integration.conftest import Serve
from tests.support.conformance_wire import ACCEPT, META, modern, session_of_2025


@pytest.fixture
async def fixtures(tmp_path: Path) -> AsyncIterator[str]:
    """A gateway with the suite's fixtures."""
    async with run.gateway_with_fixtures(tmp_path / "data") as url:
        yield url


async def test_the_product_has_no_fixtures(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp/all") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert not [name for name in [*names, *prompts, *resources] if name.startswith("test")]


async def test_a_client_can_discover_the_server_and_how_long_lists_hold(serve: Serve) -> None:
    async with serve() as url:
        found = (await modern(url, "server/discover", {}))["result"]
        tools = (await modern(url, "tools/list", {}))["result"]
        resources = (await modern(url, "resources/list", {}))["result"]
        missing = (await modern(url, "resources/read", {"uri": "test://none"}))["error"]
    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "stepgate"
    assert found["capabilities"]["tools"] == {"listChanged": True}
    assert found["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert "io.modelcontextprotocol/skills" in found["capabilities"]["extensions"]
    assert (tools["ttlMs"], tools["cacheScope"], tools["resultType"]) == (5_000, "private", "complete")
    assert resources["ttlMs"] == 0
    assert (missing["code"], missing["data"]) == (-32602, {"uri": "test://none"})


async def test_blanks_around_a_header_are_no_part_of_it(serve: Serve) -> None:
    async with serve() as url:
        call = {"name": "calculator", "arguments": {"expression": "6*7"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": META, **call}}
        headers = {**ACCEPT, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}
        async with aiohttp.ClientSession() as client:  # httpx would not send blanks
            spaced = {**headers, "mcp-name": " calculator \t "}
            async with client.post(f"{url}/mcp", json=body, headers=spaced) as answer:
                blanks = await answer.json()
        other = await modern(url, "tools/call", call, {"mcp-name": "current_time"})
    assert blanks["result"]["structuredContent"]["value"] == "42"
    assert other["error"]["code"] == -32020


async def test_run_ids_are_completed(serve: Serve) -> None:
    async with serve() as url, Client(f"{url}/mcp/all") as client:
        report: Any = (await client.call_tool("agent_run", {"task": "what is 6*7"})).structured_content
        run_id = report["run_id"]
        template = {"type": "ref/resource", "uri": "run://{run_id}/report"}
        prompt = {"type": "ref/prompt", "name": "summarize"}
        asked = [(template, "run_id", "run_"), (template, "run_id", "x"), (prompt, "task", "a")]
        begun, other, free = [
            await modern(url, "completion/complete", {"ref": ref, "argument": {"name": name, "value": value}})
            for ref, name, value in asked
        ]
    assert begun["result"]["completion"] == {"values": [run_id], "total": 1, "hasMore": False}
    assert other["result"]["completion"]["values"] == free["result"]["completion"]["values"] == []


async def test_a_round_goes_on_after_a_restart_and_no_state_can_be_made_up(tmp_path: Path) -> None:
    call: dict[str, Any] = {"name": "test_input_required_result_request_state", "arguments": {}}
    async with run.gateway_with_fixtures(tmp_path / "data") as url:
        asked = (await modern(url, "tools/call", call))["result"]
    answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
    state = asked["requestState"]
    async with run.gateway_with_fixtures(tmp_path / "data") as url:
        done = await modern(url, "tools/call", {**call, "inputResponses": answers, "requestState": state})
        forged = await modern(url, "tools/call", {**call, "inputResponses": answers, "requestState": f"{state}x"})
    async with run.gateway_with_fixtures(tmp_path / "other") as url:
        foreign = await modern(url, "tools/call", {**call, "inputResponses": answers, "requestState": state})
    assert asked["resultType"] == "input_required"
    assert "asked" not in state
    assert done["result"]["content"][0]["text"] == "state-ok"
    assert forged["error"]["code"] == foreign["error"]["code"] == -32602


async def test_the_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "key"
    keys = await asyncio.gather(*(asyncio.to_thread(load_or_create_key, path) for _ in range(8)))
    assert len(set(keys)) == 1
    assert len(bytes.fromhex(keys[0])) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["key"]


async def test_a_user_is_asked_in_both_eras(fixtures: str) -> None:
    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ada", "username": "ada", "email": "a@example.org"})

    async with Client(f"{fixtures}/mcp", mode="legacy", elicitation_callback=answer) as client:
        old = await client.call_tool("test_elicitation", {"message": "Who?"})
    async with Client(f"{fixtures}/mcp", mode="2026-07-28", elicitation_callback=answer) as client:
        new = await client.call_tool("test_input_required_result_elicitation", {})
    assert old.content[0].type == new.content[0].type == "text"
    assert "ada" in old.content[0].text
    assert new.content[0].text == "Hello, Ada!"


COMPLETED = "Reconnection test completed"


async def test_a_session_resumes_its_own_stream_and_no_other(fixtures: str) -> None:
    first, second = [await session_of_2025(fixtures) for _ in range(2)]
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
    params = {"name": "test_reconnection", "arguments": {}}
    async with httpx.AsyncClient(timeout=20) as client:
        closed = await client.post(f"{fixtures}/mcp", json={**call, "params": params}, headers=first)
        marks = [line.removeprefix("id: ") for line in closed.text.splitlines() if line.startswith("id: ")]
        own = await _resumed(client, fixtures, {**first, "last-event-id": marks[-1]}, seconds=20)
        foreign = await _resumed(client, fixtures, {**second, "last-event-id": marks[-1]}, seconds=0.5)
    assert COMPLETED not in closed.text
    assert COMPLETED in own
    assert COMPLETED not in foreign


async def _resumed(client: httpx.AsyncClient, url: str, headers: dict[str, str], *, seconds: float) -> str:
    """What the stream brings within these seconds, up to the end of the call; it stays open for what may come."""
    text = ""
    try:
        async with asyncio.timeout(seconds), client.stream("GET", f"{url}/mcp", headers=headers) as stream:
            async for piece in stream.aiter_text():
                text += piece
                if COMPLETED in text:
                    break
    except TimeoutError:
        pass
    return text


async def test_the_log_of_a_session_keeps_the_newest_of_each_stream() -> None:
    kept = SessionEventLog(max_events=4)
    message = JSONRPCNotification(jsonrpc="2.0", method="notifications/message")
    first = await kept.store_event("1", None)
    for stream in ("1", "2", "1"):
        await kept.store_event(stream, message)
    assert await _replay(kept, first) == ("1", ["2", "4"])
    await kept.store_event("1", message)
    assert await _replay(kept, first) == (None, []), "forgotten"
    assert await _replay(kept, "2") == ("1", ["4", "5"])
    assert await _replay(kept, "made up") == (None, [])
    small = SessionEventLog(max_chars=10)
    marks = [await small.store_event("1", message) for _ in range(3)]
    assert await _replay(small, marks[0]) == (None, [])
    assert await _replay(small, marks[2]) == ("1", [])
    assert not [entry for entry in small._entries if entry.message is not None], "no more than it may hold"


async def _replay(kept: SessionEventLog, after: str) -> tuple[str | None, list[str]]:
    sent: list[str] = []

    async def send(event: EventMessage) -> None:
        sent.append(event.event_id or "")

    return await kept.replay_events_after(after, send), sent


def test_the_verdict_of_the_suite_is_read_as_it_was_meant() -> None:
    scenario = Scenario("2026-07-28", "caching", required=True)
    good, bad = {"id": "a", "status": "SUCCESS"}, {"id": "b", "status": "FAILURE", "errorMessage": "no ttl"}
    skipped = {"id": "c", "status": "SKIPPED"}
    assert required("server:\n  - ping\n  - caching\nclient:\n  - x\n") == ["ping", "caching"]
    assert outcome_of(scenario, [good], 0).mark == "pass"
    shape = {"id": "wire-schema-valid", "status": "SUCCESS"}
    assert outcome_of(scenario, [skipped, shape], 0).mark == "n/a "
    assert not outcome_of(scenario, [good], 1).passed
    assert not outcome_of(scenario, [], 0).passed
    failed = outcome_of(scenario, [good, bad], 1)
    assert failed.faults == ("FAILURE b: no ttl",)
    optional = Outcome(Scenario("2026-07-28", "tasks-lifecycle", required=False))
    lines = table([failed, optional]).splitlines()
    assert lines[2] == "| 2026-07-28 | 1 | 0 | 1 | 1 | 0 |"
    assert lines[-1].startswith("| 2026-07-28 | tasks-lifecycle | no | FAIL |")


def test_without_npm_the_run_says_why_it_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["run", "--folder", str(tmp_path / "suite")])
    assert run.main() == 0
    assert "skipped: npm or node is not installed" in capsys.readouterr().out
