"""What is in the queue: lanes, workers and dead letters, for `stepgate queue`, `/metrics` and `stepgate doctor`."""

import json
from dataclasses import dataclass

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import JsonObject
from agent.dispatch.port import Lane
from agent.dispatch.queue_names import get_lane
from agent.storage.sql import SqlClient

_HAS_TABLES = "SELECT to_regclass('procrastinate_jobs') IS NOT NULL"
# A job's number tells its age only nearly, but the oldest one's is found without reading all of them.
_LANES = (
    "SELECT waiting.queue_name, waiting.depth, extract(epoch FROM now() - (SELECT min(at) FROM procrastinate_events "
    "WHERE job_id = waiting.oldest)) FROM (SELECT queue_name, count(*) AS depth, min(id) AS oldest "
    "FROM procrastinate_jobs WHERE status = 'todo' GROUP BY queue_name) AS waiting ORDER BY 1"
)
_RUNNING = "SELECT queue_name, count(*) FROM procrastinate_jobs WHERE status = 'doing' GROUP BY queue_name"
_WORKERS = (
    "SELECT name, queue, slots, started, extract(epoch FROM now() - last_heartbeat), (SELECT count(*) "
    "FROM procrastinate_jobs WHERE procrastinate_jobs.worker_id = queue_workers.worker_id AND status = 'doing') "
    "FROM queue_workers JOIN procrastinate_workers ON id = worker_id ORDER BY name, queue"
)
_DEAD = (
    "SELECT id, queue_name, task_name, args, attempts, (SELECT extract(epoch FROM max(at)) FROM procrastinate_events "
    "WHERE job_id = procrastinate_jobs.id) FROM procrastinate_jobs WHERE status = 'failed' ORDER BY id DESC LIMIT ?"
)
_REQUEUE = (
    "UPDATE procrastinate_jobs SET status = 'todo', attempts = 0, scheduled_at = NULL "
    "WHERE id = ? AND status = 'failed' RETURNING id"
)


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """A queue with its waiting and running jobs. `oldest_s` is the age of the oldest waiting one, in seconds."""

    queue: str
    waiting: int
    running: int
    oldest_s: float

    @property
    def lane(self) -> Lane:
        """Its lane."""
        return get_lane(self.queue)


@dataclass(frozen=True, slots=True)
class QueueWorker:
    """A process that takes jobs from a queue. `started` is UTC seconds, `silent_s` seconds since its heartbeat."""

    name: str
    queue: str
    slots: int
    started: float
    silent_s: float
    running: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A job that was given up. `at` is UTC seconds."""

    id: int
    queue: str
    kind: str
    arguments: JsonObject
    attempts: int
    at: float


class QueueState:
    """Reads the queue. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient) -> None:
        self._statements = statements

    async def exists(self) -> bool:
        """Returns whether the store has a queue: a start with AGENT_DISPATCH=queue makes it."""
        return bool((await self._statements.read(_HAS_TABLES))[0][0])

    async def list_depths(self) -> list[QueueDepth]:
        """Returns the queues with jobs."""
        running = {str(queue): int(count) for queue, count in await self._statements.read(_RUNNING)}
        waiting = {str(row[0]): (int(row[1]), float(row[2] or 0)) for row in await self._statements.read(_LANES)}
        return [
            QueueDepth(queue, waiting.get(queue, (0, 0.0))[0], running.get(queue, 0), waiting.get(queue, (0, 0.0))[1])
            for queue in sorted({*waiting, *running})
        ]

    async def list_workers(self) -> list[QueueWorker]:
        """Returns the processes that take jobs."""
        rows = await self._statements.read(_WORKERS)
        return [QueueWorker(row[0], row[1], row[2], row[3], float(row[4]), int(row[5])) for row in rows]

    async def list_dead_letters(self, limit: int = 50) -> list[DeadLetter]:
        """Returns the jobs that were given up, newest first."""
        rows = await self._statements.read(_DEAD, limit)
        return [
            DeadLetter(
                row[0], row[1], str(row[2]).removeprefix("stepgate."), _to_object(row[3]), row[4], float(row[5] or 0)
            )
            for row in rows
        ]

    async def requeue(self, job_id: int) -> None:
        """Has a dead letter done again. Raises `NotFoundError`, and `ConflictError` for a run that has ended."""
        rows = await self._statements.read("SELECT args FROM procrastinate_jobs WHERE id = ?", job_id)
        run_id = _to_object(rows[0][0]).get("run_id") if rows else None
        if run_id is not None:
            ended = await self._statements.read("SELECT 1 FROM runs WHERE run_id = ? AND terminal", run_id)
            if ended:
                raise ConflictError(
                    f"job {job_id}: run {run_id!r} has ended; send its request again, or fork it (POST "
                    f"/v1/runs/{run_id}/fork)"
                )
        if not await self._statements.write(_REQUEUE, job_id):
            raise NotFoundError(f"there is no dead letter {job_id}; `stepgate queue dead` lists them")


def _to_object(value: object) -> JsonObject:
    loaded = json.loads(value) if isinstance(value, str) else value
    return dict(loaded) if isinstance(loaded, dict) else {}
