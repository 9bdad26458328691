"""A lane's worker on procrastinate's: which jobs it takes, how it hears of them, and what becomes of them."""

import asyncio
import contextlib
import logging
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import procrastinate
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job as StoredJob
from procrastinate.jobs import Notification, Status
from procrastinate.manager import JobManager
from procrastinate.retry import BaseRetryStrategy, RetryDecision
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool

from agent.core.errors import StoreError
from agent.dispatch import MAX_ATTEMPTS, DeadJobError, PostponeJobError
from agent.storage.postgres import IDLE_SECONDS, Connection, add_options, check_connection

log = logging.getLogger(__name__)

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


class LaneJobs(JobManager):
    """procrastinate's manager of jobs, which does not search for a job where none waits, counts only failures as
    attempts, and ends a job only for the worker that has it.

    procrastinate's fetch reads the waiting jobs of all queues in order of priority: an empty lane beside a million jobs
    of another would cost a second of the server at each poll.
    """

    def __init__(self, connector: BaseConnector) -> None:
        super().__init__(connector)
        self._pauses: dict[tuple[str, ...], float] = {}

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> StoredJob | None:
        """See `JobManager.fetch_job`.

        A new job is announced to all processes with a free slot. Who finds that another one was faster pauses from then
        on for a random time before it looks, up to twice as long each time, and half as long after each job that it
        gets. So the first one takes the job, and most others see none.
        """
        names = tuple(queues or ())
        pause = self._pauses.get(names, 0.0)
        if pause:
            await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - no secret
        if not await self.connector.execute_query_all_async(_ANY_WAITING, queues=[*names]):
            return None
        job = await super().fetch_job([*names], worker_id)
        if job is None:
            self._pauses[names] = min(max(2 * pause, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        else:
            self._pauses[names] = pause / 2 if pause > SHORTEST_PAUSE_SECONDS else 0.0
        return job

    async def end_job(self, job: StoredJob, status: Status, decision: RetryDecision | None) -> bool:
        """Has the job done again as decided; else removes it if it succeeded, or keeps it as a dead letter. Returns
        False if it is no longer `job.worker_id`'s. Raises `ConnectorException`.
        """
        values: dict[str, Any] = {"job_id": job.id, "worker_id": job.worker_id}
        statement = _REMOVE if status == Status.SUCCEEDED else _GIVE_UP
        if decision is not None:
            statement = _REPEAT
            values |= {"failures": int(not isinstance(decision, Postponement)), "begin": decision.retry_at}
        try:
            return bool(await self.connector.execute_query_all_async(statement, **values))
        except UniqueViolation:  # another job with its key waits already
            return bool(await self.connector.execute_query_all_async(_REMOVE, **values))


class LaneWorker(Worker):
    """procrastinate's worker, which is listed before it takes jobs, misses no notification, and stores the end of a job
    until that succeeds.
    """

    def __init__(self, app: procrastinate.App, *, jobs: LaneJobs, process: str, **options: Any) -> None:
        super().__init__(app, **options)
        self._jobs = jobs
        self._process = process
        self._notifications = 0

    async def _run_loop(self) -> None:
        # A worker that takes jobs without being listed would have them adopted by processes with other rooms.
        queue = next(iter(self.queues or ()))
        values = {"worker_id": self.worker_id, "name": self._process, "queue": queue, "slots": self.concurrency}
        await self.app.connector.execute_query_async(_REGISTER, **values)
        await super()._run_loop()  # type: ignore[no-untyped-call]

    async def _handle_notification(self, *, channel: str, notification: Notification) -> None:
        self._notifications += 1
        await super()._handle_notification(channel=channel, notification=notification)

    async def _fetch_and_process_jobs(self) -> None:
        """Looks again if a notification came meanwhile: procrastinate forgets it when it has looked, but the job may
        have been stored after the server had answered, and would wait for the next poll.
        """
        handled_notifications = -1
        while handled_notifications != self._notifications and not self._stop_event.is_set():
            handled_notifications = self._notifications
            await super()._fetch_and_process_jobs()  # type: ignore[no-untyped-call]

    async def _shutdown(self, side_tasks: list[asyncio.Task[Any]]) -> None:
        self.stop()  # type: ignore[no-untyped-call]
        await super()._shutdown(side_tasks)

    async def _persist_job_status(
        self, job: StoredJob, status: Status, retry_decision: RetryDecision | None, *args: object, **kwargs: object
    ) -> None:
        """Repeats it until it is stored, because no sweep takes the jobs of a worker that lives; or until this one
        stops: then the sweep takes them.
        """
        pause = RETRY_SECONDS
        while True:
            try:
                if not await self._jobs.end_job(job, status, retry_decision):
                    log.info("job %s is no longer of this worker", job.id)
                return
            except ConnectorException as error:
                reason = str(error.__cause__ or error).partition("\n")[0]
            if self._stop_event.is_set():
                log.warning("the end of job %s is not stored, the sweep gives it to another worker: %s", job.id, reason)
                return
            log.warning("the end of job %s is not stored, next attempt in %.0f s: %s", job.id, pause, reason)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stop_event.wait()
            pause = min(2 * pause, STORE_SECONDS)


class Postponement(RetryDecision):
    """Has a job done again that did not fail."""


class RetryFailures(BaseRetryStrategy):
    """Decides when a job whose handler raised is done again."""

    def get_retry_decision(self, *, exception: BaseException, job: StoredJob) -> RetryDecision | None:
        """Returns when to do it again, or None for a dead letter."""
        match exception:
            case DeadJobError():
                return None
            case PostponeJobError(seconds=seconds):
                return Postponement(retry_at=datetime.now(UTC) + timedelta(seconds=seconds))
            case StoreError(message=message):  # of no use to count: the database is away
                log.warning("job %s is done again in %.0f s: %s", job.id, RETRY_SECONDS, message)
                return Postponement(retry_at=datetime.now(UTC) + timedelta(seconds=RETRY_SECONDS))
        if job.attempts + 1 >= MAX_ATTEMPTS:
            return None
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=RETRY_SECONDS * 2**job.attempts))


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
