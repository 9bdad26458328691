"""`QueueSweeper`: finds what the queue has lost, and gives it to a process again.

Every process sweeps now and then; a lock in the database lets one do it at a time. It finds jobs of silent workers;
runs that nobody holds and that have no job (their gateway died before it needed one, or a zombie deleted the job); and
runs in queues that no process serves now, because all with those rooms, roots, servers and skills are gone.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Literal

from procrastinate.exceptions import ConnectorException

from agent.core.errors import StoreError
from agent.core.throttled_log import ThrottledLog
from agent.storage.postgres import NOW_SQL, Connection, PostgresDatabase
from gateway.features.fleet.engine.fair_queueing import restart_tags
from gateway.features.fleet.engine.queue import QueueDispatcher
from gateway.features.fleet.engine.queue_names import RUN_LANES, get_lane
from gateway.features.fleet.engine.run_jobs import IS_RUN_READY

log = logging.getLogger(__name__)

QueueEvent = Literal["taken_over", "swept", "fenced", "adopted", "dead"]
"""What happens to jobs beside being done: taken over from a silent worker, found without a job, fenced (another process
had claimed the run), adopted by a process with other rooms or files, given up."""
Count = Callable[[QueueEvent], None]
_LOCK = 0x57E96A80
"""The advisory lock of the one process that sweeps; any fixed number."""
_BATCH = 200

_SELECT_LOST = (
    "SELECT run_id, queue FROM runs WHERE NOT terminal "  # noqa: S608 - constants only
    f"AND (worker IS NULL OR lease_until < {NOW_SQL}) AND {IS_RUN_READY} "
    "AND (run_id = ANY(%s) OR GREATEST(updated_at, CASE WHEN worker IS NULL THEN 0 ELSE lease_until END) "
    f"< {NOW_SQL} - %s) "
    "AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE queueing_lock = run_id AND status = 'todo') "
    # A dead letter waits for a person.
    "AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE queueing_lock = run_id AND status IN ('doing', 'failed')) "
    "ORDER BY created_at LIMIT %s"
)
_FREE_RUNS = (
    "UPDATE runs SET lease_until = 0 WHERE NOT terminal AND worker = ANY(%s) AND lease_until > 0 RETURNING run_id"
)
_LIST_PROCESSES = (
    "SELECT worker FROM runs WHERE NOT terminal AND worker IS NOT NULL UNION SELECT name FROM queue_workers"
)
_FORGET_PROCESSES = (
    "WITH gone AS (DELETE FROM queue_workers WHERE name = ANY(%s) RETURNING worker_id) "
    "DELETE FROM procrastinate_workers WHERE id IN (SELECT worker_id FROM gone)"
)
_FORGET_WORKERS = "DELETE FROM queue_workers WHERE worker_id NOT IN (SELECT id FROM procrastinate_workers)"
_LIST_UNSERVED = (
    "SELECT DISTINCT queue_name FROM procrastinate_jobs WHERE status = 'todo' AND queue_name LIKE '%%@%%' "
    "AND queue_name NOT IN (SELECT queue FROM queue_workers)"
)


class QueueSweeper:
    """Sweeps for one process. `is_dead` says of a process's name that it was of this machine and has ended."""

    def __init__(
        self,
        dispatcher: QueueDispatcher,
        database: PostgresDatabase,
        *,
        is_dead: Callable[[str], bool],
        count: Count,
        adopt_s: float,
    ) -> None:
        self._dispatcher = dispatcher
        self._database = database
        self._is_dead = is_dead
        self._count = count
        self._adopt_s = adopt_s
        self._unserved_since: dict[str, float] = {}

    async def run(self) -> None:
        """Sweeps until cancelled."""
        trouble = ThrottledLog(log, "the queue cannot be swept")
        while True:
            try:
                await self.sweep()
                trouble.record_recovery()
            except (StoreError, ConnectorException) as error:
                trouble.record_failure(str(error))
            except Exception:  # the next sweep must come in any case
                log.exception("sweeping the queue failed")
            await asyncio.sleep(max(0.5, self._dispatcher.options.lease_s / 4))

    async def sweep(self) -> None:
        """Sweeps once, unless another process does. Raises `StoreError` and `ConnectorException`."""
        async with self._database.transaction() as db:
            cursor = await db.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,))
            row = await cursor.fetchone()
            if row is None or not row[0]:
                return
            freed = await self._free_dead_processes(db)
            await self._enqueue_lost_runs(db, freed)
            await self._adopt_unserved_runs(db)
            await restart_tags(db)
        await self._retry_stalled_jobs()

    async def _free_dead_processes(self, db: Connection) -> list[str]:
        """Frees what ended processes of this machine held, without waiting for their leases. Returns their runs."""
        cursor = await db.execute(_LIST_PROCESSES)
        dead = [str(row[0]) for row in await cursor.fetchall() if self._is_dead(str(row[0]))]
        if not dead:
            return []
        await db.execute(_FORGET_PROCESSES, (dead,))
        return [str(row[0]) for row in await (await db.execute(_FREE_RUNS, (dead,))).fetchall()]

    async def _enqueue_lost_runs(self, db: Connection, freed: Sequence[str]) -> None:
        idle_s = 2 * self._dispatcher.options.lease_s
        rows = await (await db.execute(_SELECT_LOST.encode(), (list(freed), idle_s, _BATCH))).fetchall()
        own = self._dispatcher.get_run_queue("runs")
        for run_id, queue in rows:
            if not queue:  # accepted before there was a queue
                await db.execute("UPDATE runs SET queue = %s WHERE run_id = %s", (own, run_id))
            await self._dispatcher.runs.enqueue(db, run_id, queue=queue or own, priority=None)
            self._count("swept")
            log.info("run %s had no job and nobody held it; it is queued again", run_id)

    async def _retry_stalled_jobs(self) -> None:
        """Lets jobs of silent workers be done again."""
        manager, lease_s = self._dispatcher.manager, self._dispatcher.options.lease_s
        await manager.prune_stalled_workers(4 * lease_s)
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=lease_s):
            if await manager.release_job(job):  # else its worker was only slow
                self._count("taken_over")

    async def _adopt_unserved_runs(self, db: Connection) -> None:
        """Takes over the runs of queues that no process has served for `adopt_s`."""
        await db.execute(_FORGET_WORKERS)
        if not self._adopt_s or not self._dispatcher.options.slots:
            return
        rows = await (await db.execute(_LIST_UNSERVED)).fetchall()
        now, own_queues = monotonic(), set(self._dispatcher.list_own_queues())
        unserved = {str(row[0]) for row in rows if get_lane(str(row[0])) in RUN_LANES} - own_queues
        self._unserved_since = {queue: self._unserved_since.get(queue, now) for queue in unserved}
        for queue, since in self._unserved_since.items():
            own = next((mine for mine in own_queues if get_lane(mine) == get_lane(queue)), None)
            if now - since < self._adopt_s or own is None:
                continue
            await db.execute("UPDATE runs SET queue = %s WHERE queue = %s AND NOT terminal", (own, queue))
            cursor = await db.execute(
                "UPDATE procrastinate_jobs SET queue_name = %s WHERE queue_name = %s AND status = 'todo'", (own, queue)
            )
            log.warning(
                "%d runs waited %.0f s for a worker with the rooms, roots, servers and skills of %s; this one, which "
                "differs, takes them over",
                cursor.rowcount,
                now - since,
                queue,
            )
            for _ in range(cursor.rowcount):
                self._count("adopted")
