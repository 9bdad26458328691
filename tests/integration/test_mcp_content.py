"""What other people's MCP servers return beside text: as it was for who calls by itself, described for plans."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters

from tests.integration.conftest import Serve
from tests.support import warm
from tests.support.conformance_wire import ACCEPT
from tests.support.mcp_client import offered
from tests.support.mcp_server_media import DATA, LINK, SHOWN
from tests.support.processes import ROOT
from tests.support.script import plans, says, script

ERAS = ["2026-07-28", "legacy"]


@pytest.fixture(params=["stdio", "http"])
def entry(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The server in the file of servers, on a process of its own."""
    with offered("mcp_server_media", request.param) as found:
        yield found


@asynccontextmanager
async def gateway(folder: Path, serve: Serve, entry: dict[str, Any], era: str, **options: Any) -> AsyncIterator[Client]:
    """A client of a gateway that has the server's tools."""
    servers = folder / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"srv": {**entry, "trusted": True}}}))
    async with serve(mcp_servers=servers, **options) as url, client_of(url, era) as client:
        yield client


@asynccontextmanager
async def client_of(url: str, era: str) -> AsyncIterator[Client]:
    """A client of the gateway, once the server's tools are there."""
    async with Client(f"{url}/mcp/all", mode=era) as client:
        async with asyncio.timeout(40):
            while not any(  # noqa: ASYNC110 - another process' tools
                tool.name == "srv__show" for tool in (await client.list_tools(cache_mode="bypass")).tools
            ):
                await asyncio.sleep(0.05)
        yield client


def rows(folder: Path, query: str) -> list[str]:
    store = sqlite3.connect(folder / "data" / "stepgate.db")
    found = [str(row[0]) for row in store.execute(query)]
    store.close()
    return found


@pytest.mark.row("Scard-02")
@pytest.mark.parametrize("era", ERAS)
async def test_blocks_come_back_as_they_were_and_the_log_holds_no_bytes(
    tmp_path: Path, serve: Serve, entry: dict[str, Any], era: str
) -> None:
    async with gateway(tmp_path, serve, entry, era) as client:
        direct = await client.call_tool("srv__show", {})
        found = await client.call_tool("tools_call", {"name": "srv__show", "args": {}})
    assert direct.content == SHOWN
    assert found.content == SHOWN
    log = "\n".join(rows(tmp_path, "SELECT data FROM events"))
    assert "image/png, 4,104 bytes: not shown" in log
    assert DATA[:200] not in log


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_too_large_is_left_out_and_said(tmp_path: Path, serve: Serve, era: str) -> None:
    entry = warm.server("tests.support.mcp_server_media", "stdio")
    limits = {"tool_content_bytes": 10_000, "tool_output_chars": 30_000}
    async with gateway(tmp_path, serve, entry, era, **limits) as client:
        some = await client.call_tool("srv__pictures", {"size": 3_000, "count": 3})  # 4,000 bytes each as base64
        words = await client.call_tool("srv__say", {"texts": ["a" * 20_000, "b" * 20_000, "c"]})
        one = await client.call_tool("srv__say", {"texts": ["d" * 28_000]})
    assert [block.type for block in some.content] == ["text", "image", "image", "text"]
    assert "image, image/png, 3,000 bytes: omitted" in text(some.content[3])
    assert "images, audio and files of a result are limited" in text(some.content[3])
    assert text(words.content[0]) == "a" * 20_000
    assert text(words.content[1]).startswith("b" * 4_000 + "\n[cut here; "), "24,000 characters are shown in all"
    assert text(words.content[2]).endswith(" more characters do not fit]")
    assert len(words.content) == 3
    assert text(one.content[0]).endswith("\n[cut here; 4,000 more characters do not fit]"), "nothing else has them"


async def test_an_older_client_is_told_of_blocks_it_could_not_read(tmp_path: Path, serve: Serve) -> None:
    entry = warm.server("tests.support.mcp_server_media", "stdio")
    async with gateway(tmp_path, serve, entry, "legacy") as client:
        url = str(client.server)
        oldest, older = [await of_revision(url, revision) for revision in ("2024-11-05", "2025-03-26")]
    assert [block["type"] for block in oldest] == ["text", "image", "text", "resource", "resource", "text"]
    assert [block["type"] for block in older] == ["text", "image", "audio", "resource", "resource", "text"]
    assert oldest[2]["text"] == "[audio, audio/wav, 4,104 bytes: not shown, because it is not text]"
    assert oldest[5]["text"] == f"[a draft]({LINK})"


async def of_revision(url: str, revision: str) -> list[dict[str, Any]]:
    """The blocks of a call by a client of this revision, as bytes on the wire."""
    hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    call = {"name": "srv__show", "arguments": {}}
    async with httpx.AsyncClient(headers=ACCEPT, timeout=20) as http:
        begun = await http.post(url, json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        http.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        http.headers["mcp-protocol-version"] = revision
        await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        answer = await http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    data = next(line for line in answer.text.splitlines() if line.startswith("data: {"))
    return list(json.loads(data.removeprefix("data: "))["result"]["content"])


async def test_words_of_a_block_lose_secrets_and_bytes_that_hold_one_stay_here(tmp_path: Path, serve: Serve) -> None:
    entry = warm.server("tests.support.mcp_server_media", "stdio")
    secret = "sk-of-the-gateway-0815-4711-0000"
    async with gateway(tmp_path, serve, entry, "legacy", llm_api_key=secret) as client:
        file = await client.call_tool("srv__file", {"codes": [ord(char) for char in f"my KEY={secret}\n"]})
    assert text(file.content[0]) == "my KEY=[removed: CONFIGURED_SECRET]\n"
    told = "[notes://file, application/octet-stream, 40 bytes: omitted: it holds a secret of this gateway]"
    assert text(file.content[1]) == told


@pytest.mark.row("S001-47")
async def test_a_plan_reads_a_description_and_its_run_keeps_no_bytes(
    tmp_path: Path, serve: Serve, entry: dict[str, Any]
) -> None:
    model = script(
        plans({"tool": "srv__show"}, {"tool": "completion"}),
        says("There was a picture.", to="completion", about="image/png, 4,104 bytes: not shown"),
    )
    async with gateway(tmp_path, serve, entry, "legacy", script=model) as client:
        done = await client.call_tool("agent_run", {"task": "search for what there is to see"})
    report: Any = done.structured_content
    assert report["response"] == "There was a picture."
    assert DATA[:200] not in "\n".join(rows(tmp_path, "SELECT data FROM events"))
    assert not [kept for kept in rows(tmp_path, "SELECT data FROM blobs") if DATA[:200] in kept]


def text(block: Any) -> str:
    assert block.type == "text", block
    return str(block.text)


async def test_blocks_are_removed_with_their_owner(tmp_path: Path, serve: Serve) -> None:
    servers = tmp_path / "servers.json"
    with offered("mcp_server_media", "stdio") as entry:
        servers.write_text(json.dumps({"mcpServers": {"srv": entry}}))
        async with serve(mcp_servers=servers) as url, client_of(url, "legacy") as client:
            await client.call_tool("srv__show", {})
            assert len(rows(tmp_path, "SELECT checksum FROM blobs")) == 1
            async with httpx.AsyncClient(timeout=30) as http:
                assert (await http.delete(f"{url}/v1/users/local")).status_code == 200
    assert rows(tmp_path, "SELECT checksum FROM blobs") == []


async def test_a_client_that_starts_the_gateway_itself_gets_them_too(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    done = tmp_path / "done"

    async def record_progress(progress: float, total: float | None, message: str | None) -> None:
        if (message or "").startswith("srv__work: "):
            done.touch()

    program, *arguments = warm.command("gateway.cli", "mcp")
    environment = {"AGENT_DATA_DIR": str(tmp_path / "data"), "AGENT_SKILLS_DIRS": "none"}
    command = StdioServerParameters(command=program, args=arguments, env=environment, cwd=ROOT)
    with offered("mcp_server_media", "http") as entry:
        (tmp_path / "data" / "mcp_servers.json").write_text(json.dumps({"mcpServers": {"srv": entry}}))
        async with Client(command) as client, asyncio.timeout(60):
            found: Any = None
            while found is None or "srv__show" not in [tool["name"] for tool in found["tools"]]:
                found = (await client.call_tool("tools_find", {"query": "srv__show"})).structured_content
            shown = await client.call_tool("srv__show", {})
            read = await client.call_tool("tools_call", {"name": "srv__read_resource", "args": {"uri": LINK}})
            work = {"count": 2, "until": str(done)}
            worked = await client.call_tool("srv__work", work, progress_callback=record_progress)
    assert shown.content == SHOWN
    assert not read.is_error, read.content
    assert text(worked.content[0]) == "worked"
