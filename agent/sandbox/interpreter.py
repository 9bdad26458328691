"""`InterpreterPool`: runs Python programs in Monty, an interpreter in Rust that has no way out of itself.

Its workers are processes with an empty environment. A program has no files, no network and no modules but those of the
interpreter; it calls the host by the functions that are given to it. A worker serves one program and is replaced, so
that nothing of one caller is left for the next.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.models import JsonObject
from agent.sandbox.client import SandboxError
from agent.sandbox.limits import Problem, ProgramResult, SandboxLimits

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty, MontyError

log = logging.getLogger(__name__)

CallHost = Callable[[str, list[Any]], Awaitable[Any]]
"""Answers a call of a program: the function's name and its arguments. An exception is raised in the program."""

MAX_HOST_CALLS = 50
"""Calls of the host that one program may make."""
_GRACE_SECONDS = 2.0
_WAIT_SECONDS = 60.0
"""How long a program waits for a free worker."""


class InterpreterPool:
    """At most `parallel` programs at a time; further ones wait. Safe to use from many tasks."""

    def __init__(self, *, parallel: int) -> None:
        self._parallel = parallel
        self._starting = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._pool: AsyncMonty | None = None

    async def run(
        self, code: str, inputs: JsonObject, limits: SandboxLimits, call_host: CallHost | None = None
    ) -> ProgramResult:
        """Runs a program; the value of its last expression is the result. The time of host calls does not count.

        The program calls the host as `stepgate_call(name, arguments)`. Raises `SandboxError`. Errors of the program are
        in the result.
        """
        from pydantic_monty import CollectString, MontyError  # noqa: PLC0415 - loaded at the first call

        pool = await self._start()
        printed = CollectString(max_bytes=limits.printed_bytes)
        value: Any = None
        error: MontyError | None = None
        try:
            async with pool.checkout(
                limits={
                    "max_feed_duration_secs": limits.seconds,
                    "max_memory": limits.memory_bytes,
                    "max_suspensions": MAX_HOST_CALLS,
                    "max_recursion_depth": 500,
                },
                os_policy={"sleep": "zero", "timezone": "utc"},  # a sleep would hold a worker
            ) as session:
                value = await session.feed_run(
                    code,
                    inputs={"inputs": inputs},
                    external_lookup={"stepgate_call": call_host} if call_host is not None else {},
                    print_callback=printed,
                )
        except MontyError as failure:
            error = failure
        except (OSError, TimeoutError) as failure:
            raise SandboxError(f"the interpreter's process failed: {failure}") from failure
        problem = None if error is None else _classify(error)
        return ProgramResult(
            value=value if error is None else None,
            printed=printed.output,
            artifacts=(),
            omitted_artifacts=0,
            cpu_s=0.0,
            error=None if error is None else str(error)[:2_000],
            problem=problem,
        )

    async def aclose(self) -> None:
        """Ends the workers."""
        async with self._starting:
            self._pool = None
            await self._stack.aclose()

    async def _start(self) -> "AsyncMonty":
        from pydantic_monty import AsyncMonty  # noqa: PLC0415 - loaded at the first call

        async with self._starting:
            if self._pool is None:
                pool = AsyncMonty(
                    binary_path=_find_binary(),
                    min_processes=1,
                    max_processes=self._parallel,
                    max_checkouts_per_worker=1,
                    checkout_timeout=_WAIT_SECONDS,
                    feed_duration_limit_grace=_GRACE_SECONDS,
                    turn_duration_limit_grace=_GRACE_SECONDS,
                )
                try:
                    self._pool = await self._stack.enter_async_context(pool)
                except OSError as error:
                    raise SandboxError(f"the interpreter cannot be started: {error}") from error
            return self._pool


def find_missing_interpreter() -> str | None:
    """Returns why the interpreter cannot be used on this machine, or None if it can."""
    if find_spec("pydantic_monty") is None:
        return "the package pydantic-monty is not installed"
    return None if _find_binary() is not None else "the package pydantic-monty-runtime is not installed"


def _find_binary() -> Path | None:
    """Returns the interpreter's program as the package has installed it: a program named `monty` that is found
    elsewhere may be another one.
    """
    try:
        files = distribution("pydantic-monty-runtime").files or ()
    except PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.stem == "monty" and file.suffix in ("", ".exe"))
    return next((path.resolve() for path in found if path.is_file()), None)


def _classify(error: "MontyError") -> Problem:
    text = str(error)
    if text.startswith("TimeoutError") or getattr(error, "timed_out", False):
        return "time"
    if text.startswith("MemoryError"):
        return "memory"
    return "program" if type(error).__name__ in ("MontyRuntimeError", "MontySyntaxError") else "died"
