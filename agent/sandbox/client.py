"""`Sandbox`: the gateway's side. Starts the zygote at the first call and restarts it when it has died."""

import asyncio
import json
import logging
import re
import signal
import socket
import sys
import sysconfig
from asyncio.subprocess import DEVNULL
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import agent
from agent.core.errors import ToolError
from agent.core.models import JsonObject
from agent.core.subprocesses import close_pipes, signal_group, wait_for_exit
from agent.sandbox.limits import Artifact, Problem, ProgramResult, SandboxLimits
from agent.sandbox.supervise import ZygoteConfig

log = logging.getLogger(__name__)

OPTIONAL_PACKAGES = ("numpy", "pandas", "matplotlib")
"""Packages that programs may import where they are installed."""
START_SECONDS = 20.0
"""The zygote imports its libraries within this time."""
GRACE_SECONDS = 5.0
"""Time for preparing a call and returning its files, in addition to the program's."""
_PROJECT = str(Path(agent.__path__[0]).parent)
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from agent.sandbox.zygote import main; del sys.path[0]; "
    "main(int(sys.argv[2]), sys.argv[3])"
)
_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/program/folder/.matplotlib",
    "OPENBLAS_NUM_THREADS": "1",  # programs cannot start threads
    "TZ": "UTC",
}
"""The whole environment of the zygote and of programs: no keys and passwords of the gateway."""
_LIBRARY_FOLDERS = (
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
    "/lib64", "/usr/lib64", "/usr/share/zoneinfo",
)  # fmt: skip
"""Where the C libraries of Python's own modules are, and time zones. Missing ones are left out."""
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9._-]+)")


class SandboxError(ToolError):
    """Raised if the sandbox itself failed: it could not be started or locked, or its process died."""

    code = "ERR_TOOL_FAILED"


@dataclass(slots=True)
class _Zygote:
    process: asyncio.subprocess.Process
    control: socket.socket
    isolated: bool


class Sandbox:
    """Runs programs, at most `parallel` at a time; further calls wait. Safe to use from many tasks."""

    has_files = True

    def __init__(self, limits: SandboxLimits, *, parallel: int, use_namespaces: bool = True) -> None:
        self.limits = limits
        self._slots = asyncio.Semaphore(parallel)
        self._starting = asyncio.Lock()
        self._use_namespaces = use_namespaces
        self._zygote: _Zygote | None = None

    async def run(
        self, code: str, inputs: JsonObject, files: Mapping[str, int], *, limits: SandboxLimits | None = None
    ) -> ProgramResult:
        """Runs a program, within its own `limits` if given. `files` are open descriptors by relative name; the caller
        closes them.

        Raises `SandboxError`. Errors of the program are in the result.
        """
        limits = limits or self.limits
        for name in files:
            if name.startswith("/") or ".." in name.split("/"):
                raise ValueError(f"{name!r} is not a relative name")
        request = {"code": code, "inputs": inputs, "files": list(files), "limits": asdict(limits)}
        async with self._slots:
            zygote = await self.start()
            reader, writer = await self._connect(zygote, list(files.values()))
            try:
                async with asyncio.timeout(limits.seconds + GRACE_SECONDS):
                    body = json.dumps(request).encode()
                    writer.write(len(body).to_bytes(8, "big") + body)
                    header = json.loads(await reader.readexactly(int.from_bytes(await reader.readexactly(8), "big")))
                    artifacts = [
                        Artifact(name, await reader.readexactly(size)) for name, size in header.get("artifacts", ())
                    ]
            except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
                raise SandboxError("the sandbox's process ended before the program's result was known") from error
            finally:
                writer.close()  # ends the call, if it still runs
        return _read_result(header, artifacts, limits)

    async def start(self) -> "_Zygote":
        """The running zygote; starts it if there is none. Raises `SandboxError`."""
        async with self._starting:
            if self._zygote is not None and self._zygote.process.returncode is None:
                return self._zygote
            await self._stop()
            isolated = self._use_namespaces
            process, control, problem = await _start_zygote(isolated=isolated)
            if problem is not None and isolated:
                log.info("the sandbox runs without namespaces: %s", problem)
                isolated = False
                process, control, problem = await _start_zygote(isolated=isolated)
            if problem is not None:
                raise SandboxError(f"the sandbox cannot be started: {problem}")
            self._zygote = _Zygote(process, control, isolated)
            return self._zygote

    async def is_isolated(self) -> bool:
        """Whether programs run in namespaces, where they can write files. Raises `SandboxError`."""
        return (await self.start()).isolated

    async def aclose(self) -> None:
        """Ends the zygote. Programs that still run end with it."""
        async with self._starting:
            await self._stop()

    async def _stop(self) -> None:
        if self._zygote is not None:
            zygote, self._zygote = self._zygote, None
            await _end_process(zygote.process, zygote.control)

    async def _connect(
        self, zygote: "_Zygote", descriptors: Sequence[int]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(zygote.control, [b"c"], [theirs.fileno(), *descriptors])
            except OSError as error:
                ours.close()
                raise SandboxError("the sandbox's process does not accept calls") from error
        ours.setblocking(False)
        return await asyncio.open_unix_connection(sock=ours)


async def _start_zygote(*, isolated: bool) -> tuple[asyncio.subprocess.Process, socket.socket, str | None]:
    """The process, its socket, and why it cannot work, if so; then it has ended."""
    config = replace(_build_config(), isolated=isolated)
    ours, theirs = socket.socketpair()
    with theirs:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-B", "-c", _START, _PROJECT, str(theirs.fileno()), json.dumps(asdict(config)),
            stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=_ENVIRONMENT, cwd="/",
            pass_fds=[theirs.fileno()], start_new_session=True,
        )  # fmt: skip
    ours.setblocking(False)
    problem: str | None = "its process ended at once"
    try:
        async with asyncio.timeout(START_SECONDS):
            if line := await asyncio.get_running_loop().sock_recv(ours, 2**16):
                problem = json.loads(line)["problem"]
    except TimeoutError:
        problem = f"it was not ready within {START_SECONDS:g} s"
    except OSError as error:
        problem = str(error)
    except BaseException:  # cancellation too: nobody else knows of the process
        await _end_process(process, ours)
        raise
    if problem is not None:
        await _end_process(process, ours)
    return process, ours, problem


async def _end_process(process: asyncio.subprocess.Process, control: socket.socket) -> None:
    control.close()
    signal_group(process, signal.SIGKILL)
    try:
        await wait_for_exit(process, GRACE_SECONDS)
    finally:
        close_pipes(process)


def _read_result(header: JsonObject, artifacts: Sequence[Artifact], limits: SandboxLimits) -> ProgramResult:
    """The result of a call. Raises `SandboxError` if the sandbox reports a problem of its own."""
    status, text = header["status"], str(header["result"])
    if status == "sandbox":
        raise SandboxError(f"the sandbox failed: {text}")
    if status == "unlocked":
        raise SandboxError(f"the program could not be sandboxed: {text}")
    reply = _parse_reply(text)
    kind, error = reply.get("kind"), reply.get("error")  # what the program says of itself, no more
    problem: Problem | None = None
    if status == "time":
        problem, error = "time", f"the program did not finish within {limits.seconds:g} s"
    elif status == "output":
        problem, error = (
            "output",
            f"the program printed or returned more than {limits.printed_bytes:,} bytes",
        )
    elif kind == "memory":
        problem = "memory"
    elif error is not None:
        problem = "output" if kind == "result" else "program"
    elif "value" not in reply:
        problem, error = "died", f"the program ended without a result (exit code {header['exit_code']})"
    return ProgramResult(
        value=reply.get("value") if problem is None else None,
        printed=str(header["printed"]),
        artifacts=artifacts,
        omitted_artifacts=int(str(header["omitted"])),
        cpu_s=float(str(header["cpu_s"])),
        error=None if problem is None else str(error),
        problem=problem,
    )


def _parse_reply(text: str) -> JsonObject:
    """The object that the program's process wrote, or an empty one: a program can write anything there."""
    try:
        reply = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {}
    return reply if isinstance(reply, dict) else {}


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


@cache
def _build_config() -> ZygoteConfig:
    """The files that programs may read: the standard library, C libraries, and the packages with their requirements."""
    # Of the interpreter, not of a virtual environment, whose library folder holds all installed packages.
    bases = {"base": sys.base_prefix, "installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    bases["installed_platbase"] = sys.base_exec_prefix
    folders = {Path(sysconfig.get_path(name, vars=bases)).resolve() for name in ("stdlib", "platstdlib")}
    readable = [str(path) for folder in sorted(folders) for path in _list_library(folder)]
    readable += [str(path) for name in _LIBRARY_FOLDERS if (path := Path(name)).is_dir()]
    listed = {str(folder) for folder in folders}
    packages: dict[str, None] = {}
    installed = [name for name in OPTIONAL_PACKAGES if _add_package(name, readable, listed, packages, set())]
    # Matplotlib is slow to import, and few programs draw.
    preloaded = [name for name in installed if name != "matplotlib"]
    return ZygoteConfig(True, readable, sorted(listed), list(packages), preloaded)


def _list_library(folder: Path) -> Iterator[Path]:
    """Yields the files and folders of the standard library, without the installed packages below it."""
    for path in sorted(folder.iterdir()):
        if path.name not in ("site-packages", "dist-packages"):
            yield path


def _add_package(name: str, readable: list[str], listed: set[str], packages: dict[str, None], seen: set[str]) -> bool:
    """Adds the files of a package and of its requirements. Returns whether the package is installed."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return False
    if name in seen:
        return True
    seen.add(name)
    folder = Path(str(package.locate_file("")))
    listed.add(str(folder))
    for top in sorted({file.parts[0] for file in package.files or () if ".." not in file.parts}):
        readable.append(str(folder / top))
        if top.isidentifier() or top.endswith(".py"):
            packages[top.removesuffix(".py")] = None
    for requirement in package.requires or ():
        if "extra ==" not in requirement and (match := _REQUIREMENT.match(requirement)):
            _add_package(match[1], readable, listed, packages, seen)
    return True
