"""`LocalDispatcher`: does jobs in this process. The default, with SQLite or PostgreSQL."""

import asyncio
import contextlib
import heapq
import itertools
import logging
from collections.abc import Mapping
from time import monotonic

from agent.core.cancellation import cancel_and_wait
from agent.runs.dispatch import MAX_ATTEMPTS, DeadJobError, Job, JobHandler, Lane, PostponeJobError, drain_tasks

log = logging.getLogger(__name__)

SLOTS: Mapping[Lane, int] = {"runs": 15, "batch": 4, "ingest": 2}
"""Jobs of a lane that are done at the same time; each ingestion has parsers of its own."""
RETRY_SECONDS = 1.0


class LocalDispatcher:
    """Implements `Dispatcher`. Jobs that wait are in memory: their producers defer them again after a restart."""

    is_shared = False

    def __init__(self) -> None:
        self._handlers: dict[str, JobHandler] = {}
        self._waiting: dict[Lane, list[tuple[float, int, int, Job]]] = {lane: [] for lane in SLOTS}
        """Heaps by the time at which a job may begin; the numbers are its place in line and its attempts so far."""
        self._numbers = itertools.count()
        self._changed = asyncio.Event()
        self._running: dict[asyncio.Task[None], Lane] = {}
        self._loop: asyncio.Task[None] | None = None

    def register(self, kind: str, handler: JobHandler) -> None:
        """See `Dispatcher.register`."""
        self._handlers[kind] = handler

    async def defer(self, *jobs: Job) -> None:
        """See `Dispatcher.defer`."""
        for job in jobs:
            if job.key is None or all(job.key != other[3].key for other in self._waiting[job.lane]):
                self._push(job, job.delay_s, 0)

    async def start(self) -> None:
        """See `Dispatcher.start`."""
        self._loop = asyncio.create_task(self._begin_jobs(), name="jobs of this process")

    async def drain(self, seconds: float) -> None:
        """See `Dispatcher.drain`."""
        if self._loop is not None:
            await cancel_and_wait(self._loop)
        await drain_tasks(self._running, seconds)

    async def aclose(self) -> None:
        """See `Dispatcher.aclose`."""
        await self.drain(0)

    def _push(self, job: Job, delay_s: float, attempts: int) -> None:
        heapq.heappush(self._waiting[job.lane], (monotonic() + delay_s, next(self._numbers), attempts, job))
        self._changed.set()

    async def _begin_jobs(self) -> None:
        while True:
            self._changed.clear()
            pause = min((self._begin_lane(lane) for lane in self._waiting), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause if pause != float("inf") else None):
                    await self._changed.wait()

    def _begin_lane(self, lane: Lane) -> float:
        """Begins what may begin. Returns the seconds until the next job may; infinity if that depends on others."""
        waiting = self._waiting[lane]
        while waiting and list(self._running.values()).count(lane) < SLOTS[lane]:
            left = waiting[0][0] - monotonic()
            if left > 0:
                return left
            _, _, attempts, job = heapq.heappop(waiting)
            task = asyncio.create_task(self._do(job, attempts + 1), name=f"job {job.kind}")
            self._running[task] = lane
            task.add_done_callback(self._remove)
        return float("inf")

    def _remove(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._changed.set()

    async def _do(self, job: Job, attempt: int) -> None:
        try:
            await self._handlers[job.kind](job.arguments)
        except PostponeJobError as postponed:
            self._push(job, postponed.seconds, attempt - 1)
        except DeadJobError as error:
            log.error("a job %s is given up: %s", job.kind, error)  # noqa: TRY400 - no defect
        except Exception:  # the border of a task: a defect ends this job, and no other
            log.exception("a job %s failed (attempt %d of %d)", job.kind, attempt, MAX_ATTEMPTS)
            if attempt < MAX_ATTEMPTS:
                self._push(job, RETRY_SECONDS * 2**attempt, attempt)
