"""`InterpreterPool`: runs Python programs in Monty, an interpreter in Rust that has no way out of itself.

Its workers are processes with an empty environment, and on Linux without files, network and rights
(`agent.sandbox.locked_exec`). A program has no modules but those of the interpreter; it calls the host by the functions
that are given to it. Every program gets a fresh session.
"""

import asyncio
import logging
import shlex
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import agent
from agent.core.extras import format_install_hint
from agent.core.models import JsonObject
from agent.sandbox.client import SandboxError
from agent.sandbox.limits import Problem, ProgramResult, SandboxLimits

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontyError

log = logging.getLogger(__name__)

CallHost = Callable[[str, list[Any]], Awaitable[Any]]
"""Answers a call of a program: the function's name and its arguments. An exception is raised in the program."""

MAX_HOST_CALLS = 50
"""Calls of the host that one program may make."""
_GRACE_SECONDS = 2.0
_WAIT_SECONDS = 60.0
"""How long a program waits for a free worker."""
_PROGRAMS_PER_WORKER = 20
"""A worker is replaced after so many programs. Starting a locked one takes 40 to 150 ms, a program in it 1 ms."""
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from agent.sandbox.locked_exec import main; del sys.path[0]; "
    "main(sys.argv[2], sys.argv[3:])"
)
_PROJECT = str(Path(agent.__path__[0]).parent)


class InterpreterPool:
    """At most `parallel` programs at a time; further ones wait. Safe to use from many tasks.

    Monty's own asyncio client is not used: its threads can call into Python while the process ends, which aborts it.
    """

    def __init__(self, *, parallel: int) -> None:
        self._parallel = parallel
        # Not asyncio's own threads: a host call may need one of those while a program waits for its answer.
        self._threads = ThreadPoolExecutor(parallel, thread_name_prefix="interpreter")
        self._starting = asyncio.Lock()
        self._stack = ExitStack()
        self._pool: Monty | None = None

    async def run(
        self, code: str, inputs: JsonObject, limits: SandboxLimits, call_host: CallHost | None = None
    ) -> ProgramResult:
        """Runs a program; the value of its last expression is the result. The time of host calls does not count.

        The program calls the host as `stepgate_host(name, arguments)`. Raises `SandboxError`. Errors of the program are
        in the result.
        """
        pool = await self._start()
        host = _Host(asyncio.get_running_loop(), call_host) if call_host is not None else None
        work = partial(_run_program, pool, code, inputs, limits, host)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            if host is not None:
                host.close()  # after a cancellation the thread goes on until its time is up

    async def aclose(self) -> None:
        """Ends the workers."""
        async with self._starting:
            self._pool = None
            await asyncio.to_thread(self._stack.close)
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _start(self) -> "Monty":
        async with self._starting:
            if self._pool is None:
                self._pool = await asyncio.to_thread(self._create_pool)
            return self._pool

    def _create_pool(self) -> "Monty":
        """Starts the first worker. Raises `SandboxError`."""
        from pydantic_monty import Monty  # noqa: PLC0415 - loaded at the first call

        try:
            binary = _find_binary()
            if binary is not None and sys.platform.startswith("linux"):
                binary = _write_launcher(self._stack.enter_context(TemporaryDirectory(prefix="stepgate-")), binary)
            pool = Monty(
                binary_path=binary,
                max_processes=self._parallel,
                max_checkouts_per_worker=_PROGRAMS_PER_WORKER,
                checkout_timeout=_WAIT_SECONDS,
                feed_duration_limit_grace=_GRACE_SECONDS,
                turn_duration_limit_grace=_GRACE_SECONDS,
            )
            return self._stack.enter_context(pool)
        except (OSError, RuntimeError) as error:
            raise SandboxError(f"the interpreter cannot be started: {error}") from error


class _Host:
    """Answers the calls of one program, which come from the thread that waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: CallHost) -> None:
        self._loop, self._call = loop, call
        self._is_closed = False
        self._made = 0
        self._pending: asyncio.Task[Any] | None = None

    def __call__(self, name: object, arguments: object) -> Any:
        """The answer. Raises RuntimeError and TypeError, which the program can handle."""
        self._made += 1
        if self._made > MAX_HOST_CALLS:
            raise RuntimeError(f"the gateway answers at most {MAX_HOST_CALLS} calls")
        if not (isinstance(name, str) and isinstance(arguments, list)):
            raise TypeError("a name and a list of arguments are needed")
        try:
            return asyncio.run_coroutine_threadsafe(self._answer(name, arguments), self._loop).result()
        except CancelledError as error:
            raise RuntimeError("the gateway no longer answers") from error

    async def _answer(self, name: str, arguments: list[Any]) -> Any:
        """Runs in the loop, as `close` does: a call that has begun is ended by it, a later one is refused."""
        if self._is_closed:
            raise RuntimeError("the gateway no longer answers")
        self._pending = asyncio.current_task()
        return await self._call(name, arguments)

    def close(self) -> None:
        """Ends the call that is being answered, and refuses further ones: nobody waits for the program now."""
        self._is_closed = True
        if self._pending is not None:
            self._pending.cancel()


def _run_program(
    pool: "Monty", code: str, inputs: JsonObject, limits: SandboxLimits, host: _Host | None
) -> ProgramResult:
    """Runs a program in a session of its own; blocks."""
    from pydantic_monty import CollectString, MontyError  # noqa: PLC0415 - loaded at the first call

    printed = CollectString(max_bytes=limits.printed_bytes)
    value: Any = None
    failure: MontyError | None = None
    try:
        with pool.checkout(
            limits={
                "max_feed_duration_secs": limits.seconds,
                "max_memory": limits.memory_bytes,
                "max_suspensions": 4 * MAX_HOST_CALLS,  # looking up the host's name counts too
                "max_recursion_depth": 500,
            },
            os_policy={"sleep": "zero", "timezone": "utc"},  # a sleep would hold a worker
        ) as session:
            value = session.feed_run(
                code,
                inputs={"inputs": inputs},
                external_lookup={} if host is None else {"stepgate_host": host},
                print_callback=printed,
            )
    except MontyError as error:
        failure = error
    except (OSError, TimeoutError) as error:
        raise SandboxError(f"the interpreter's process failed: {error}") from error
    return ProgramResult(
        value=value if failure is None else None,
        printed=printed.output,
        artifacts=(),
        omitted_artifacts=0,
        cpu_s=0.0,
        error=None if failure is None else str(failure)[:2_000],
        problem=None if failure is None else _classify(failure),
    )


def find_missing_interpreter() -> str | None:
    """The reason why the interpreter cannot be used on this machine, or None if it can."""
    if find_spec("pydantic_monty") is None:
        return f"the package pydantic-monty is not installed; {format_install_hint('interpreter')}"
    return None if _find_binary() is not None else "the package pydantic-monty-runtime is not installed"


def _write_launcher(folder: str, binary: Path) -> Path:
    """A program that locks itself and becomes the worker: the pool starts workers by one path."""
    command = [sys.executable, "-I", "-S", "-B", "-c", _START, _PROJECT, str(binary)]
    launcher = Path(folder) / "worker"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
    launcher.chmod(0o700)
    return launcher


def _find_binary() -> Path | None:
    """The interpreter's program as the package has installed it: a program named `monty` that is found
    elsewhere may be another one.
    """
    try:
        files = distribution("pydantic-monty-runtime").files or ()
    except PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.stem == "monty" and file.suffix in ("", ".exe"))
    return next((path.resolve() for path in paths if path.is_file()), None)


def _classify(error: "MontyError") -> Problem:
    text = str(error)
    if text.startswith("TimeoutError") or getattr(error, "timed_out", False):
        return "time"
    if text.startswith("MemoryError"):
        return "memory"
    return "program" if type(error).__name__ in ("MontyRuntimeError", "MontySyntaxError") else "died"
