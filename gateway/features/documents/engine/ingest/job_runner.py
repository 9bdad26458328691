"""`IngestJobs`: claims waiting jobs and runs them, a few at a time.

A job is an ingestion or a re-index. Both continue where they stopped, so a job whose process died is simply run again.
A process with room also reads batches of ingestions that other processes have.
"""

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import AgentError, BusyError, CollectionLockedError, NotFoundError, StoreError
from agent.core.models import JsonObject
from agent.core.throttled_log import ThrottledLog
from agent.storage.leases import LeaseLostError, hold_lease, keep_renewed
from gateway.features.documents.engine.ingest.file_locations import describe_folder, is_visible
from gateway.features.documents.engine.ingest.job_ingestion import BatchesFailedError, JobIngestion
from gateway.features.documents.engine.ingest.jobs import (
    Job,
    JobOutcome,
    JobProgress,
    JobRequest,
    JobStore,
    reindex_report_to_json,
    report_to_json,
)
from gateway.features.documents.engine.ingest.library import Library

log = logging.getLogger(__name__)

CONCURRENT_JOBS = 2
"""Jobs running in one process; each has its own parsers."""
LEASE_SECONDS = 30.0
"""How long a dead process keeps its job."""
HEARTBEAT_SECONDS = 1.0
"""How often a job reports progress and renews its lease."""
POLL_SECONDS = 2.0
"""How often a process looks for jobs of dead processes and for batches of others; its own jobs start at once."""
DUE_JOBS = 20
"""Jobs of others that a process with room looks at."""
ATTEMPTS = 3
"""A job that ended its process, or met a failing store, this often without getting further is given up."""
RETRY_SECONDS = 2.0
"""Wait before a job that met a failing store is continued; doubled for each attempt."""


class IngestJobs:
    """The jobs of this process. Local files are read beneath `roots` only."""

    def __init__(self, store: JobStore, library: Library, roots: Sequence[Path]) -> None:
        self.store = store
        self._library = library
        self._roots = roots
        self._worker = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._wake = asyncio.Event()
        self._finished_event = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Starts to claim jobs, waiting and new ones."""
        self._loop = asyncio.create_task(self._claim_jobs(), name="jobs")

    async def aclose(self) -> None:
        """Stops. Running jobs are left for the next start."""
        await cancel_and_wait(*(task for task in (self._loop, *self._tasks) if task is not None))

    async def submit(self, owner: str, collection: str, request: JobRequest) -> Job:
        """Creates a job; it starts when there is room. Raises `BusyError`."""
        place = await asyncio.to_thread(self._find_place, request)
        job = await self.store.create(owner, collection, request, place)
        self._wake.set()
        return job

    async def wait(self, owner: str, job_id: str, seconds: float) -> Job:
        """The job once it is finished or `seconds` have passed. Raises `NotFoundError`."""
        until = monotonic() + seconds
        while True:
            ended = self._finished_event  # replaced at each end: what happens after this line is not missed
            job = await self.store.get(owner, job_id)
            left = until - monotonic()
            if job.is_finished or left <= 0:
                return job
            with contextlib.suppress(TimeoutError):  # another process may be the one that does it
                async with asyncio.timeout(min(left, HEARTBEAT_SECONDS)):
                    await ended.wait()

    async def _claim_jobs(self) -> None:
        with ThrottledLog(log, "what ended jobs have fetched is left until the next start").guard():
            await self._remove_left_traces()
        trouble = ThrottledLog(log, "jobs cannot be looked for")
        while True:
            self._wake.clear()
            with trouble.guard():
                while len(self._tasks) < CONCURRENT_JOBS and await self._start_next():
                    pass
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()

    async def _remove_left_traces(self) -> None:
        """Removes what jobs have left whose process died between their end and that."""
        for job in await self.store.list_with_traces():
            if await self._is_visible(job.place):
                await self._make_ingestion(job).remove_traces()

    async def _start_next(self) -> bool:
        """Starts a job, or helps with one of another process. Returns False if there is nothing to do."""
        if (job := await self.store.claim(self._worker, LEASE_SECONDS, self._can_do)) is not None:
            task = asyncio.create_task(self._run_job(job), name=job.id)
        elif (job := await self._find_job_to_help()) is not None:
            task = asyncio.create_task(self._help(job), name=f"help {job.id}")
        else:
            return False
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return True

    async def _can_do(self, job: Job) -> bool:
        """Whether this process sees the files of a job. What is not local can be fetched again.

        A job whose lease it has just lost is left to others: a worker has one claim of a job.
        """
        if job.id in self._list_tasks():
            return False
        return not (job.place and job.request.is_local) or await self._is_visible(job.place)

    def _find_place(self, request: JobRequest) -> str:
        """Finds where the local files of a request lie, so that only processes that see the same ones take the job.

        Empty if this process does not see them: the process that takes the job reports why it cannot be done.
        """
        if request.source is None or not request.is_local:
            return ""
        try:
            place = describe_folder(Path(request.source.source_identifier).expanduser())
        except (OSError, ValueError):  # nothing is there, or a NUL is in the name
            return ""
        return place if is_visible(place, self._library.resources.objects, self._roots) else ""

    def _list_tasks(self) -> set[str]:
        return {task.get_name() for task in self._tasks}

    async def _is_visible(self, place: str) -> bool:
        return await asyncio.to_thread(is_visible, place, self._library.resources.objects, self._roots)

    async def _find_job_to_help(self) -> Job | None:
        for owner, job_id, place in await self.store.batches.list_due_jobs(DUE_JOBS):
            is_new = not {job_id, f"help {job_id}"} & self._list_tasks()
            if is_new and await self._is_visible(place):
                with contextlib.suppress(NotFoundError):  # deleted just now
                    return await self.store.get(owner, job_id)
        return None

    async def _help(self, job: Job) -> None:
        try:
            await self._make_ingestion(job).help()
        except* AgentError as errors:
            log.warning("%s is left to others: %s", job.id, errors.exceptions[0])

    def _make_ingestion(self, job: Job) -> JobIngestion:
        return JobIngestion(self._library, self.store, job, self._worker, self._roots)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()
        self._finished_event.set()
        self._finished_event = asyncio.Event()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s is left for later: %s", task.get_name(), error, exc_info=error)

    async def _run_job(self, job: Job) -> None:
        """Runs one job to its end, or puts it back into the queue."""
        latest = _LatestProgress(job.walked)
        try:
            outcome = await self._run_with_lease(job, latest)
        except (LeaseLostError, BusyError):
            log.warning("%s goes on in another process", job.id)
            return
        except asyncio.CancelledError:
            await asyncio.shield(self.store.requeue(job, self._worker, "interrupted", 0))
            raise
        except CollectionLockedError as error:
            log.info("%s waits: %s", job.id, error.message)
            await self.store.requeue(job, self._worker, "queued", POLL_SECONDS)
            return
        except BatchesFailedError as error:
            outcome = JobOutcome(failure=error.failure)
        except StoreError as error:
            # What was done is done, whether or not the store has said so; a further attempt looks at what is there.
            wait_s = RETRY_SECONDS * 2 ** (job.attempts - 1)
            if await self.store.retry(job, self._worker, wait_s, ATTEMPTS):
                log.warning("%s is continued later: %s", job.id, error.message)
                return
            outcome = JobOutcome(failure=error.to_failure())
        except AgentError as error:
            outcome = JobOutcome(failure=error.to_failure())
        except Exception:  # the border of a task: a defect ends this job, and no other
            log.exception("%s ended with an internal error", job.id)
            outcome = JobOutcome(
                failure=AgentError("an internal error ended this job; the gateway's log has the details").to_failure()
            )
        if await self.store.finish(job, self._worker, latest.progress, outcome):
            await self._make_ingestion(job).remove_traces()
        else:
            log.warning("%s goes on in another process", job.id)

    async def _run_with_lease(self, job: Job, latest: "_LatestProgress") -> JobOutcome:
        """Runs the job while this process holds its lease."""
        if job.attempts > ATTEMPTS:
            raise AgentError(
                f"the gateway stopped {ATTEMPTS} times during this job; its log may say why. Request it again "
                "without the documents it was reading",
                agent_id="library",
                current=latest.progress.current or job.progress.current,
            )
        report = await hold_lease(self._execute(job, latest), self._renew_lease(job, latest))
        return JobOutcome(report=report)

    async def _execute(self, job: Job, latest: "_LatestProgress") -> JsonObject:
        """Does what the job asks for; returns its report."""
        request = job.request
        if request.source is None:
            return reindex_report_to_json(
                await self._library.reindex(job.owner, job.collection, progress=latest.update)
            )
        report = await self._make_ingestion(job).run(latest.update)
        return report_to_json(report)

    async def _renew_lease(self, job: Job, latest: "_LatestProgress") -> None:
        """Reports progress and renews the lease; returns when the lease is lost."""

        async def renew() -> bool:
            return await self.store.renew_lease(job, self._worker, latest.progress, LEASE_SECONDS)

        await keep_renewed(renew, name=job.id, every_s=HEARTBEAT_SECONDS)


class _LatestProgress:
    """The latest progress of a job, without its batches. It goes on from that of an earlier process."""

    def __init__(self, progress: JobProgress) -> None:
        self.progress = progress

    def update(self, current: str, done: int, total: int | None) -> None:
        """Implements `Progress`."""
        total = total if total is not None else self.progress.total
        self.progress = JobProgress(current=current, done=max(done, self.progress.done), total=total)
