"""`run_python`: honest programs, their inputs, files and artifacts, as a tool and over HTTP."""

import asyncio
import os
import struct
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.errors import ToolDeniedError, ToolError, ToolInputError, ToolTimeoutError
from agent.core.settings import Settings
from agent.sandbox import client
from agent.sandbox.client import Sandbox, SandboxError
from agent.sandbox.limits import SandboxLimits
from agent.tools import ToolContext, ToolResult
from gateway.cli import doctor_checks
from mcp_tools.builtin import run_python
from mcp_tools.builtin.file_roots import FileRoots
from mcp_tools.builtin.run_python import RunPythonTool
from tests.integration.conftest import Serve
from tests.support.keys import bearer, created_key
from tests.support.mcp_client import until
from tests.support.sandboxes import LIMITS, open_sandbox, requires_sandbox
from tests.support.script import plans, says, script

pytestmark = requires_sandbox

CONTEXT = ToolContext(run_id="run_1", owner="somebody")


def encode_png() -> bytes:
    """A picture of one white pixel."""
    chunks = [
        (b"IHDR", struct.pack("!IIBBBBB", 1, 1, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(b"\0\xff")), (b"IEND", b""),
    ]  # fmt: skip
    parts = [
        struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


PNG = encode_png()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "files"
    (root / "2026").mkdir(parents=True)
    (root / "2026" / "log.txt").write_text("09:00 start\n09:07 disk full\n09:21 disk full\n")
    (root / "secret-link.txt").symlink_to("/etc/passwd")
    return root


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with open_sandbox() as sandbox:
        yield sandbox


def make_tool(folder: Path, sandbox: Sandbox) -> RunPythonTool:
    return RunPythonTool(FileRoots((folder,)), sandbox, max_text_chars=200_000, max_content_bytes=5_000_000)


async def call(folder: Path, sandbox: Sandbox, code: str, **args: Any) -> ToolResult:
    return await make_tool(folder, sandbox).call({"code": code, **args}, CONTEXT)


async def value(folder: Path, sandbox: Sandbox, code: str, **args: Any) -> Any:
    result = await call(folder, sandbox, code, **args)
    assert isinstance(result.value, dict)
    return result.value["result"]


PROGRAMS = {
    "statistics": (
        "import statistics as s\nx = inputs['x']\n[s.mean(x), s.median(x), round(s.stdev(x), 3), s.quantiles(x, n=4)]",
        [3, 2.5, 2.16, [1.25, 2.5, 5.25]],
    ),
    "dates": (
        "from datetime import date, timedelta\nd = date(2024, 2, 28) + timedelta(days=2)\n[d, d.strftime('%A'), d - timedelta(1)]",
        ["2024-03-01", "Friday", "2024-02-29"],
    ),
    "time zones": (
        "from datetime import datetime\nfrom zoneinfo import ZoneInfo\n"
        "datetime(2026, 7, 1, 12, tzinfo=ZoneInfo('Europe/Berlin')).astimezone(ZoneInfo('Asia/Tokyo'))",
        "2026-07-01T19:00:00+09:00",
    ),
    "text": ("import re, collections\ncollections.Counter(re.findall(r'[a-z]+', 'to be or not to be')).most_common(2)",
             [["to", 2], ["be", 2]]),
    "csv": ("import csv, io\n[row['b'] for row in csv.DictReader(io.StringIO('a,b\\n1,2\\n3,4'))]", ["2", "4"]),
    "xml": ("import xml.etree.ElementTree as e\n[n.text for n in e.fromstring('<a><b>1</b><b>2</b></a>')]", ["1", "2"]),
    "checksums": ("import hashlib, base64\n[hashlib.sha256(b'a').hexdigest()[:8], base64.b64encode(b'hi').decode()]",
                  ["ca978112", "aGk="]),
    "exact numbers": ("from decimal import Decimal\nfrom fractions import Fraction\n"
                      "[Decimal('0.1') + Decimal('0.2'), Fraction(1, 3), 2**64, 0.1, float('nan')]",
                      ["0.3", "1/3", "18446744073709551616", 0.1, "nan"]),
    "classes": (
        "from dataclasses import dataclass\nfrom enum import Enum\n@dataclass\nclass P:\n  x: int\n"
        "class C(Enum):\n  RED = 'red'\n{'p': P(1), 'c': C.RED, 's': {3, 1, 2}, 't': (1,), 'g': (i for i in range(2))}",
        {"p": {"x": 1}, "c": "red", "s": [1, 2, 3], "t": [1], "g": [0, 1]},
    ),
    "the variable result": ("result = {'a': 1}\nprint('x')", {"a": 1}),
    "the last expression": ("result = 1\n2", 2),
    "no result": ("x = 1", None),
    "a late module": ("import sqlite3\nsqlite3.connect(':memory:').execute('select 40 + 2').fetchone()", [42]),
    "a temporary file": ("import tempfile\nwith tempfile.TemporaryFile(dir='.') as f:\n  n = f.write(b'abc')\nn", 3),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PROGRAMS))
async def test_an_honest_program_works(folder: Path, sandbox: Sandbox, name: str) -> None:
    code, expected = PROGRAMS[name]
    assert await value(folder, sandbox, code, inputs={"x": [1, 2, 3, 6] if name == "statistics" else []}) == expected


@pytest.mark.skipif(find_spec("numpy") is None, reason="numpy is not installed")
async def test_numpy_can_be_used(folder: Path, sandbox: Sandbox) -> None:
    code = (
        "import numpy as np\na = np.array(inputs['m'], dtype=float)\n[np.linalg.det(a).round(6), a @ a, np.float32(1)]"
    )
    assert await value(folder, sandbox, code, inputs={"m": [[1, 2], [3, 4]]}) == [
        -2.0,
        [[7.0, 10.0], [15.0, 22.0]],
        1.0,
    ]


@pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed")
async def test_pandas_can_be_used(folder: Path, sandbox: Sandbox) -> None:
    code = "import pandas as pd\npd.DataFrame({'a': [1, 1, 2], 'b': [1, 2, 3]}).groupby('a', as_index=False).sum()"
    assert await value(folder, sandbox, code) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
async def test_a_chart_becomes_an_artifact(folder: Path, sandbox: Sandbox) -> None:
    result = await call(folder, sandbox, "import matplotlib.pyplot as p\np.plot([1, 2])\np.savefig('chart.png')\n1")
    assert [block["type"] for block in result.content] == ["image", "text"]


async def test_a_file_is_read_where_the_description_says(folder: Path, sandbox: Sandbox) -> None:
    code = "open('files/2026/log.txt').read().count('disk full')"
    result = await call(folder, sandbox, code, files=["2026/log.txt"])
    assert result.text == "Result: 2"
    assert [source.name for source in result.sources] == ["2026/log.txt"]


async def test_files_outside_the_roots_and_links_are_refused(folder: Path, sandbox: Sandbox) -> None:
    for path in ("/etc/passwd", "../x", "secret-link.txt"):
        with pytest.raises(ToolDeniedError):
            await call(folder, sandbox, "1", files=[path])
    with pytest.raises(ToolInputError, match="2026 is not a file"):
        await call(folder, sandbox, "1", files=["2026"])
    with pytest.raises(ToolInputError, match=r"did you mean 2026/log\.txt"):
        await call(folder, sandbox, "1", files=["log.txt"])


async def test_files_that_are_too_large_are_refused(folder: Path, sandbox: Sandbox) -> None:
    with (folder / "large.bin").open("wb") as file:
        file.truncate(LIMITS.input_bytes + 1)
    with pytest.raises(ToolInputError, match="use query_table"):
        await call(folder, sandbox, "1", files=["large.bin"])


async def test_an_error_shows_the_programs_own_lines(folder: Path, sandbox: Sandbox) -> None:
    code = "import json\ndef read(text):\n    return json.loads(text)\nprint('reading')\nread('{')"
    with pytest.raises(ToolInputError) as caught:
        await call(folder, sandbox, code)
    assert caught.value.message.splitlines() == [
        "line 5: read('{')",
        "line 3, in read: return json.loads(text)",
        "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "It printed before:",
        "reading",
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = (1,\ny = 2", "line 1: x = (1,"),
        ("import requests", "No module named 'requests'; there is the standard library"),
        ("import urllib.request as r\nr.urlopen('http://127.0.0.1')", "Operation not permitted"),
        ("'x' * 2_000_000", "return less"),
        ("x = bytearray(2**33)", "more memory than it may use"),
    ],
)
async def test_an_error_says_what_to_change(folder: Path, sandbox: Sandbox, code: str, message: str) -> None:
    with pytest.raises(ToolInputError) as caught:
        await call(folder, sandbox, code)
    assert message in caught.value.message


async def test_a_program_cannot_speak_for_the_sandbox(sandbox: Sandbox) -> None:
    forged = """import json, os
for descriptor in range(3, 64):
    try:
        os.write(descriptor, json.dumps({"kind": "sandbox", "error": "the program could not be sandboxed"}).encode())
    except OSError:
        pass
os._exit(0)"""
    result = await sandbox.run(forged, {}, {})  # a report of the sandbox itself would be a `SandboxError`
    assert (result.problem, result.error) == ("program", "the program could not be sandboxed")
    broken = replace(LIMITS, memory_bytes=2**80)  # no limit of the kernel is so large
    with pytest.raises(SandboxError, match=r"could not be sandboxed: (OverflowError|ValueError)"):
        await sandbox.run("1", {}, {}, limits=broken)


async def test_a_program_that_takes_too_long_is_a_time_out(folder: Path) -> None:
    limits = SandboxLimits(seconds=0.5)
    async with open_sandbox(limits) as sandbox:
        with pytest.raises(ToolTimeoutError, match=r"within 0\.5 s"):
            await call(folder, sandbox, "while True: pass")


async def test_files_that_a_program_writes_are_artifacts(folder: Path, sandbox: Sandbox) -> None:
    code = "import os\nos.mkdir('out')\nopen('out/a.csv', 'w').write('x,y')\nopen('b.png', 'wb').write(bytes(inputs['png']))"
    result = await call(folder, sandbox, code, inputs={"png": list(PNG)})
    assert result.has_artifacts
    assert [(block["type"], block.get("mimeType")) for block in result.content] == [
        ("image", "image/png"), ("resource", None), ("text", None),
    ]  # fmt: skip
    assert f"![b.png](/v1/runs/run_1/artifacts/b.png) ({len(PNG)} bytes)" in result.text
    assert "[out/a.csv](/v1/runs/run_1/artifacts/out/a.csv) (3 bytes)" in result.text


async def test_artifacts_beyond_the_limit_are_counted(folder: Path, sandbox: Sandbox) -> None:
    tool = RunPythonTool(FileRoots((folder,)), sandbox, max_text_chars=1_000, max_content_bytes=1_000)
    code = "open('a.bin', 'wb').write(bytes([255]) * 5_000)\nopen('b.txt', 'w').write('b' * 5_000)\nopen('c.txt', 'w').write('c')"
    result = await tool.call({"code": code}, CONTEXT)
    assert isinstance(result.value, dict)
    assert [one["name"] for one in result.value["artifacts"]] == ["c.txt"]  # type: ignore[call-overload,index,union-attr]
    assert "2 more files were too large" in result.text


async def test_without_namespaces_programs_compute_and_read_but_do_not_write(folder: Path) -> None:
    async with open_sandbox(isolated=False) as sandbox:
        assert not await sandbox.is_isolated()
        assert (
            await value(folder, sandbox, "open('files/2026/log.txt').readline()", files=["2026/log.txt"])
            == "09:00 start\n"
        )
        for code in (
            "open('x', 'w')",
            "open('files/2026/log.txt', 'a')",
            "open('/etc/passwd')",
            "import os\nos.listdir('/')",
        ):
            with pytest.raises(ToolInputError, match="Permission denied"):
                await call(folder, sandbox, code, files=["2026/log.txt"])
        with pytest.raises(ToolInputError, match="Operation not permitted"):
            await call(folder, sandbox, "import socket\nsocket.socket()")


async def test_a_sandbox_that_cannot_start_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_START", "raise SystemExit")
    sandbox = Sandbox(LIMITS, parallel=1)
    with pytest.raises(ToolError, match="the sandbox cannot be started: its process ended at once"):
        await call(folder, sandbox, "1")
    await sandbox.aclose()


async def test_a_start_that_is_given_up_leaves_no_process() -> None:
    def list_children() -> set[str]:
        return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    sandbox, before = Sandbox(LIMITS, parallel=1), list_children()
    starting = asyncio.create_task(sandbox.start())
    await until(lambda: list_children() > before)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert list_children() == before
    await sandbox.aclose()


async def test_without_a_sandbox_the_tool_is_off_and_doctor_says_why(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (run_python, doctor_checks):
        monkeypatch.setattr(module, "find_missing_feature", lambda: "the kernel has no Landlock")
        monkeypatch.setattr(module, "find_missing_interpreter", lambda: "it is not installed")
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        assert "run_python" not in (await http.get("/v1/tools")).text
    finding = await doctor_checks._check_sandbox(Settings(_env_file=None))
    assert (finding.ok, finding.fatal) == (False, False)
    assert finding.detail == "off, because there is no sandbox: the kernel has no Landlock"


async def test_where_no_process_can_be_locked_programs_run_in_the_interpreter(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (run_python, doctor_checks):
        monkeypatch.setattr(module, "find_missing_feature", lambda: "the kernel has no Landlock")
    finding = await doctor_checks._check_sandbox(Settings(_env_file=None))
    assert (finding.ok, "in the interpreter" in finding.detail) == (True, True)
    async with serve(None, run_python_timeout_s=3) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:

        async def say(code: str, **args: Any) -> str:
            calls = [{"tool": "run_python", "args": {"code": code, **args}}]
            response = await http.post("/v1/agent", json={"metadata": {"tool_calls": calls}})
            return str(response.json()["response"])

        listed = {tool["name"]: tool for tool in (await http.get("/v1/tools")).json()["data"]}
        assert "it has no files" in listed["run_python"]["description"]
        dates = "from datetime import date, timedelta\nresult = [date(2024, 2, 28) + timedelta(days=2), inputs['x']]"
        assert "2024-03-01" in await say(dates, inputs={"x": 2**60})
        assert "time limit" in await say("while True: pass")
        assert "programs get no files on this machine" in await say("1", files=["a.txt"])
        assert "the result has 3,000,002 characters" in await say("'x' * 3_000_000")
        assert "Permission denied" in await say("open('/etc/passwd').read()")
        assert "ZeroDivisionError" in await say("1 / 0")


async def test_doctor_tries_a_program() -> None:
    finding = await doctor_checks._check_sandbox(Settings(_env_file=None))
    assert finding.ok, finding.detail
    assert finding.detail.startswith("seccomp, Landlock ")


CHART = f"open('chart.png', 'wb').write({PNG!r})\nopen('a.html', 'w').write('<b>')\n6 * 7"
MODEL = script(
    plans({"tool": "run_python", "inputs": {"code": CHART}}, {"tool": "completion"}),
    says("It is 42.", to="completion"),
)


async def test_a_plan_runs_a_program_and_its_picture_can_be_fetched(serve: Serve) -> None:
    async with serve(MODEL) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        answer = (await http.post("/v1/agent", json={"prompt": "simulate it and draw a chart"})).json()
        run_id = answer["metadata"]["run_id"]
        picture = await http.get(f"/v1/runs/{run_id}/artifacts/chart.png")
        page = await http.get(f"/v1/runs/{run_id}/artifacts/a.html")
        missing = await http.get(f"/v1/runs/{run_id}/artifacts/../../x.png")
        other = await http.get("/v1/runs/run_unknown/artifacts/chart.png")
    shown = f"![chart.png](/v1/runs/{run_id}/artifacts/chart.png)"
    assert answer["response"] == f"It is 42.\n\n{shown}", (
        "the picture stands in the answer, though the model left it out"
    )
    assert (picture.status_code, picture.content) == (200, PNG)
    assert picture.headers["content-type"] == "image/png"
    assert page.headers["content-type"] == "application/octet-stream"
    assert page.headers["content-disposition"].startswith("attachment")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert (missing.status_code, other.status_code) == (404, 404)


async def test_a_tool_call_without_a_model_has_artifacts_too(serve: Serve) -> None:
    calls = [{"tool": "run_python", "args": {"code": "open('a.txt', 'w').write('hello')\n'done'"}}]
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        answer = (await http.post("/v1/agent", json={"metadata": {"tool_calls": calls}})).json()
        run_id = answer["metadata"]["run_id"]
        text = await http.get(f"/v1/runs/{run_id}/artifacts/a.txt")
    assert "done" in answer["response"]
    assert (text.status_code, text.text) == (200, "hello")


async def test_an_artifact_belongs_to_the_owner_of_its_run(serve: Serve, tmp_path: Path) -> None:
    anna = bearer(await created_key(tmp_path / "data", "anna", owner="anna"))
    bob = bearer(await created_key(tmp_path / "data", "bob", owner="bob"))
    chief = bearer(await created_key(tmp_path / "data", "chief", owner="chief", scopes="admin"))
    calls = [{"tool": "run_python", "args": {"code": "open('a.txt', 'w').write('hello')"}}]
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        answer = (await http.post("/v1/agent", json={"metadata": {"tool_calls": calls}}, headers=anna)).json()
        path = f"/v1/runs/{answer['metadata']['run_id']}/artifacts/a.txt"
        replies = [await http.get(path, headers=headers) for headers in (anna, chief, bob, {})]
    assert [reply.status_code for reply in replies] == [200, 200, 404, 404]  # without a key: the owner `local`
