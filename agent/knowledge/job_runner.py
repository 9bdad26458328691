"""`IngestJobs`: takes up the jobs that nobody does and carries them out, a few at a time.

A job is an ingestion, or vectors made anew; both go on where they were when they are begun again: one whose process
died is simply done again.
"""

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from agent.core.errors import AgentError, StoreError
from agent.core.models import JsonObject
from agent.core.outage import Outage
from agent.knowledge.hold import CollectionHeldError
from agent.knowledge.jobs import Job, JobOutcome, JobProgress, JobRequest, JobStore, reindex_json, report_json
from agent.knowledge.library import Library

log = logging.getLogger(__name__)

AT_ONCE = 2
"""Jobs under way in one process; each has parsers of its own."""
LEASE_SECONDS = 30.0
"""How long a job of a process that died stays with it."""
BEAT_SECONDS = 1.0
"""How often a job says how far it is."""
LOOK_SECONDS = 5.0
"""How often a process looks for jobs of others that died; its own start at once."""
ATTEMPTS = 3
"""A job that has killed its process so often is given up."""


class IngestJobs:
    """The jobs of this process. `roots` are the only folders their local files are read from."""

    def __init__(self, store: JobStore, library: Library, roots: Sequence[Path]) -> None:
        self.store = store
        self._library = library
        self._roots = tuple(roots)
        self._worker = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to take up jobs: those that are left from before, and those that come."""
        self._loop = asyncio.create_task(self._take_up(), name="jobs")

    async def aclose(self) -> None:
        """Stop; what is under way is left for the next start."""
        tasks = [task for task in (self._loop, *self._tasks) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def submit(self, owner: str, collection: str, request: JobRequest) -> Job:
        """A new job; it starts as soon as there is a place for it. `BusyError`."""
        job = await self.store.create(owner, collection, request)
        self._wake.set()
        return job

    async def wait(self, owner: str, job_id: str, seconds: float) -> Job:
        """The job, once it is finished or so much time has passed. `NotFoundError`."""
        until = monotonic() + seconds
        while True:
            ended = self._ended  # replaced at each end: what happens after this line is not missed
            job = await self.store.get(owner, job_id)
            left = until - monotonic()
            if job.is_finished or left <= 0:
                return job
            with contextlib.suppress(TimeoutError):  # another process may be the one that does it
                async with asyncio.timeout(min(left, BEAT_SECONDS)):
                    await ended.wait()

    async def _take_up(self) -> None:
        trouble = Outage(log, "jobs cannot be looked for")
        while True:
            self._wake.clear()
            try:
                while len(self._tasks) < AT_ONCE and (job := await self.store.claim(self._worker, LEASE_SECONDS)):
                    task = asyncio.create_task(self._do(job), name=job.id)
                    self._tasks.add(task)
                    task.add_done_callback(self._done)
                trouble.over()
            except StoreError as error:
                trouble.met(error.message, error.code)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wake.wait()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()
        self._ended.set()
        self._ended = asyncio.Event()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s is left for later: %s", task.get_name(), error, exc_info=error)

    async def _do(self, job: Job) -> None:
        """One job to its end, or back among those that wait."""
        told = _Told()
        try:
            outcome = await self._carried_out(job, told)
        except _LostError:
            log.warning("%s goes on in another process", job.id)
            return
        except asyncio.CancelledError:
            await asyncio.shield(self.store.put_back(job, self._worker, "interrupted", 0))
            raise
        except CollectionHeldError as error:
            log.info("%s waits: %s", job.id, error.message)
            await self.store.put_back(job, self._worker, "queued", LOOK_SECONDS)
            return
        except AgentError as error:
            outcome = JobOutcome(failure=error.failure())
        except Exception:  # the border of a task: a defect ends this job, and no other
            log.exception("%s ended by a defect", job.id)
            outcome = JobOutcome(failure=AgentError("a defect of Stepgate ended this job; the log has it").failure())
        await self.store.finish(job, self._worker, told.progress, outcome)

    async def _carried_out(self, job: Job, told: "_Told") -> JobOutcome:
        """The work, as long as the job is ours."""
        if job.attempts > ATTEMPTS:
            raise AgentError(
                f"the gateway ended {ATTEMPTS} times while it did this job; its log may say why. Ask for it again "
                "without the documents it was at",
                agent_id="library",
                current=told.progress.current or job.progress.current,
            )
        work = asyncio.create_task(self._work(job, told))
        beat = asyncio.create_task(self._beat(job, told))
        try:
            await asyncio.wait({work, beat}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise _LostError
            return JobOutcome(report=work.result())
        finally:
            work.cancel()
            beat.cancel()
            await asyncio.wait({work, beat})

    async def _work(self, job: Job, told: "_Told") -> JsonObject:
        """What is asked for; its report."""
        request = job.request
        if request.source is None:
            return reindex_json(await self._library.reindex(job.owner, job.collection, progress=told.tell))
        report = await self._library.ingest(
            job.owner,
            job.collection,
            request.source,
            pipeline=request.pipeline,
            roots=self._roots,
            progress=told.tell,
        )
        return report_json(report)

    async def _beat(self, job: Job, told: "_Told") -> None:
        """Say how far it is, for as long as it is ours."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                if not await self.store.beat(job, self._worker, told.progress, LEASE_SECONDS):
                    return
            except StoreError as error:
                log.warning("%s could not say how far it is: %s", job.id, error.message)


class _LostError(Exception):
    """Raised when another worker has taken the job."""


class _Told:
    """What an ingestion last said of itself."""

    def __init__(self) -> None:
        self.progress = JobProgress()

    def tell(self, current: str, done: int, total: int | None) -> None:
        """See `Progress`."""
        self.progress = JobProgress(current=current, done=done, total=total)
