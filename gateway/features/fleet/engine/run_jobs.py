"""Runs in the queue: a job says only which run to wake up; everything else is in the journal."""

from dataclasses import dataclass
from typing import Literal

import procrastinate
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.manager import get_channel_for_queues

from agent.runs.dispatch import RUN_JOB
from agent.storage.journal_rows import IS_WAITING_OVER
from agent.storage.postgres import NOW_SQL, Connection, PostgresDatabase
from gateway.features.fleet.engine.fair_queueing import get_head_priority, take_priority

RunReadiness = Literal["free", "held", "waiting", "ended"]
"""Whether a run can be claimed, is held by a process, waits for a person, or has ended (or does not exist)."""
IS_RUN_READY = IS_WAITING_OVER.format(now=NOW_SQL)

_SELECT_READINESS = (
    "SELECT CASE WHEN terminal THEN 'ended' "  # noqa: S608 - constants only
    f"WHEN worker IS NOT NULL AND lease_until >= {NOW_SQL} THEN 'held' "
    f"WHEN {IS_RUN_READY} THEN 'free' ELSE 'waiting' END, GREATEST(0, lease_until - {NOW_SQL}) "
    "FROM runs WHERE run_id = %s"
)
_SELECT_UNHELD = (
    "SELECT queue FROM runs WHERE run_id = %s AND NOT terminal "  # noqa: S608 - constants only
    f"AND (worker IS NULL OR lease_until < {NOW_SQL}) FOR UPDATE"
)
_REMOVE_ENDED = (
    "DELETE FROM procrastinate_jobs USING runs WHERE queueing_lock = run_id AND run_id = %s AND terminal "
    "AND procrastinate_jobs.status IN ('todo', 'failed')"
)

_JOB_INSERTED = '{"type": "job_inserted", "job_id": 0}'
"""The notification of workers, like that of procrastinate's trigger; the same for all jobs, so that many are one
notification."""


def name_task(kind: str) -> str:
    """The name of a kind of jobs in procrastinate's tables."""
    return f"stepgate.{kind}"


def announce_job(database: PostgresDatabase, db: Connection, queue: str) -> None:
    """Notifies the workers of a queue that it has a job, once the transaction of `db` has committed."""
    (channel,) = get_channel_for_queues([queue])
    database.notify_after_commit(db, channel, _JOB_INSERTED)


@dataclass(frozen=True, slots=True)
class QueuedRunJobs:
    """Implements `agent.storage.journal_postgres.RunJobs`, and what a worker asks about runs."""

    app: procrastinate.App
    database: PostgresDatabase

    async def take_priority(self, owner: str, queue: str) -> int:
        """See `RunJobs.take_priority`. Not in the transaction that stores the run: until that has committed, no other
        run of the owner could be accepted.
        """
        async with self.database.begin_single_query() as db:
            return await take_priority(db, queue, owner, 1.0, is_alone=True)

    async def enqueue(self, db: Connection, run_id: str, *, queue: str, priority: int | None) -> None:
        """See `RunJobs.enqueue`."""
        if priority is None:
            priority = await get_head_priority(db, queue)
        job = self.app.configure_task(
            name_task(RUN_JOB),
            allow_unknown=True,
            queue=queue,
            priority=priority,
            queueing_lock=run_id,
            connection=db,
        )
        try:
            async with db.transaction():  # a savepoint: a refused job must not end the transaction around it
                await job.defer_async(run_id=run_id)
            announce_job(self.database, db, queue)
        except AlreadyEnqueued:
            return
        except ConnectorException as error:
            raise error.__cause__ or error from None  # the driver's error, which the transaction translates

    async def enqueue_run(self, run_id: str, own_queue: str) -> bool:
        """Puts a job for a run into its queue, or `own_queue` if it has none. Returns False if it is held or has ended.

        Raises `StoreError`.
        """
        async with self.database.transaction() as db:
            row = await (await db.execute(_SELECT_UNHELD.encode(), (run_id,))).fetchone()
            if row is None:
                return False
            if not row[0]:
                await db.execute("UPDATE runs SET queue = %s WHERE run_id = %s", (own_queue, run_id))
            await self.enqueue(db, run_id, queue=row[0] or own_queue, priority=None)
        return True

    async def remove_ended_run(self, run_id: str) -> None:
        """Removes the waiting job of a run that has ended, and its dead letter. Raises `StoreError`."""
        async with self.database.transaction() as db:
            await db.execute(_REMOVE_ENDED, (run_id,))

    async def read_readiness(self, run_id: str) -> tuple[RunReadiness, float]:
        """Whether the run can be claimed, and the seconds left of its lease. Raises `StoreError`."""
        async with self.database.begin_single_query() as db:
            row = await (await db.execute(_SELECT_READINESS.encode(), (run_id,))).fetchone()
        return ("ended", 0.0) if row is None else (row[0], float(row[1]))

    async def is_empty(self, queue: str) -> bool:
        """Whether no job waits in the queue. Raises `StoreError`."""
        return await self.count_waiting(queue, 1) == 0

    async def count_waiting(self, queue: str, most: int) -> int:
        """Counts the jobs that wait in the queue, up to `most`. Raises `StoreError`."""
        async with self.database.begin_single_query() as db:
            cursor = await db.execute(
                "SELECT count(*) FROM (SELECT 1 FROM procrastinate_jobs WHERE queue_name = %s AND status = 'todo' "
                "LIMIT %s) AS waiting",
                (queue, most),
            )
            row = await cursor.fetchone()
        return 0 if row is None else int(row[0])
