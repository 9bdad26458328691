"""The zygote: a small process that has imported the libraries, isolates itself, and forks one process for each call.

It holds no secret: its environment is fixed, and it reads nothing but libraries. `client.Sandbox` starts it.

Protocol on a Unix socket: one line of JSON when it is ready, then for each call one byte with descriptors (the call's
connection, its input files). It ends when the gateway closes the socket.
"""

import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from agent.sandbox import kernel
from agent.sandbox.supervise import FILES, WORK, ZygoteConfig, supervise

MAX_CALL_DESCRIPTORS = 32
_COVERED = ("/mnt", "/media", "/srv", "/opt", "/tmp")  # noqa: S108 - in this process's mount namespace only
"""Folders under which the new root may be built; what they contain becomes invisible meanwhile."""
_COMMON_MODULES_TEXT = (
    "array ast base64 bisect calendar collections copy csv dataclasses datetime decimal difflib enum fractions "
    "functools hashlib heapq html io itertools json math operator pathlib random re statistics string struct textwrap "
    "time traceback typing unicodedata urllib.parse uuid xml.etree.ElementTree zlib zoneinfo"
)
_COMMON_MODULES = tuple(_COMMON_MODULES_TEXT.split())
"""Imported once here, so that a call does not pay for them."""


class PackageFinder(MetaPathFinder):
    """Refuses packages that programs may not import, with a message that says which ones they may."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = frozenset(packages)
        self._message = ", ".join(("the standard library", *packages))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises ModuleNotFoundError for a top-level package that is neither allowed nor of the standard library."""
        if path is None and fullname not in self._packages and fullname not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {fullname!r}; there is {self._message}", name=fullname)
        return None


def main(control_descriptor: int, config_text: str) -> None:
    """Prepares the zygote, reports that it is ready or why not, and serves calls until the gateway is gone."""
    control = socket.socket(fileno=control_descriptor)
    config = ZygoteConfig(**json.loads(config_text))
    os.umask(0o022)
    try:
        # If memory runs out, the kernel ends a program before it ends the gateway.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        _import_libraries(config)
        address_space = _read_address_space()
        if config.isolated:
            _isolate(config)
    except Exception as error:  # noqa: BLE001 - whatever keeps the sandbox from working is reported
        control.sendall(json.dumps({"problem": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        return
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended calls leave no zombies
    gc.freeze()
    control.sendall(b'{"problem": null}\n')
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1, MAX_CALL_DESCRIPTORS)
        if not data:
            return
        if os.fork() == 0:
            _serve_call(control, descriptors, config, address_space)
        for descriptor in descriptors:
            os.close(descriptor)


def _serve_call(control: socket.socket, descriptors: Sequence[int], config: ZygoteConfig, address_space: int) -> None:
    """Serves one call in this new process, and ends it."""
    try:
        control.close()
        with socket.socket(fileno=descriptors[0]) as connection:
            try:
                supervise(connection, descriptors[1:], config, address_space)
            except OSError as error:
                problem = json.dumps({"status": "sandbox", "result": f"{error}"}).encode()
                connection.sendall(len(problem).to_bytes(8, "big") + problem)
    finally:
        os._exit(0)


def _import_libraries(config: ZygoteConfig) -> None:
    sys.path += config.listed
    for name in _COMMON_MODULES:
        importlib.import_module(name)
    for name in config.preloaded:
        with suppress(ImportError):
            importlib.import_module(name)
    sys.meta_path.insert(0, PackageFinder(config.packages))


def _isolate(config: ZygoteConfig) -> None:
    """Leaves the network and the file system. Raises OSError where that is forbidden."""
    if os.getuid() != 0:
        kernel.enter_user_namespace()
    kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_IPC | kernel.NEW_UTS | kernel.NEW_NETWORK)
    kernel.leave_host_name()
    visible = _list_outermost([path for path in (*config.readable, *config.listed) if Path(path).is_dir()])
    covered = next(
        path for path in _COVERED if Path(path).is_dir() and not any(Path(one).is_relative_to(path) for one in visible)
    )
    kernel.replace_root(covered, visible, (WORK, FILES))


def _list_outermost(paths: Sequence[str]) -> list[str]:
    """The paths that are not below another one."""
    outermost: list[str] = []
    for path in sorted(set(paths)):
        if not any(Path(path).is_relative_to(outer) for outer in outermost):
            outermost.append(path)
    return outermost


def _read_address_space() -> int:
    """The size of this process's address space, in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")
