"""The process that forks: `python -m tests.support.warm_server SOCKET`.

It loads what the processes of tests load, says `ready`, and forks for each request that comes in (`warm_client.py`
says how they look). It has one thread, no event loop and nothing open, so that what it forks is as good as new. It ends
when its standard input does, and what it forked with it.
"""

import asyncio
import atexit
import dataclasses
import gc
import importlib
import io
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, cast

import httpx

import gateway.cli
from agent.core import entry_points
from agent.core.settings import Settings
from agent.net import checked_connections
from agent.text.language import LanguageDetector
from gateway import feature_loader
from gateway.app import create_app
from gateway.bootstrap import build_gateway
from gateway.feature_loader import import_target
from gateway.features.documents.engine.ingest.parsers import pool
from gateway.features.documents.engine.ingest.parsers.registry import READERS
from gateway.shipped_features import SHIPPED
from tests.support import warm_client
from tests.support.engine import engine_bench
from tests.support.script import plans, says, script

_GATEWAY = (
    "gateway.cli", "gateway.bootstrap", "gateway.app", "uvicorn", "aiohttp.web", "httpx", "mcp.server.mcpserver",
    "mcp_tools.client.hub", "mcp_tools.client.tool_pin_store", "tests.support.engine", "tests.support.script",
    "agent.llm.http", "agent.storage.journal_postgres", "gateway.doors.mcp", "rich.progress", "rich.table", "uvloop",
)  # fmt: skip
"""Never a module that is itself run by a test."""
_LEFT_OUT = ("gateway.features.evaluation", "gateway.cli.__main__")
"""What few processes need takes seconds to load; what is run is no module to be imported."""

_OF_ENVIRONMENT = (
    entry_points._list_entry_points,
    feature_loader._list_installed,
    checked_connections._load_certificates,
)
"""What a process finds once in its own environment: packages on PYTHONPATH, and the certificates of SSL_CERT_FILE."""

_PARSERS = "gateway.features.documents.engine.ingest.parsers.worker"


def main() -> None:
    """Load, then fork until standard input ends; in what was forked: become what was asked for."""
    address = sys.argv[1]
    for name in (*_GATEWAY, *_list_lazy_modules()):
        if not name.startswith(_LEFT_OUT):
            importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_use_gateway(Path(folder)))
    for cached in _OF_ENVIRONMENT:
        cached.cache_clear()
    assert threading.active_count() == 1, threading.enumerate()
    _freeze()
    module = _Forks(address).serve()
    if module is not None:
        pool.WORKER = (*warm_client.command(address), _PARSERS)
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as ending:
            if not isinstance(ending.code, int | None):
                raise
            _end(ending.code or 0)
    _end(0)


async def _use_gateway(folder: Path) -> None:
    """Starts a gateway, and asks it and an engine with a model: what is made at first use (the model of languages,
    schemas, validators, patterns, modules) is made once, not by every process that is forked."""
    await LanguageDetector().detect("Quanto custa a viagem para Lisboa?")
    settings = Settings(
        _env_file=None, data_dir=folder / "gateway", port=0, skills_dirs=(), drain_seconds=1, discover="off"
    )
    async with build_gateway(settings) as stepgate:
        app = create_app(settings, stepgate)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
        async with app.router.lifespan_context(app), client:
            (await client.post("/v1/agent", json={"prompt": "2+2"})).raise_for_status()
            body = {"model": "stepgate", "messages": [{"role": "user", "content": "2+2"}]}
            (await client.post("/v1/chat/completions", json=body)).raise_for_status()
    replies = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("It is 42.", to="completion"),
    )
    async with engine_bench(folder / "engine", replies) as bench:
        await bench.run("What is 2*21?")


def _list_lazy_modules() -> Iterator[str]:
    """Yields the modules that commands and gateways load when they need them: commands, and all that features name."""
    for command in pkgutil.iter_modules(gateway.cli.__path__, "gateway.cli."):
        yield command.name
    for target in SHIPPED:
        if target.startswith(_LEFT_OUT):
            continue
        feature = import_target(target)
        values = [getattr(feature, one.name) for one in dataclasses.fields(feature)]
        named = [value for value in values if isinstance(value, str)]
        named += [one.target for one in (*feature.routes, *feature.commands.values())]
        for name in named:
            module, is_target, _ = name.partition(":")
            if is_target:
                yield module


def _end(code: int) -> None:
    """End as the interpreter does, but for taking every module apart: that would copy all memory shared with others."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads it: the interpreter has words and a code for that
        sys.exit(code)
    os._exit(code)


@cache
def _load_parsers() -> None:
    """What their workers load: when the first is asked for, for most tests need none."""
    for reader in READERS:
        reader.load()
    _freeze()


def _freeze() -> None:
    gc.collect()
    gc.freeze()  # the collector would write to every page that is shared with what is forked


class _Forks:
    """The socket, and what was forked for whom."""

    def __init__(self, address: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen(16)
        self._asked: dict[int, socket.socket] = {}
        self._ended, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._ended, False)

    def serve(self) -> str | None:
        """None when standard input has ended; in a forked process the module it is to run."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        for file in (0, self._listening.fileno(), self._ended):
            self._selector.register(file, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, _ in self._selector.select():
                if key.fd == 0:
                    for pid in self._asked:
                        _kill(pid)
                    shutil.rmtree(Path(self._listening.getsockname()).parent)
                    return None
                if key.fd == self._ended:
                    os.read(self._ended, 4096)
                    self._reap()
                elif key.fd == self._listening.fileno():
                    module = self._fork(self._listening.accept()[0])
                    if module is not None:
                        return module
                elif key.data in self._asked:  # who asked has gone
                    self._selector.unregister(key.fd)
                    _kill(key.data)

    def _fork(self, connection: socket.socket) -> str | None:
        try:
            request, files = warm_client.receive(connection)
        except EOFError:  # who asked has been killed meanwhile
            return None
        if warm_client.unpacked(request)[0] == _PARSERS:
            _load_parsers()
        pid = os.fork()
        if pid == 0:
            self._let_go(connection)
            return _become(request, files)
        for file in files:
            os.close(file)
        self._asked[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        warm_client.tell(connection, pid)
        return None

    def _reap(self) -> None:
        while self._asked:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            connection = self._asked.pop(pid)
            if connection.fileno() in self._selector.get_map():
                self._selector.unregister(connection)
                warm_client.tell(connection, os.waitstatus_to_exitcode(status))
            connection.close()

    def _let_go(self, connection: socket.socket) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for one in (self._listening, connection, *self._asked.values()):
            one.close()
        for file in (self._ended, self._wake):
            os.close(file)


def _become(request: bytes, files: list[int]) -> str:
    """Take over the folder, environment, arguments and standard files of a request; the module that is to run."""
    module, arguments, environment, cwd = warm_client.unpacked(request)
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r")), encoding="utf-8")
    sys.stdout = _writer(1, "strict", line_buffering=os.isatty(1))
    sys.stderr = _writer(2, "backslashreplace", line_buffering=True)
    sys.argv[1:] = arguments
    sys.path[0] = str(Path.cwd())
    sys.path[1:1] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    return module


def _writer(number: int, errors: str, *, line_buffering: bool) -> io.TextIOWrapper:
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    raw = io.FileIO(number, "w")
    inner = cast("IO[bytes]", raw) if at_once else io.BufferedWriter(raw)
    return io.TextIOWrapper(inner, "utf-8", errors, line_buffering=line_buffering, write_through=at_once)


def _kill(pid: int) -> None:
    """End a forked process and what it has started: it leads a group of its own."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:  # it was forked this moment, and leads none yet
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
