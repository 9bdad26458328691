"""The engine inside serves a model file, ends with its gateway, starts again when it dies, and names a bad file.

The model is llama.cpp's with random weights: what it writes means nothing.
"""

import asyncio
import os
import signal
import stat
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from agent.core.errors import ConfigError, ModelTimeoutError, ModelUnreachableError
from agent.core.settings import Settings
from agent.llm.port import ModelRequest
from gateway.bootstrap_models import build_models
from gateway.local_engine import EngineOptions, LocalEngine, LocalModelClient, engine, model_file
from gateway.local_engine.model_file import check_model_file
from tests.integration.test_cli import stepgate
from tests.support.processes import GatewayProcess
from tests.support.serving import serving
from tests.support.tiny_gguf import write_tiny_gguf

SECONDS = 120.0
"""A start takes half a second on a quiet machine."""
REQUEST = ModelRequest("tiny", ({"role": "user", "content": "hi"},), "probe", max_tokens=4, timeout_s=SECONDS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path / "tiny.gguf")


@pytest.fixture
async def client(file: Path) -> AsyncIterator[LocalModelClient]:
    client = LocalModelClient(LocalEngine(EngineOptions(file, "tiny", context=256, threads=1, slots=1)))
    yield client
    await client.aclose()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path(f"/proc/{pid}/stat").read_text().split(")")[1].startswith(" Z")


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so():  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.02)


async def wait_until_gone(pid: int) -> None:
    await wait_until(lambda: not is_running(pid))


async def test_the_first_call_loads_the_file_and_its_socket_is_this_users_only(client: LocalModelClient) -> None:
    await client.check()
    assert client.describe() == "stopped", "a check loads nothing"
    reply = await client.complete(REQUEST)
    assert (reply.usage.completion_tokens, reply.model) == (4, "tiny")
    assert client.describe().startswith("ready, loaded in ")
    chunks = [chunk async for chunk in client.stream(REQUEST)]
    assert any(chunk.usage for chunk in chunks)

    folder = Path(client.engine.socket).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=client.engine.socket)) as stranger:
        body = {"messages": [{"role": "user", "content": "hi"}]}
        assert (await stranger.post("http://localhost/v1/chat/completions", json=body)).status_code == 401
    pid = client.engine.pid
    assert pid is not None
    await client.aclose()
    await wait_until_gone(pid)
    assert not folder.exists()


async def test_a_process_that_dies_is_started_again_and_asked(
    client: LocalModelClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "FIRST_WAIT_S", 0.05)
    await client.complete(REQUEST)
    first = client.engine.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await wait_until_gone(first)
    await wait_until(lambda: client.engine.pid not in (first, None))
    assert (await client.complete(REQUEST)).usage.completion_tokens == 4


async def test_a_process_that_dies_again_and_again_is_given_up(
    client: LocalModelClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(engine, "MAX_DEATHS", 2)
    for _ in range(2):
        await client.complete(REQUEST)
        pid = client.engine.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await wait_until_gone(pid)
        await wait_until(lambda pid=pid: client.engine.pid != pid and client.engine.state != "ready")  # type: ignore[misc]
    with pytest.raises(ModelUnreachableError, match=r"signal 9, perhaps because memory ran out"):
        await client.complete(REQUEST)


async def test_a_file_that_is_gone_when_its_process_dies_is_named(
    client: LocalModelClient, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "FIRST_WAIT_S", 0.05)
    await client.complete(REQUEST)
    await asyncio.to_thread(file.unlink)
    assert (await client.complete(REQUEST)).usage.completion_tokens == 4, "what is loaded goes on"
    pid = client.engine.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await wait_until_gone(pid)
    await wait_until(lambda: client.engine.state == "failed")
    with pytest.raises(ModelUnreachableError, match="does not exist"):
        await client.complete(REQUEST)


async def test_a_request_waits_for_the_load_no_longer_than_it_may(
    client: LocalModelClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "COMMAND", (engine.COMMAND[0], "-c", "import time; time.sleep(60)"))
    hurried = ModelRequest("tiny", REQUEST.messages, "probe", timeout_s=0.2)
    with pytest.raises(ModelTimeoutError, match=r"not loaded yet \(loading, [\d,]+ of 0 MB\)"):
        await client.complete(hurried)


def test_a_bad_file_is_named_before_it_is_loaded(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        check_model_file(tmp_path / "missing.gguf")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        check_model_file(tmp_path)
    (tmp_path / "page.gguf").write_text("<!doctype html>")
    with pytest.raises(ConfigError, match="is not a GGUF file"):
        check_model_file(tmp_path / "page.gguf")
    monkeypatch.setattr(model_file, "find_free_memory", lambda: 1000)
    with pytest.raises(ConfigError, match=r"needs about 0\.0 GB of memory, and 0\.0 GB are free"):
        check_model_file(file)


@pytest.mark.parametrize("kind", ["unknown", "cut"])
async def test_what_llama_cpp_says_of_a_file_that_it_cannot_load_reaches_the_caller(tmp_path: Path, kind: str) -> None:
    bad = write_tiny_gguf(tmp_path / "bad.gguf", architecture="madeup" if kind == "unknown" else "llama")
    if kind == "cut":
        bad.write_bytes(bad.read_bytes()[:100_000])
    client = LocalModelClient(LocalEngine(EngineOptions(bad, "bad", context=256, threads=1, slots=1)))
    try:
        with pytest.raises(
            ModelUnreachableError, match=r"bad\.gguf cannot be served: .*(architecture|bounds|corrupted)"
        ):
            await client.complete(REQUEST)
        assert client.engine.pid is None
    finally:
        await client.aclose()


async def test_a_file_and_an_endpoint_together_are_refused(file: Path) -> None:
    for options in ({"llm_base_url": "http://127.0.0.1:9/v1"}, {"model_fast": "m"}, {"serve_workers": 2}):
        settings = Settings(_env_file=None, model_file=file, **options)
        with pytest.raises(ConfigError, match="AGENT_MODEL_FILE"):
            await build_models(settings)


async def test_a_gateway_serves_its_file_and_lists_it(file: Path, tmp_path: Path) -> None:
    settings = Settings(
        _env_file=None, data_dir=tmp_path / "data", port=0, model_file=file, model_context=512, drain_seconds=1,
        llm_timeout_s=SECONDS, skills_dirs=(),
    )  # fmt: skip
    async with serving(settings) as url, httpx.AsyncClient(base_url=url, timeout=SECONDS) as client:
        body = {"model": "chat", "max_tokens": 4, "messages": [{"role": "user", "content": "Tell me a story"}]}
        reply = (await client.post("/v1/chat/completions", json=body)).json()
        assert reply["usage"]["completion_tokens"] == 4, reply
        [listed] = (await client.get("/v1/admin/models")).json()["configured"]
        assert (listed["model"], listed["file"], listed["state"]) == ("tiny", str(file), "reachable")
        assert listed["reason"].startswith("ready, loaded in ")


def test_a_killed_gateway_takes_its_model_along_and_doctor_names_a_bad_file(file: Path, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data", model_file=str(file), model_context="512") as gateway:
        pid = find_child(gateway.process.pid)
        os.kill(gateway.process.pid, signal.SIGKILL)
    asyncio.run(wait_until_gone(pid))
    file.write_text("no model")
    code, output = stepgate(tmp_path, "doctor", model_file=str(file))
    assert code == 1
    assert f"FAIL models: {file} is not a GGUF file" in output


def find_child(parent: int) -> int:
    """The process id of the engine of a gateway, once it is there."""
    for _ in range(600):
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _is_engine_of(entry, parent):
                return int(entry.name)
        signal.sigtimedwait([], 0.05)
    raise AssertionError("the gateway has started no engine")


def _is_engine_of(entry: Path, parent: int) -> bool:
    try:
        ppid = int(entry.joinpath("stat").read_text().rsplit(")", 1)[1].split()[1])
        return ppid == parent and b"gateway.local_engine.child" in entry.joinpath("cmdline").read_bytes()
    except (OSError, IndexError):
        return False


async def test_a_line_longer_than_the_buffer_does_not_end_the_reading() -> None:
    stream = asyncio.StreamReader(limit=16)
    stream.feed_data(b"x" * 100 + b"\nE out of memory\n")
    stream.feed_eof()
    lines: deque[str] = deque()
    await engine._keep_lines(stream, lines)
    assert "E out of memory" in lines
