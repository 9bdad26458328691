"""Processes of tests that begin with their imports done: forked from one that has loaded the gateway and waits.

`python -m NAME ARGUMENTS` of the gateway takes 1.5 s of processor time, nearly all of it imports, and tests start
hundreds. What is forked here is a process like that: its own pid, session, environment, folder, standard files, exit
code and end. What it does not show is the loading itself; tests of that start their processes cold.

`start` is for tests, `command` for what is started by the code under test (a parser's worker, an MCP server): a
command line for `warm_client.py`, which hands its standard files over and ends as what it stands for ends.
"""

import atexit
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.support import warm_client

ROOT = Path(__file__).resolve().parents[2]
_READY_S = 60.0


class WarmChild:
    """A forked process, as `subprocess.Popen` shows one."""

    def __init__(self, args: Sequence[str], connection: socket.socket, stdout: IO[str]) -> None:
        self.args = args
        self.stdout = stdout
        self.returncode: int | None = None
        self._connection = connection
        connection.settimeout(_READY_S)
        self.pid = warm_client.read_exit_code(connection)

    def poll(self) -> int | None:
        """The exit code (negative: the signal) once it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, as soon as it has ended. `subprocess.TimeoutExpired` when it does not in time."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = warm_client.read_exit_code(self._connection)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0) from None
            self._connection.close()
        return self.returncode


def start(
    module: str, arguments: Sequence[str], *, environment: Mapping[str, str], cwd: Path, stdin: int | None = None
) -> WarmChild:
    """`python -m module arguments`, without the wait for its imports. stderr joins stdout."""
    reading, writing = os.pipe()
    source = os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin
    connection = warm_client.connect(_forker())
    try:
        request = warm_client.packed(module, list(arguments), dict(environment), str(cwd))
        warm_client.send(connection, request, [source, writing, writing])
    finally:
        os.close(writing)
        if stdin is None:
            os.close(source)
    return WarmChild([sys.executable, "-m", module, *arguments], connection, os.fdopen(reading, encoding="utf-8"))


def command(module: str, *arguments: str) -> list[str]:
    """A command line that does what `python -m module arguments` does, in the environment and the folder it is
    started in. Killing it kills what it stands for."""
    return [*warm_client.command(_forker()), module, *arguments]


def server(module: str, *arguments: str) -> dict[str, Any]:
    """`command` as an entry of a file of MCP servers."""
    program, *words = command(module, *arguments)
    return {"command": program, "args": words, "cwd": str(ROOT)}


class LazyCommand:
    """`command` as a constant that starts nothing before it is used."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._module = module
        self._arguments = arguments

    def __iter__(self) -> Iterator[str]:
        return iter(command(self._module, *self._arguments))


@cache
def _forker() -> str:
    """The address of this process's own forker, started when first asked for; it ends with this process."""
    address = f"{tempfile.mkdtemp(prefix='warm-')}/socket"  # it takes the folder away when it ends
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AGENT_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm_server", address],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    def end() -> None:
        process.communicate(timeout=_READY_S)  # closes its standard input, at which it ends

    atexit.register(end)
    assert process.stdout.readline() == b"ready\n", "the process that forks did not start"
    return address
