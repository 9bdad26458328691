"""One call: prepares the program's folders, starts the locked child, limits it from outside, and returns what it left.

Each call has a process of its own with this code. It is as isolated as the zygote, but not yet locked; it never
interprets what the program writes.
"""

import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.sandbox import kernel
from agent.sandbox.program import run_program

WORK, FILES = "/program/folder", "/program/files"
"""The program's folders where namespaces are permitted. `WORK/files` is a link to `FILES`."""
MAX_NAME_CHARS = 150
_MAX_FILES = 512
"""Files and folders that a program can create."""
_OPEN_FILES = 64
_STACK_BYTES = 8 * 2**20
_CHUNK = 2**16
_RESULT, _LOCK = 3, 4
"""The child's descriptors beside the standard ones: the result, and why it could not be locked. The latter is closed
before the program runs, so that a program cannot speak for the sandbox.
"""
_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class ZygoteConfig:
    """The message from the gateway to the zygote at its start."""

    isolated: bool
    """Whether to use namespaces."""
    readable: Sequence[str]
    """Folders and files of the interpreter that programs may read."""
    listed: Sequence[str]
    """Folders whose names they may list."""
    packages: Sequence[str]
    """Installed packages that programs may import; the first ones are imported beforehand."""
    preloaded: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Outcome:
    status: str
    """`ended`, `time`, `output`, `gone` if nobody still waits for the result, or `unlocked` if the child could not be
    locked: no program has run, and `result` says why.
    """
    result: bytes
    printed: bytes
    exit_code: int
    cpu_s: float


def supervise(connection: socket.socket, files: Sequence[int], config: ZygoteConfig, address_space: int) -> None:
    """Serves one call. `files` are open descriptors in the order of the request's `files`."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request = json.loads(_read_exactly(connection, _LENGTH.unpack(_read_exactly(connection, _LENGTH.size))[0]))
    limits = request["limits"]
    if config.isolated:
        kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_PIDS)
        folder, writable = WORK, True
        kernel.mount_memory(FILES, limits["input_bytes"] + 2**20, _MAX_FILES)
        kernel.mount_memory(WORK, limits["folder_bytes"], _MAX_FILES)
        _write_files(FILES, request["files"], files, limits["input_bytes"])
        kernel.make_read_only(FILES)
        os.symlink(FILES, f"{WORK}/files")
        os.chmod(WORK, 0o777)  # noqa: S103 - the program has another user; nobody else sees this folder
    else:
        folder, writable = tempfile.mkdtemp(prefix="stepgate-program-"), False
        os.chmod(folder, 0o755)  # noqa: S103 - the program may have another user
        Path(folder, "files").mkdir()
        _write_files(f"{folder}/files", request["files"], files, limits["input_bytes"])
    try:
        outcome = _run_child(connection, request, config, folder, address_space)
        artifacts, omitted = _read_artifacts(limits) if writable else ([], 0)
    finally:
        if not writable:
            shutil.rmtree(folder, ignore_errors=True)
    if outcome.status != "gone":
        _send_reply(connection, outcome, artifacts, omitted)


def _write_files(folder: str, names: Sequence[str], descriptors: Sequence[int], room: int) -> None:
    """Copies the open files, at most `room` bytes together: one may have grown since the gateway measured it.

    The gateway has checked the names: relative, without `..`.
    """
    for name, descriptor in zip(names, descriptors, strict=True):
        target = Path(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(descriptor, "rb") as source, target.open("wb") as copy:
            room -= copy.write(source.read(room))


def _run_child(
    connection: socket.socket, request: dict[str, Any], config: ZygoteConfig, folder: str, address_space: int
) -> _Outcome:
    result_read, result_write = os.pipe()
    printed_read, printed_write = os.pipe()
    lock_read, lock_write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _replace_descriptors(result_write, printed_write, lock_write)
            try:
                os.chdir(folder)
                _lock_child(config, request["limits"], folder, address_space)
            except Exception as error:  # noqa: BLE001 - no program has run; whatever keeps the child unlocked is reported
                os.write(_LOCK, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
                os._exit(1)
            os.close(_LOCK)
            run_program(request["code"], request["inputs"], _RESULT, request["limits"]["result_bytes"])
        finally:
            os._exit(1)  # the child never returns into the zygote's code
    for descriptor in (result_write, printed_write, lock_write):
        os.close(descriptor)
    with os.fdopen(lock_read, "rb") as lock:
        if problem := lock.read(_CHUNK):
            os.waitpid(child, 0)
            return _Outcome("unlocked", problem, b"", 1, 0.0)
    return _watch_child(child, connection, result_read, printed_read, request["limits"])


def _replace_descriptors(result: int, printed: int, lock: int) -> None:
    """Leaves this process an empty standard input and the pipes for printed text, the result and the lock's report."""
    os.setsid()
    nothing, writer = os.pipe()
    os.close(writer)
    result_copy, printed_copy, lock_copy = os.dup(result), os.dup(printed), os.dup(lock)
    pairs = ((nothing, 0), (printed_copy, 1), (printed_copy, 2), (result_copy, _RESULT), (lock_copy, _LOCK))
    for source, target in pairs:
        os.dup2(source, target)
    os.closerange(_LOCK + 1, 2**16)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - open until the process ends, as below
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace")  # noqa: SIM115


def _lock_child(config: ZygoteConfig, limits: dict[str, Any], folder: str, address_space: int) -> None:
    """Takes every power from this process, in an order in which each step is still permitted. Raises OSError."""
    seconds = int(limits["seconds"]) + 1
    kernel.set_limits(
        (
            (resource.RLIMIT_CPU, seconds),
            (resource.RLIMIT_AS, address_space + limits["memory_bytes"]),
            (resource.RLIMIT_FSIZE, limits["folder_bytes"]),
            (resource.RLIMIT_NOFILE, _OPEN_FILES),
            (resource.RLIMIT_STACK, _STACK_BYTES),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_MEMLOCK, 0),
        )
    )
    rules = [(path, kernel.READ) for path in config.readable] + [(path, kernel.READ_DIR) for path in config.listed]
    work = [(WORK, kernel.WRITE), (FILES, kernel.READ)] if config.isolated else [(folder, kernel.READ)]
    kernel.restrict_files(rules + work)
    kernel.drop_privileges()
    kernel.set_limits(((resource.RLIMIT_NPROC, 0),))
    kernel.die_with_parent(signal.SIGKILL)
    kernel.restrict_system_calls()


def _watch_child(
    child: int, connection: socket.socket, result_read: int, printed_read: int, limits: dict[str, Any]
) -> _Outcome:
    """Collects what the child writes until it ends, takes too long, writes too much, or nobody still waits."""
    deadline = time.monotonic() + limits["seconds"]
    collected = {result_read: bytearray(), printed_read: bytearray()}
    # The result's encoding is checked by the program, which could have been changed; this limit holds in any case.
    most = {result_read: limits["result_bytes"] + _CHUNK, printed_read: limits["printed_bytes"]}
    poll = select.poll()
    for descriptor in collected:
        poll.register(descriptor, select.POLLIN)
    poll.register(connection, select.POLLIN)
    waiting, status = set(collected), "ended"
    while waiting and status == "ended":
        left = deadline - time.monotonic()
        ready = poll.poll(max(0, left) * 1000)
        if left <= 0:
            status = "time"
        for descriptor, _ in ready:
            if descriptor == connection.fileno():  # the gateway sends nothing more: this is its end
                status = "gone"
            elif chunk := os.read(descriptor, _CHUNK):
                collected[descriptor] += chunk
                if len(collected[descriptor]) > most[descriptor]:
                    status = "output"
            else:
                poll.unregister(descriptor)
                waiting.discard(descriptor)
    if status == "ended" and not _wait_for_exit(child, deadline):  # it has closed its pipes, and runs on
        status = "time"
    os.kill(child, signal.SIGKILL)
    _, wait_status, usage = os.wait4(child, 0)
    return _Outcome(
        status,
        bytes(collected[result_read][: most[result_read]]),
        bytes(collected[printed_read][: most[printed_read]]),
        os.waitstatus_to_exitcode(wait_status),
        usage.ru_utime + usage.ru_stime,
    )


def _wait_for_exit(child: int, deadline: float) -> bool:
    """Whether the child exits in time. Leaves it as a zombie, so that its id cannot be another process's."""
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.0005)
    return True


def _read_artifacts(limits: dict[str, Any]) -> tuple[list[tuple[str, bytes]], int]:
    """The files that the program left in its folder, in order of name, and how many were omitted because of
    their number, size or name. Only regular files; no link is followed.
    """
    artifacts: list[tuple[str, bytes]] = []
    omitted, room = 0, limits["artifact_bytes"]
    for path in sorted(_walk_files(WORK)):
        name = os.path.relpath(path, WORK)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # a path that is too long
            omitted += 1
            continue
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            named = name.isprintable() and name.isascii() and len(name) <= MAX_NAME_CHARS
            if not named or size > room or len(artifacts) >= limits["artifacts"]:
                omitted += 1
                continue
            artifacts.append((name, file.read(size)))
            room -= size
    return artifacts, omitted


def _walk_files(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            with suppress(OSError):  # a path that is too long
                if stat.S_ISREG(os.lstat(path).st_mode):
                    yield path


def _send_reply(connection: socket.socket, outcome: _Outcome, artifacts: list[tuple[str, bytes]], omitted: int) -> None:
    header = json.dumps(
        {
            "status": outcome.status,
            "exit_code": outcome.exit_code,
            "cpu_s": outcome.cpu_s,
            "result": outcome.result.decode("utf-8", "replace"),
            "printed": outcome.printed.decode("utf-8", "replace"),
            "artifacts": [[name, len(content)] for name, content in artifacts],
            "omitted": omitted,
        }
    ).encode()
    connection.sendall(_LENGTH.pack(len(header)) + header + b"".join(content for _, content in artifacts))


def _read_exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = connection.recv(min(_CHUNK, count - len(data)))
        if not chunk:
            raise EOFError("the gateway closed the connection")
        data += chunk
    return bytes(data)
