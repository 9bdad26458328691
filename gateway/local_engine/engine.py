"""`LocalEngine`: the child process that serves one model file. Starts it, watches it, and restarts it when it dies."""

import asyncio
import contextlib
import json
import logging
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Literal

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import ConfigError
from agent.core.extras import EXTRAS, format_install_hint
from agent.core.subprocesses import close_pipes, wait_for_exit
from gateway.local_engine.model_file import check_model_file, find_loaded_bytes

log = logging.getLogger(__name__)

EngineState = Literal["stopped", "loading", "ready", "failed"]
COMMAND = (sys.executable, "-m", "gateway.local_engine.child")
FIRST_WAIT_S = 0.5
MAX_DEATHS, DEATHS_WITHIN_S = 5, 600.0
"""A model whose process dies so often within so many seconds is given up."""
END_SECONDS = 3.0
_STAMP = re.compile(r"^[\d.]+ [EW] ?")
_KEPT_LINES = 40


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The served model, and its share of the machine. `slots` requests are answered at a time."""

    file: Path
    name: str
    context: int = 16_384
    threads: int = max(1, (os.cpu_count() or 2))
    slots: int = max(1, min(4, (os.cpu_count() or 2) // 2))


class LocalEngine:
    """One model in a process of its own, reached through a Unix socket in a folder that only this user may enter.

    A port on the loopback interface would be open to every web page and every user of the machine.
    """

    def __init__(self, options: EngineOptions) -> None:
        self.options = options
        self.key = secrets.token_urlsafe(32)
        self.state: EngineState = "stopped"
        self.reason = ""
        """Why the model cannot be used; empty if it can."""
        self.load_seconds = 0.0
        self.size_bytes = 0
        self._folder = ""
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    @property
    def socket(self) -> str:
        """The path of the socket."""
        return f"{self._folder}/model.sock"

    @property
    def pid(self) -> int | None:
        """The child's process id, while it runs."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    def check(self) -> None:
        """Raises `ConfigError` if the file cannot be served, or the extra is missing."""
        if not EXTRAS["local"].is_installed:
            raise ConfigError(f"serving {self.options.file} needs the extra `local`; {format_install_hint('local')}")
        self.size_bytes = check_model_file(self.options.file)

    def start(self) -> None:
        """Begins to load the model, unless that has been done. Does not wait."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._serve(), name="model engine")

    async def wait_until_ready(self, timeout_s: float) -> None:
        """Waits for the model, which is loaded if need be. Raises `ConfigError` if it cannot be used, and
        `TimeoutError` while it is still being loaded.
        """
        self.start()
        async with asyncio.timeout(timeout_s):
            while self.state in ("stopped", "loading"):
                self._changed.clear()
                await self._changed.wait()
        if self.state == "failed":
            raise ConfigError(self.reason)

    def describe(self) -> str:
        """The state for people, with how much of the file is in memory while it is loaded."""
        if self.state == "loading" and self.pid is not None:
            loaded = min(find_loaded_bytes(self.pid), self.size_bytes)
            return f"loading, {loaded / 1e6:,.0f} of {self.size_bytes / 1e6:,.0f} MB"
        if self.state == "ready":
            return f"ready, loaded in {self.load_seconds:.1f} s"
        return f"{self.state}: {self.reason}" if self.reason else self.state

    async def aclose(self) -> None:
        """Ends the child."""
        if self._watching is not None:
            await cancel_and_wait(self._watching)
        await self._end_child()
        if self._folder:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        self._set_state("stopped")

    async def _serve(self) -> None:
        """Keeps a child running until the file cannot be served, or it has died too often."""
        deaths: list[float] = []
        while True:
            self._set_state("loading")
            try:
                await asyncio.to_thread(self.check)
                was_ready, reason = await self._run_child()
            except (ConfigError, OSError) as error:
                self._set_state("failed", str(error))
                log.warning("the model cannot be served: %s", self.reason)
                return
            deaths = [at for at in deaths if at > monotonic() - DEATHS_WITHIN_S] + [monotonic()]
            if not was_ready or len(deaths) >= MAX_DEATHS:
                self._set_state("failed", f"{self.options.file} cannot be served: {reason}")
                log.warning("%s", self.reason)
                return
            self._set_state("loading")
            log.warning("the model's process has ended (%s); it is started again", reason)
            await asyncio.sleep(FIRST_WAIT_S * 2 ** (len(deaths) - 1))

    async def _run_child(self) -> tuple[bool, str]:
        """Runs one child to its end. Returns whether it was ready, and why it ended."""
        if self._folder:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
        self._folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="stepgate-model-")
        options = self.options
        child_options = {
            "file": str(options.file), "name": options.name, "socket": self.socket, "key": self.key,
            "context": options.context, "threads": options.threads, "slots": options.slots,
        }  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C drains the gateway, whose runs still need the model
        )
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        lines: deque[str] = deque(maxlen=_KEPT_LINES)
        reading = asyncio.create_task(_keep_lines(process.stderr, lines), name="output of the model engine")
        was_ready = False
        try:
            process.stdin.write(json.dumps(child_options).encode() + b"\n")
            line = await process.stdout.readline()
            if line:
                was_ready = True
                self.load_seconds = json.loads(line)["ready"]
                self._set_state("ready")
                log.info("%s is loaded (%.1f s)", options.name, self.load_seconds)
            await process.wait()
            await reading
        except (ConnectionError, ValueError) as error:
            lines.append(f"E {error}")
        finally:
            await cancel_and_wait(reading)
            await self._end_child()
        return was_ready, _describe_end(process.returncode, lines)

    async def _end_child(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None and process.stdin is not None:
            process.stdin.close()  # it ends by itself
            if not await wait_for_exit(process, END_SECONDS):
                process.kill()
                await wait_for_exit(process, END_SECONDS)
        close_pipes(process)

    def _set_state(self, state: EngineState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._changed.set()


async def _keep_lines(stream: asyncio.StreamReader, lines: deque[str]) -> None:
    """Reads to the end, so that the child never waits for a reader. A line longer than the buffer is left out."""
    while not stream.at_eof():
        with contextlib.suppress(ValueError):
            lines.append((await stream.readline()).decode("utf-8", "replace").rstrip())


def _describe_end(code: int | None, lines: deque[str]) -> str:
    """The reason why a child ended: llama.cpp's first error, or the signal."""
    errors = [_STAMP.sub("", line) for line in lines if _STAMP.match(line) or line.startswith("E ")]
    if code is not None and code < 0:
        hint = ", perhaps because memory ran out" if code == -9 else ""
        return f"signal {-code}{hint}"
    return " ".join(errors[0].split())[:300] if errors else f"exit code {code}"
