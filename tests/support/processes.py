"""Child processes of tests: bounded in time, ended by their own pid, their output kept."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Self

from agent.core.settings.aliases import get_variable
from tests.support import warm

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0


class Process:
    """A child process whose output is read line by line."""

    def __init__(self, child: "subprocess.Popen[str] | warm.WarmChild") -> None:
        self.child = child
        self.output: list[str] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self.child.pid

    def line_with(self, text: str, deadline_s: float = DEADLINE_S) -> str:
        """The next output line that holds `text`; AssertionError with all output when none comes in time."""
        until = monotonic() + deadline_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, until - monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self.kill()
                raise AssertionError(f"no line with {text!r} from {self.child.args!r}:\n" + "\n".join(self.output))
            if text in line:
                return line

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens where it has ended by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, deadline_s: float = DEADLINE_S) -> int:
        """The exit code, once it has ended by itself; killed and AssertionError when it does not in time."""
        try:
            code = self.child.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.child.args!r} did not end:\n" + "\n".join(self.output)) from None
        self._reader.join(5)
        return code

    def kill(self) -> None:
        """End it at once, and wait for the end."""
        if self.child.poll() is None:
            self.signal(signal.SIGKILL)
        self.child.wait(DEADLINE_S)
        self._reader.join(5)

    def _read(self) -> None:
        if self.child.stdout is not None:
            with self.child.stdout as stream:
                for line in stream:
                    self.output.append(line.rstrip("\n"))
                    self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


def start(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, cwd: Path = ROOT, cold: bool = False
) -> Process:
    """Start a command; stderr joins stdout. No `AGENT_` setting of the surroundings reaches it.

    Python modules of ours begin with their imports done (`warm.py`); `cold` is for those whose loading matters, which
    load compiled modules, as everybody's second start does."""
    left_out = ("AGENT_", "PYTHONDONTWRITEBYTECODE") if cold else ("AGENT_",)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
    # Scripted models reply as a capable one does, as in tests/conftest.py.
    env = {
        **clean,
        "PYTHONUNBUFFERED": "1",
        "AGENT_MODEL_PROFILE": "capable",
        "AGENT_DISCOVER": "off",
        **(environment or {}),
    }
    if not cold and list(command[:2]) == [sys.executable, "-m"] and command[2].startswith(("gateway", "tests.")):
        return Process(warm.start(command[2], command[3:], environment=env, cwd=cwd))
    child = subprocess.Popen(
        list(command),
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # a group of its own: `make` and what it starts end together
    )
    return Process(child)


class GatewayProcess:
    """`stepgate serve` as a process on a free port, on a data folder that outlives it."""

    cold = False

    def __init__(self, data_dir: Path, **settings: str) -> None:
        environment = {get_variable(key): value for key, value in settings.items()}
        environment |= {"AGENT_DATA_DIR": str(data_dir), "AGENT_PORT": "0", "AGENT_SKILLS_DIRS": "none"}
        self.process = start([sys.executable, "-m", "gateway.cli", "serve"], environment=environment, cold=self.cold)
        self.url = self.process.line_with("Stepgate listens on ").rsplit(" ", 1)[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()


class ColdGatewayProcess(GatewayProcess):
    """The same, loading what it needs itself."""

    cold = True
