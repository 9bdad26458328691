"""`LaneJobManager`: fetches, listens for and ends the jobs of the lanes of a process, for procrastinate's workers.

It overrides public methods of procrastinate's `JobManager` and of `Worker` only.
"""

import asyncio
import contextlib
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import procrastinate
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job as StoredJob
from procrastinate.jobs import Notification, Status
from procrastinate.manager import JobManager, NotificationCallback
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool

from agent.core.errors import StoreError
from agent.runs.dispatch import MAX_ATTEMPTS, DeadJobError, Lane, PostponeJobError
from agent.storage.postgres import IDLE_SECONDS, Connection, add_options, check_connection
from gateway.features.fleet.engine.queue_names import get_lane

log = logging.getLogger(__name__)

_Queues = tuple[str, ...]
"""The queues of one lane."""

CONNECTIONS = 5
"""Connections of the lanes of a process, for fetching and finishing jobs; each lane that listens holds one more."""
RETRY_SECONDS = 1.0
"""How long a job waits after its handler's first failure; doubled for each further one."""
STORE_SECONDS = 10.0
"""The longest pause before the end of a job that could not be stored is stored again."""
SHORTEST_PAUSE_SECONDS = 0.002
LONGEST_PAUSE_SECONDS = 0.05
"""Between these a process pauses before it looks for a job, if others are often faster."""

_REGISTER: Final = (
    "INSERT INTO queue_workers (worker_id, name, queue, slots, started) VALUES (%(worker_id)s, %(name)s, %(queue)s, "
    "%(slots)s, extract(epoch FROM now()))"
)
# Only while the job is still that worker's: another process may have taken it over.
_OF_WORKER: Final = (
    "WHERE id = %(job_id)s AND status = 'doing' AND worker_id IS NOT DISTINCT FROM %(worker_id)s RETURNING id"
)
_REMOVE: Final = f"DELETE FROM procrastinate_jobs {_OF_WORKER}"  # noqa: S608 - constants only
_GIVE_UP: Final = f"UPDATE procrastinate_jobs SET status = 'failed', attempts = attempts + 1 {_OF_WORKER}"  # noqa: S608
_REPEAT: Final = (
    "UPDATE procrastinate_jobs SET status = 'todo', attempts = attempts + %(failures)s, "  # noqa: S608 - constants only
    f"scheduled_at = %(begin)s {_OF_WORKER}"
)
_ANY_WAITING: Final = (
    "SELECT 1 FROM procrastinate_jobs WHERE queue_name = ANY(%(queues)s) AND status = 'todo' "
    "AND (scheduled_at IS NULL OR scheduled_at <= now()) LIMIT 1"
)


class LaneJobManager(JobManager):
    """procrastinate's manager of jobs, which lists a worker before it takes jobs, does not search for a job where none
    waits, misses no announcement, counts only failures as attempts, and ends a job only for the worker that has it.

    Every deviation has its reason and figure in docs/adr/0018-queue.md. `process` is the name of this process;
    `count_slots` says how many jobs of a lane it does at the same time.
    """

    def __init__(self, connector: BaseConnector, *, process: str, count_slots: Callable[[Lane], int]) -> None:
        super().__init__(connector)
        self._process = process
        self._count_slots = count_slots
        self._pauses: dict[_Queues, float] = {}
        self._announcements = Counter[_Queues]()
        self._workers: dict[int, asyncio.Event] = {}
        """The listed workers of this process, with what is set once one stops."""
        self._postponed: set[int] = set()
        """The jobs whose next retry is not a failure."""

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> StoredJob | None:
        """See `JobManager.fetch_job`.

        Looks again if a job was announced meanwhile: the worker forgets announcements when a look ends, but the job may
        have been stored after the server had answered, and would wait for the next poll.
        """
        names = tuple(queues or ())
        try:
            stopping = await self._list_worker(worker_id, names)
            while True:
                announced = self._announcements[names]
                job = await self._look_for_job(names, worker_id)
                if job is not None or announced == self._announcements[names] or stopping.is_set():
                    return job
        except Exception:
            self.stop_worker(worker_id)  # procrastinate's worker ends then without a call of `stop`
            raise

    async def _list_worker(self, worker_id: int, queues: _Queues) -> asyncio.Event:
        """Lists a worker, once: runs in queues without a listed worker are adopted by processes with other rooms."""
        stopping = self._workers.get(worker_id)
        if stopping is None:
            queue = queues[0]
            slots = self._count_slots(get_lane(queue))
            values = {"worker_id": worker_id, "name": self._process, "queue": queue, "slots": slots}
            await self.connector.execute_query_async(_REGISTER, **values)
            stopping = self._workers[worker_id] = asyncio.Event()
        return stopping

    async def _look_for_job(self, queues: _Queues, worker_id: int) -> StoredJob | None:
        """Fetches a job if one waits. procrastinate's fetch reads the waiting jobs of all queues in order of priority:
        an empty lane beside a million jobs of another would cost a second of the server at each poll.

        A new job is announced to all processes with a free slot. Who finds that another one was faster pauses from then
        on for a random time before it looks, up to twice as long each time, and half as long after each job that it
        gets. So the first one takes the job, and most others see none.
        """
        pause = self._pauses.get(queues, 0.0)
        if pause:
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - no secret
        if not await self.connector.execute_query_all_async(_ANY_WAITING, queues=[*queues]):
            return None
        job = await super().fetch_job([*queues], worker_id)
        if job is None:
            self._pauses[queues] = min(max(2 * pause, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        else:
            self._pauses[queues] = pause / 2 if pause > SHORTEST_PAUSE_SECONDS else 0.0
        return job

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        """See `JobManager.listen_for_jobs`. Counts the announcements for `fetch_job`."""
        names = tuple(queues or ())

        async def count_first(*, channel: str, notification: Notification) -> None:
            self._announcements[names] += 1
            await on_notification(channel=channel, notification=notification)

        await super().listen_for_jobs(on_notification=count_first, queues=names)

    async def unregister_worker(self, worker_id: int) -> None:
        """See `JobManager.unregister_worker`."""
        self._workers.pop(worker_id, None)
        await super().unregister_worker(worker_id)

    def stop_worker(self, worker_id: int) -> None:
        """Has the ends of a worker's jobs stored once more at most: it stops, and the sweep takes what is left."""
        if (stopping := self._workers.get(worker_id)) is not None:
            stopping.set()

    def postpone_job(self, job: StoredJob) -> None:
        """Has the next `retry_job` of a job not count as a failure."""
        if job.id is not None:
            self._postponed.add(job.id)

    async def finish_job(self, job: StoredJob, status: Status, delete_job: bool) -> None:
        """Removes a job, or keeps it as a dead letter. Repeats it until it is stored; see `_store_end`."""
        await self._store_end(job, _REMOVE if delete_job else _GIVE_UP)

    async def retry_job(
        self,
        job: StoredJob,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """Has a job done again at a time, with its priority and in its queue. Repeats it until it is stored; see
        `_store_end`.
        """
        failures = int(job.id not in self._postponed)
        self._postponed.discard(job.id or 0)  # before, so that an end that is not stored leaves nothing behind
        await self._store_end(job, _REPEAT, failures=failures, begin=retry_at)

    async def release_job(self, job: StoredJob) -> bool:
        """Has a job done again at once. Returns False if it is no longer `job.worker_id`'s. Raises
        `ConnectorException`.
        """
        return await self._end_job(job, _REPEAT, failures=0, begin=None)

    async def _store_end(self, job: StoredJob, statement: str, **values: object) -> None:
        """Repeats it until the end is stored, because no sweep takes the jobs of a worker that lives; or until the
        worker stops: then the sweep takes them.
        """
        pause, stopping = RETRY_SECONDS, self._workers.get(job.worker_id or 0)
        while True:
            try:
                if not await self._end_job(job, statement, **values):
                    log.info("job %s is no longer of this worker", job.id)
                return
            except ConnectorException as error:
                reason = str(error.__cause__ or error).partition("\n")[0]
            if stopping is None or stopping.is_set():
                log.warning("the end of job %s is not stored, the sweep gives it to another worker: %s", job.id, reason)
                return
            log.warning("the end of job %s is not stored, next attempt in %.0f s: %s", job.id, pause, reason)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stopping.wait()
            pause = min(2 * pause, STORE_SECONDS)

    async def _end_job(self, job: StoredJob, statement: str, **values: object) -> bool:
        """Ends a job unless it is no longer `job.worker_id`'s, and returns whether it was."""
        values |= {"job_id": job.id, "worker_id": job.worker_id}
        try:
            return bool(await self.connector.execute_query_all_async(statement, **values))
        except UniqueViolation:  # another job with its key waits already
            return bool(await self.connector.execute_query_all_async(_REMOVE, **values))


class LaneWorker(Worker):
    """procrastinate's worker, which reports its stop to `LaneJobManager`."""

    def __init__(self, app: procrastinate.App, *, jobs: LaneJobManager, **options: Any) -> None:
        super().__init__(app, **options)
        self._jobs = jobs

    def stop(self) -> None:
        """See `Worker.stop`."""
        if self.worker_id is not None:
            self._jobs.stop_worker(self.worker_id)
        super().stop()  # type: ignore[no-untyped-call]


class RetryFailures(BaseRetryStrategy):
    """Decides when a job whose handler raised is done again."""

    def __init__(self, jobs: LaneJobManager) -> None:
        self._jobs = jobs

    def get_retry_decision(self, *, exception: BaseException, job: StoredJob) -> RetryDecision | None:
        """The time of the next attempt; None for a dead letter."""
        match exception:
            case DeadJobError():
                return None
            case PostponeJobError(seconds=seconds):
                return self._postpone(job, seconds)
            case StoreError(message=message):  # of no use to count: the database is away
                log.warning("job %s is done again in %.0f s: %s", job.id, RETRY_SECONDS, message)
                return self._postpone(job, RETRY_SECONDS)
        if job.attempts + 1 >= MAX_ATTEMPTS:
            return None
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=RETRY_SECONDS * 2**job.attempts))

    def _postpone(self, job: StoredJob, seconds: float) -> RetryDecision:
        self._jobs.postpone_job(job)
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=seconds))


def build_connector(url: str, idle_s: float) -> procrastinate.PsycopgConnector:
    """Procrastinate's connections to our database. `idle_s` is how long a transaction may stand still."""
    # From its sixth call on, a function of PL/pgSQL uses a plan made without its arguments: a fetch beside 200,000
    # queued jobs then takes 150 ms instead of 1.
    return procrastinate.PsycopgConnector(
        pool_factory=_build_pool,
        conninfo=add_options(
            url,
            plan_cache_mode="force_custom_plan",
            idle_in_transaction_session_timeout=round(1000 * min(idle_s, IDLE_SECONDS)),
        ),
        min_size=1,
        max_size=CONNECTIONS,
        configure=_configure_connection,
    )


def _build_pool(**options: Any) -> AsyncConnectionPool[Connection]:
    """A pool that asks the server whether a connection is alive only where there is a reason to."""
    return AsyncConnectionPool(**(options | {"check": check_connection}))


async def _configure_connection(connection: Connection) -> None:
    """Saves two of three round trips: procrastinate sends one statement at a time."""
    await connection.set_autocommit(True)
