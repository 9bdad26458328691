"""`JobStore`: ingestions, and vectors made anew, that somebody asked for and does not wait for. They outlive the
process that does them."""

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from pydantic import Field

from agent.core.codec import whole
from agent.core.errors import AgentFailure, BusyError, NotFoundError
from agent.core.models import Frozen, JsonObject
from agent.core.statements import Row, Statements
from agent.knowledge.ingestion import IngestReport
from agent.knowledge.models import ConnectorInput
from agent.knowledge.pipeline import PipelineDAG
from agent.knowledge.reindex import ReindexReport

JobStatus = Literal["queued", "running", "done", "failed", "interrupted"]
"""`interrupted`: its process has ended; the next gateway that looks takes it up again."""
UNFINISHED = "status IN ('queued', 'running', 'interrupted')"
KEPT_SECONDS = 30 * 86_400
"""How long finished jobs can be looked at."""
MOST_WAITING = 100
"""Unfinished jobs of one owner; more are a loop somewhere."""
SKIPPED_KEPT = 1_000
_COLUMNS = "id, owner, collection, status, request, progress, outcome, attempts, until, created, updated"
# Made of constants only.
_INSERT = (
    "INSERT INTO jobs (id, owner, collection, status, request, progress, outcome, attempts, worker, until, created, "  # noqa: S608
    f"updated) VALUES (?,?,?,'queued',?,?,?,0,'',0,?,?) RETURNING {_COLUMNS}"
)
_DUE = f"SELECT id FROM jobs WHERE {UNFINISHED} AND until < ? ORDER BY created, id LIMIT 20"  # noqa: S608
_CLAIM = (
    "UPDATE jobs SET status = 'running', worker = ?, until = ?, attempts = attempts + 1, updated = ? "  # noqa: S608
    f"WHERE id = ? AND {UNFINISHED} AND until < ? RETURNING {_COLUMNS}"
)


class JobRequest(Frozen):
    """What is to be read, and by which pipeline if not by the collection's own; without a source, the vectors of what
    was read are made anew."""

    source: ConnectorInput | None = None
    pipeline: PipelineDAG | None = None


class JobProgress(Frozen):
    """How far a job is. `total` is None while nobody knows how many documents there are."""

    current: str = ""
    done: int = 0
    total: int | None = None


class JobOutcome(Frozen):
    """How a job ended: with a report, or with a failure."""

    report: JsonObject | None = None
    failure: AgentFailure | None = Field(default=None)


@dataclass(frozen=True, slots=True)
class Job:
    """Work on a collection that was asked for. Times are UTC seconds since 1970."""

    id: str
    owner: str
    collection: str
    status: JobStatus
    request: JobRequest
    progress: JobProgress
    outcome: JobOutcome
    attempts: int
    created: float
    updated: float

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.status in ("done", "failed")


class JobStore:
    """The jobs. A worker that does one says so in time, or loses it. Methods raise `StoreError`."""

    def __init__(self, statements: Statements, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def create(self, owner: str, collection: str, request: JobRequest) -> Job:
        """A new job, `queued`. `BusyError` when the owner has too many waiting."""
        now = self._clock()
        await self._statements.write(
            "DELETE FROM jobs WHERE owner = ? AND status IN ('done', 'failed') AND updated < ?",
            owner,
            now - KEPT_SECONDS,
        )
        counted = f"SELECT count(*) FROM jobs WHERE owner = ? AND {UNFINISHED}"  # noqa: S608 - constants only
        ((waiting,),) = await self._statements.read(counted, owner)
        if waiting >= MOST_WAITING:
            raise BusyError(f"{waiting} jobs are waiting already; look at /v1/jobs", agent_id="library")
        rows = await self._statements.write(
            _INSERT,
            f"job_{secrets.token_hex(8)}",
            owner,
            whole(collection),
            whole(request.model_dump_json()),
            JobProgress().model_dump_json(),
            JobOutcome().model_dump_json(),
            now,
            now,
        )
        return self._job(rows[0])

    async def get(self, owner: str, job_id: str) -> Job:
        """A job. `NotFoundError`."""
        query = f"SELECT {_COLUMNS} FROM jobs WHERE owner = ? AND id = ?"  # noqa: S608 - constants only
        rows = await self._statements.read(query, owner, whole(job_id))
        if not rows:
            raise NotFoundError(f"there is no job {job_id!r}", agent_id="library")
        return self._job(rows[0])

    async def list(self, owner: str, limit: int) -> "list[Job]":
        """The newest jobs of an owner, newest first."""
        query = f"SELECT {_COLUMNS} FROM jobs WHERE owner = ? ORDER BY created DESC, id LIMIT ?"  # noqa: S608 - as above
        return [self._job(row) for row in await self._statements.read(query, owner, limit)]

    async def claim(self, worker: str, seconds: float) -> Job | None:
        """The oldest job that nobody does, taken for so long; None when there is none."""
        now = self._clock()
        for (job_id,) in await self._statements.read(_DUE, now):
            rows = await self._statements.write(
                _CLAIM,
                worker,
                now + seconds,
                now,
                job_id,
                now,
            )
            if rows:
                return self._job(rows[0])
        return None

    async def beat(self, job: Job, worker: str, progress: JobProgress, seconds: float) -> bool:
        """Say how far it is, and keep it for so long. False when another worker has it by now."""
        now = self._clock()
        rows = await self._statements.write(
            "UPDATE jobs SET progress = ?, until = ?, updated = ? WHERE id = ? AND worker = ? AND status = 'running' "
            "RETURNING id",
            whole(progress.model_dump_json()),
            now + seconds,
            now,
            job.id,
            worker,
        )
        return bool(rows)

    async def finish(self, job: Job, worker: str, progress: JobProgress, outcome: JobOutcome) -> None:
        """Write down how it ended."""
        await self._statements.write(
            "UPDATE jobs SET status = ?, progress = ?, outcome = ?, updated = ? WHERE id = ? AND worker = ?",
            "failed" if outcome.failure is not None else "done",
            whole(progress.model_dump_json()),
            whole(outcome.model_dump_json()),
            self._clock(),
            job.id,
            worker,
        )

    async def put_back(self, job: Job, worker: str, status: JobStatus, seconds: float) -> None:
        """Leave it for somebody to take up, in so many seconds at the earliest. The attempt does not count."""
        now = self._clock()
        await self._statements.write(
            "UPDATE jobs SET status = ?, worker = '', until = ?, attempts = attempts - 1, updated = ? "
            "WHERE id = ? AND worker = ?",
            status,
            now + seconds if seconds else 0.0,
            now,
            job.id,
            worker,
        )

    def _job(self, row: Row) -> Job:
        job_id, owner, collection, status, request, progress, outcome, attempts, until, created, updated = row
        return Job(
            id=job_id,
            owner=owner,
            collection=collection,
            status="interrupted" if status == "running" and until < self._clock() else status,
            request=JobRequest.model_validate_json(request),
            progress=JobProgress.model_validate_json(progress),
            outcome=JobOutcome.model_validate_json(outcome),
            attempts=attempts,
            created=created,
            updated=updated,
        )


def report_json(report: IngestReport) -> JsonObject:
    """A report as it is kept and sent; of very many skipped documents the first, all of them counted."""
    kept: JsonObject = json.loads(json.dumps({**asdict(report), "by_reason": report.by_reason}))
    kept["asks"] = {one.code: one.ask for one in report.skipped if one.ask}
    skipped = kept["skipped"]
    kept["skipped_count"] = len(report.skipped)
    kept["skipped"] = skipped[:SKIPPED_KEPT] if isinstance(skipped, list) else []
    return kept


def reindex_json(report: ReindexReport) -> JsonObject:
    """A report of vectors made anew, as it is kept and sent."""
    return asdict(report)
