"""`QueueDispatcher`: shares jobs with other processes through procrastinate's tables in our PostgreSQL.

The queue gives at-least-once execution, order, delay and heartbeats. What is true of a run stays in the journal: a job
only wakes it up. For the four precautions without which jobs were lost, see docs/scale.md.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import procrastinate
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job as StoredJob

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import StoreError
from agent.core.models import JsonObject
from agent.core.throttled_log import ThrottledLog
from agent.runs.dispatch import LANES, Job, JobHandler, Lane, PostponeJobError, drain_tasks
from agent.storage.postgres import PostgresDatabase
from gateway.features.fleet.engine.fair_queueing import take_priority
from gateway.features.fleet.engine.lane_worker import LaneJobManager, LaneWorker, RetryFailures, build_connector
from gateway.features.fleet.engine.queue_names import list_queues, name_ingest_queue, name_run_queue
from gateway.features.fleet.engine.run_jobs import QueuedRunJobs, announce_job, name_task

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How often a lane looks for jobs that came without a notification: those to retry."""
RESTART_SECONDS = 1.0
"""How long a lane that the database has thrown out waits before it begins again."""
ABORT_SECONDS = 0.2
"""How long a lane that has lost the database leaves its handlers. Runs go on without their job; see `_do`."""
CLOSE_SECONDS = 3.0
"""How long the lanes may take to say goodbye to the database."""
INGEST_SLOTS = 2
"""Ingestion jobs that a process does at the same time; each has parsers of its own."""


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The share of a process in the queue."""

    name: str
    """The name of the process, as in the journal."""
    digest: str
    """Of the rooms, roots, servers and skills that a run finds here."""
    roots: tuple[Path, ...]
    lanes: tuple[Lane, ...] = LANES
    slots: int = 15
    """Runs of each lane at the same time; 0 takes no jobs at all."""
    lease_s: float = 15.0
    """How long a process may be silent before its jobs are given to others, in seconds."""


class QueueDispatcher:
    """Implements `Dispatcher`. `runs` has what is particular to runs."""

    is_shared = True

    def __init__(self, database: PostgresDatabase, options: QueueOptions) -> None:
        self.options = options
        self._database = database
        # It logs a line for each job, as our own log does for each run.
        logging.getLogger("procrastinate").setLevel(logging.ERROR)
        self._app = procrastinate.App(connector=build_connector(database.url, options.lease_s / 2))
        self.manager = self._app.job_manager = LaneJobManager(
            self._app.connector, process=options.name, count_slots=self._count_slots
        )
        self.runs = QueuedRunJobs(self._app, database)
        self._handlers: dict[str, JobHandler] = {}
        self._lanes: list[asyncio.Task[None]] = []
        self._loops: list[asyncio.Task[None]] = []
        self._workers: dict[Lane, LaneWorker] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._is_draining = False
        self._background: list[Callable[[], Coroutine[Any, Any, None]]] = []

    def get_run_queue(self, lane: Lane) -> str:
        """The queue of runs that any process like this one may execute."""
        return name_run_queue(lane, self.options.digest)

    def list_own_queues(self) -> list[str]:
        """Every queue from which this process takes jobs."""
        lanes = self.options.lanes if self.options.slots else ()
        return [queue for lane in lanes for queue in list_queues(lane, self.options.digest, self.options.roots)]

    def register(self, kind: str, handler: JobHandler) -> None:
        """See `Dispatcher.register`."""
        self._handlers[kind] = handler

        async def do(context: procrastinate.JobContext, /, **arguments: Any) -> None:
            await self._do(kind, context.job, arguments)

        self._app.task(name=name_task(kind), pass_context=True, retry=RetryFailures(self.manager))(do)

    def add_background(self, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Adds a loop that runs from `start` to `aclose`, such as the sweep."""
        self._background.append(loop)

    async def defer(self, *jobs: Job) -> None:
        """See `Dispatcher.defer`. All in one transaction."""
        async with self._database.transaction() as db:
            for job in jobs:
                queue = name_ingest_queue(job.root) if job.lane == "ingest" else self.get_run_queue(job.lane)
                begin = datetime.now(UTC) + timedelta(seconds=job.delay_s) if job.delay_s else None
                deferrer = self._app.configure_task(
                    name_task(job.kind),
                    queue=queue,
                    queueing_lock=job.key,
                    schedule_at=begin,
                    priority=await take_priority(db, queue, job.owner, job.cost),
                    connection=db,
                )
                try:
                    async with db.transaction():
                        await deferrer.defer_async(**job.arguments)
                    announce_job(self._database, db, queue)
                except AlreadyEnqueued:
                    continue
                except ConnectorException as error:
                    raise error.__cause__ or error from None

    async def start(self) -> None:
        """See `Dispatcher.start`. Raises `StoreError`."""
        try:
            await self._app.open_async()
        except ConnectorException as error:
            raise StoreError(f"the queue cannot be opened: {error.__cause__ or error}", agent_id="queue") from error
        lanes = self.options.lanes if self.options.slots else ()
        self._lanes = [asyncio.create_task(self._keep_lane(lane), name=f"lane {lane}") for lane in lanes]
        self._loops = [asyncio.create_task(loop(), name="queue") for loop in self._background]

    def stop_fetching(self) -> None:
        """Takes no further jobs. Those that run are waited for by `drain`."""
        self._is_draining = True
        for worker in self._workers.values():
            worker.shutdown_graceful_timeout = None  # the handlers are cancelled by `drain`, in time
            worker.stop()

    async def drain(self, seconds: float) -> None:
        """See `Dispatcher.drain`."""
        self.stop_fetching()
        await drain_tasks(self._running, seconds)

    async def aclose(self) -> None:
        """See `Dispatcher.aclose`."""
        await self.drain(0)
        slow = set(self._loops)
        if self._lanes:
            _, late = await asyncio.wait(self._lanes, timeout=CLOSE_SECONDS)
            slow |= late
        await cancel_and_wait(*slow)
        with contextlib.suppress(ConnectorException):
            await self._app.close_async()

    async def _keep_lane(self, lane: Lane) -> None:
        """Keeps a worker on the queues of a lane: a restart of PostgreSQL throws it out."""
        trouble = ThrottledLog(log, f"the lane {lane} has lost the database and begins again")
        while not self._is_draining:
            worker = self._workers[lane] = self._build_worker(lane)
            try:
                await worker.run()  # type: ignore[no-untyped-call]
            except (ConnectorException, OSError) as error:
                trouble.record_failure(str(error.__cause__ or error))
            else:
                trouble.record_recovery()
            if not self._is_draining:
                await asyncio.sleep(RESTART_SECONDS)

    def _count_slots(self, lane: Lane) -> int:
        return INGEST_SLOTS if lane == "ingest" else self.options.slots

    def _build_worker(self, lane: Lane) -> LaneWorker:
        lease_s = self.options.lease_s
        return LaneWorker(
            self._app,
            jobs=self.manager,
            queues=list_queues(lane, self.options.digest, self.options.roots),
            name=f"{self.options.name} {lane}",
            concurrency=self._count_slots(lane),
            delete_jobs="successful",
            # Nobody waits for ingestion; a connection that listens for it would be idle.
            listen_notify=lane != "ingest",
            fetch_job_polling_interval=min(POLL_SECONDS, lease_s / 4),
            abort_job_polling_interval=60.0,  # nothing of ours aborts jobs
            update_heartbeat_interval=lease_s / 4,
            stalled_worker_timeout=4 * lease_s,
            shutdown_graceful_timeout=ABORT_SECONDS,
            install_signal_handlers=False,
        )

    async def _do(self, kind: str, job: StoredJob, arguments: JsonObject) -> None:
        """Calls a handler. What ends this call does not end the handler's own work, such as a run.

        A cancellation never leaves this method: procrastinate would call the job aborted, and nobody would do it again.
        """
        task = asyncio.create_task(self._call_handler(kind, arguments), name=f"job {job.id} {kind}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            await cancel_and_wait(task)
        error = PostponeJobError("its process ends") if task.cancelled() else task.exception()
        if error is not None and not await self._has_successor(job):
            raise error

    async def _call_handler(self, kind: str, arguments: JsonObject) -> None:
        await self._handlers[kind](arguments)

    async def _has_successor(self, job: StoredJob) -> bool:
        """Whether another job with the same key waits: then this one need not, and could not, wait again."""
        if job.queueing_lock is None:
            return False
        try:
            return bool([*await self.manager.list_jobs_async(queueing_lock=job.queueing_lock, status="todo")])
        except ConnectorException:
            return False
