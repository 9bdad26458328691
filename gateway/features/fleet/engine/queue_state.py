"""The state of the queue: lanes, workers and dead letters, for `stepgate queue`, `/v1/queue`, `/metrics` and `stepgate
doctor`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import ENDED_STATUSES, LOCAL_OWNER, JsonObject, RunStatus
from agent.runs.dispatch import Lane
from agent.storage.audit import AuditAction, AuditEvent, AuditLog
from agent.storage.sql import SqlClient
from gateway.features.fleet.engine.queue_names import get_lane

_HAS_TABLES = "SELECT to_regclass('procrastinate_jobs') IS NOT NULL"
# A job's number tells its age only nearly, but the oldest one's is found without reading all of them.
_LANES = (
    "SELECT waiting.queue_name, waiting.depth, extract(epoch FROM now() - (SELECT min(at) FROM procrastinate_events "
    "WHERE job_id = waiting.oldest)) FROM (SELECT queue_name, count(*) AS depth, min(id) AS oldest "
    "FROM procrastinate_jobs WHERE status = 'todo' GROUP BY queue_name) AS waiting ORDER BY 1"
)
_BEGUN = (
    "SELECT queue_name, status::text, count(*) FROM procrastinate_jobs WHERE status IN ('doing', 'failed') "
    "GROUP BY queue_name, status"
)
_WORKERS = (
    "SELECT name, queue, slots, started, extract(epoch FROM now() - last_heartbeat), (SELECT count(*) "
    "FROM procrastinate_jobs WHERE procrastinate_jobs.worker_id = queue_workers.worker_id AND status = 'doing') "
    "FROM queue_workers JOIN procrastinate_workers ON id = worker_id ORDER BY name, queue"
)
_DEAD = (
    "SELECT id, queue_name, task_name, args, attempts, (SELECT extract(epoch FROM max(at)) FROM procrastinate_events "
    "WHERE job_id = jobs.id), run_id, owner, runs.status, (SELECT data FROM events WHERE run_id = runs.run_id "
    "AND type = 'run.failed') FROM procrastinate_jobs AS jobs LEFT JOIN runs ON run_id = args ->> 'run_id' "
    "WHERE jobs.status = 'failed' ORDER BY id DESC LIMIT ?"
)
_FIND_DEAD = (
    "SELECT run_id, owner, terminal, EXISTS (SELECT 1 FROM procrastinate_jobs AS other WHERE other.status = 'todo' "
    "AND other.queueing_lock = jobs.queueing_lock) FROM procrastinate_jobs AS jobs "
    "LEFT JOIN runs ON run_id = args ->> 'run_id' WHERE id = ? AND jobs.status = 'failed'"
)
_REQUEUE = (
    "UPDATE procrastinate_jobs SET status = 'todo', attempts = 0, scheduled_at = NULL "
    "WHERE id = ? AND status = 'failed' RETURNING id"
)
_DISCARD = "DELETE FROM procrastinate_jobs WHERE id = ? AND status = 'failed' RETURNING id"


class _InQueue:
    """Something that belongs to a queue, and so to a lane."""

    __slots__ = ()
    queue: str

    @property
    def lane(self) -> Lane:
        """The lane of its queue."""
        return get_lane(self.queue)


@dataclass(frozen=True, slots=True)
class QueueDepth(_InQueue):
    """A queue with its jobs. `failed` are dead letters, `oldest_s` is the age of the oldest waiting one, in seconds."""

    queue: str
    waiting: int = 0
    running: int = 0
    failed: int = 0
    oldest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class QueueWorker(_InQueue):
    """A process that takes jobs from a queue. `started` is UTC seconds, `silent_s` seconds since its heartbeat."""

    name: str
    queue: str
    slots: int
    started: float
    silent_s: float
    running: int


@dataclass(frozen=True, slots=True)
class DeadLetter(_InQueue):
    """A job that was given up. `at` is UTC seconds. `run_id`, `owner` and `run_status` are None unless it is of a run
    that is still stored.
    """

    id: int
    queue: str
    kind: str
    arguments: JsonObject
    attempts: int
    at: float
    run_id: str | None
    owner: str | None
    run_status: RunStatus | None
    reason: str

    @property
    def can_retry(self) -> bool:
        """Whether it can be done again: nothing is done for a run that has ended."""
        return self.run_status not in ENDED_STATUSES


class QueueState:
    """Reads the queue, and decides about its dead letters. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, audit: AuditLog) -> None:
        self._statements = statements
        self._audit = audit

    async def exists(self) -> bool:
        """Whether the store has a queue: a start with AGENT_DISPATCH=queue makes it."""
        return bool((await self._statements.read(_HAS_TABLES))[0][0])

    async def list_depths(self) -> list[QueueDepth]:
        """The queues with jobs."""
        counts = {(str(row[0]), str(row[1])): int(row[2]) for row in await self._statements.read(_BEGUN)}
        waiting = {str(row[0]): (int(row[1]), float(row[2] or 0)) for row in await self._statements.read(_LANES)}
        depths = []
        for queue in sorted({*waiting, *(queue for queue, _ in counts)}):
            count, oldest_s = waiting.get(queue, (0, 0.0))
            running, failed = counts.get((queue, "doing"), 0), counts.get((queue, "failed"), 0)
            depths.append(QueueDepth(queue, count, running, failed, oldest_s))
        return depths

    async def list_workers(self) -> list[QueueWorker]:
        """The processes that take jobs."""
        rows = await self._statements.read(_WORKERS)
        return [QueueWorker(row[0], row[1], row[2], row[3], float(row[4]), int(row[5])) for row in rows]

    async def list_dead_letters(self, limit: int = 50) -> list[DeadLetter]:
        """The jobs that were given up, newest first."""
        return [
            DeadLetter(
                row[0], row[1], str(row[2]).removeprefix("stepgate."), _to_object(row[3]), row[4], float(row[5] or 0),
                row[6], row[7], row[8], _find_reason(row[9], row[4]),
            )
            for row in await self._statements.read(_DEAD, limit)
        ]  # fmt: skip

    async def requeue(self, job_id: int, *, by: str) -> None:
        """Has a dead letter done again. Raises `NotFoundError`, and `ConflictError` for a run that has ended."""
        run_id, owner, is_ended, is_queued = await self._find_dead_letter(job_id)
        if is_ended:
            raise ConflictError(
                f"job {job_id}: run {run_id!r} has ended; send its request again, or fork it (POST "
                f"/v1/runs/{run_id}/fork)"
            )
        if is_queued:
            raise ConflictError(f"job {job_id}: the same work is queued again already; discard this dead letter")
        await self._change(_REQUEUE, job_id, "queue.retry", owner, by)

    async def discard(self, job_id: int, *, by: str) -> None:
        """Deletes a dead letter. Raises `NotFoundError`, and `ConflictError` for a run that has not ended."""
        run_id, owner, is_ended, is_queued = await self._find_dead_letter(job_id)
        if run_id is not None and not (is_ended or is_queued):  # without a job the sweep would queue it again
            raise ConflictError(
                f"job {job_id}: run {run_id!r} has not ended; retry the job, or cancel the run (`stepgate runs cancel "
                f"{run_id}`, or POST /v1/runs/{run_id}/cancel with a key of its owner), which discards the job too"
            )
        await self._change(_DISCARD, job_id, "queue.discard", owner, by)

    async def _find_dead_letter(self, job_id: int) -> tuple[str | None, str | None, bool, bool]:
        """Its run with its owner, whether the run has ended, and whether another job for the same waits."""
        rows = await self._statements.read(_FIND_DEAD, job_id)
        if not rows:
            raise NotFoundError(f"there is no dead letter {job_id}; `stepgate queue dead` or GET /v1/queue lists them")
        run_id, owner, is_ended, is_queued = rows[0]
        return run_id, owner, bool(is_ended), bool(is_queued)

    async def _change(self, statement: str, job_id: int, action: AuditAction, owner: str | None, by: str) -> None:
        if not await self._statements.write(statement, job_id):
            raise NotFoundError(f"the dead letter {job_id} was retried or discarded by somebody else meanwhile")
        await self._audit.record_afterwards(AuditEvent(action, str(job_id), owner=owner or LOCAL_OWNER, by=by))


def find_unserved(depths: Sequence[QueueDepth], workers: Sequence[QueueWorker]) -> list[str]:
    """The queues of runs whose jobs wait and that no process takes.

    The queues of ingestion are left out: a worker is listed with one of them only.
    """
    served = {one.queue for one in workers}
    return [one.queue for one in depths if one.waiting and one.lane != "ingest" and one.queue not in served]


def _find_reason(failed_event: object, attempts: int) -> str:
    """The message of the event with which the run failed; else what is known."""
    failure = _to_object(failed_event).get("failure")
    if isinstance(failure, dict) and failure.get("message"):
        return str(failure["message"])
    return f"given up after {attempts} attempts; the log of the process that did it says why"


def _to_object(value: object) -> JsonObject:
    loaded = json.loads(value) if isinstance(value, str) else value
    return dict(loaded) if isinstance(loaded, dict) else {}
