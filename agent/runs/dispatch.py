"""The port of dispatch: jobs that any process may do, and who does them.

A job is a name of a handler with JSON arguments. It is done at least once, so a handler must find out itself what is
left to do. `agent/runs/local_dispatch.py` does jobs in this process; the feature `fleet` shares them with others in
PostgreSQL. Runs are jobs too, but their state is in the journal.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from agent.core.cancellation import cancel_and_wait
from agent.core.models import JsonObject

Lane = Literal["runs", "batch", "ingest"]
"""A kind of work with slots of its own: runs that somebody waits for, runs that can wait, and ingestion."""
LANES: Final[tuple[Lane, ...]] = ("runs", "batch", "ingest")
JobHandler = Callable[[JsonObject], Awaitable[None]]
"""Does a job. Returns when it is done. Raises `PostponeJobError` to have it done again later, `DeadJobError` to give it
up; any other error has it repeated up to `MAX_ATTEMPTS` times."""
RUN_JOB: Final = "run"
"""The kind of a job that wakes up a run; its argument is `run_id`, which is also its key."""
MAX_ATTEMPTS: Final = 5
"""How often a job whose handler fails is tried before it stays as a dead letter."""


class PostponeJobError(Exception):
    """Raised by a handler whose job cannot be done now. It is done again after `seconds`."""

    def __init__(self, reason: str, seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.seconds = seconds


class DeadJobError(Exception):
    """Raised by a handler whose job can never be done. It stays in the queue as a dead letter for a person."""


@dataclass(frozen=True, slots=True)
class Job:
    """Work for a handler, on behalf of `owner`."""

    kind: str
    """The name under which its handler is registered."""
    arguments: JsonObject
    owner: str
    lane: Lane = "ingest"
    root: Path | None = None
    """The folder of files that it reads: only processes that may read this folder (AGENT_FILE_ROOTS) do it."""
    key: str | None = None
    """At most one job with this key waits; deferring a second one does nothing."""
    cost: float = 1.0
    """How much work it is compared with the other jobs of its lane, for fairness between owners."""
    delay_s: float = 0.0


class Dispatcher(Protocol):
    """Has jobs done, here or in other processes."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes do jobs of this store too. Else a job that is not done is lost with this process."""
        ...

    def register(self, kind: str, handler: JobHandler) -> None:
        """Names the handler of a kind of jobs. Call it before `start`, in every process that does such jobs."""
        ...

    async def defer(self, *jobs: Job) -> None:
        """Hands jobs over. When it returns, a shared dispatcher has stored all of them. Raises `StoreError`."""
        ...

    async def start(self) -> None:
        """Begins to do jobs."""
        ...

    async def drain(self, seconds: float) -> None:
        """Begins no more jobs, waits `seconds` for running ones, and hands the rest back."""
        ...

    async def aclose(self) -> None:
        """Releases what it holds. Call `drain` before."""
        ...


async def drain_tasks(tasks: Iterable[asyncio.Task[None]], seconds: float) -> None:
    """Waits for the tasks, and cancels those that are not done after `seconds`."""
    waiting = set(tasks)
    if waiting:
        _, waiting = await asyncio.wait(waiting, timeout=seconds)
    await cancel_and_wait(*waiting)
