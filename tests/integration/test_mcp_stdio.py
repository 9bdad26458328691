"""A foreign MCP server as a child process that floods, breaks off, lives on or lies in its bytes: all of it bounded."""

import asyncio
import logging
import os
import resource
import sys
from pathlib import Path
from time import monotonic

import pytest

from agent.core.errors import ToolError
from mcp_tools.client import stdio as transport
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.transports import make_client

SERVER = """
import json, os, subprocess, sys, threading, time
how = sys.argv[1]
def say(answer):
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()
def flood(stream, text):
    while True:
        stream.write(text)
        stream.flush()
if how == "ends":
    sys.stderr.write("loading\\nNo module named 'gizmo'\\x1b[31m\\n")
    raise SystemExit(3)
if how == "stderr":
    threading.Thread(target=flood, args=(sys.stderr, "e" * 9999 + "\\n"), daemon=True).start()
if how == "junk":
    flood(sys.stdout, "not a message\\n" * 100)
if how == "endless":
    flood(sys.stdout, "x" * 100_000)
if how == "family":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(sys.argv[2], "w").write(f"{os.getpid()} {child.pid}")
if how == "stubborn":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(sys.argv[2], "w").write(f"{os.getpid()}")
print("hello, I am a banner")
for line in sys.stdin:
    asked = json.loads(line)
    number, method = asked.get("id"), asked.get("method")
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "s", "version": "1"}
        say({"jsonrpc": "2.0", "id": number, "result":
            {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        schema = {"type": "object"}
        say({"jsonrpc": "2.0", "id": number, "result": {"tools": [{"name": "t\\u00e9", "inputSchema": schema}]}})
    elif number is not None:
        say({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}})
if how == "stubborn":
    time.sleep(600)
"""


@pytest.fixture
def server(tmp_path: Path) -> Path:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    return script


def config(server: Path, how: str, *words: str) -> McpServerConfig:
    return McpServerConfig(transport="stdio", command=sys.executable, args=(str(server), how, *words), timeout=5)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):  # it may end between the two
        return False


async def gone(pids: list[int]) -> bool:
    until = monotonic() + 5
    while any(alive(pid) for pid in pids) and monotonic() < until:  # noqa: ASYNC110 - another process'
        await asyncio.sleep(0.02)
    return not any(alive(pid) for pid in pids)


async def test_a_banner_before_the_first_message_is_no_fault(server: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with make_client("srv", config(server, "good")) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["té"]
    assert ["a banner" in record.message for record in caplog.records if "invalid messages" in record.message] == [True]


async def test_a_flood_of_standard_error_is_heard_in_part_and_stops_nobody(
    server: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with make_client("srv", config(server, "stderr")) as client:
        await asyncio.sleep(0.5)
        assert len((await client.list_tools()).tools) == 1
    said = [
        record.message for record in caplog.records if record.name == transport.__name__ and "eee" in record.message
    ]
    assert 0 < len(said) <= transport.LOGGED_LINES_PER_MINUTE
    assert max(map(len, said)) < 400


@pytest.mark.parametrize("how", ["junk", "endless"])
async def test_a_flood_of_standard_output_costs_neither_time_nor_log(
    server: Path, how: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_MESSAGE_BYTES", 8 * 1024 * 1024)
    monkeypatch.setattr(transport, "SHUTDOWN_GRACE_S", 0.2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    with pytest.raises((ToolError, TimeoutError)) as caught:
        async with asyncio.timeout(2), make_client("srv", config(server, how)):
            raise AssertionError("it never answers")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 1.5
    assert sum(len(record.message) for record in caplog.records) < 2000
    if how == "endless":
        assert "more than 8 MB" in str(caught.value)


async def test_one_that_ends_by_itself_has_its_last_words_told(server: Path) -> None:
    with pytest.raises(ToolError) as caught:
        async with make_client("srv", config(server, "ends")):
            raise AssertionError("it never answers")
    assert "exit code 3; its last output: loading / No module named 'gizmo'" in str(caught.value)
    assert "\x1b" not in str(caught.value)


async def test_what_a_server_has_started_ends_with_it(server: Path, tmp_path: Path) -> None:
    told = tmp_path / "pids"
    async with make_client("srv", config(server, "family", str(told))) as client:
        await client.list_tools()
        pids = [int(pid) for pid in told.read_text().split()]
        assert all(alive(pid) for pid in pids)
    assert await gone(pids)


async def test_one_that_will_not_end_is_killed_also_when_who_waits_is_cancelled_twice(
    server: Path, tmp_path: Path
) -> None:
    told = tmp_path / "pids"
    connected = asyncio.Event()

    async def hold() -> None:
        async with make_client("srv", config(server, "stubborn", str(told))):
            connected.set()
            await asyncio.sleep(600)

    holding = asyncio.create_task(hold())
    async with asyncio.timeout(20):
        await connected.wait()
    began = monotonic()
    holding.cancel()
    await asyncio.sleep(0.3)  # it is waiting for the server's end now
    holding.cancel()
    await asyncio.wait([holding], timeout=10)
    assert holding.cancelled()
    assert monotonic() - began < 2 * transport.SHUTDOWN_GRACE_S, "the second word is heard"
    assert await gone([int(told.read_text())])
