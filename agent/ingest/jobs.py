"""`JobStore`: background ingestions and re-indexings. They survive the process that runs them."""

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from pydantic import Field

from agent.core.errors import AgentFailure, BusyError, NotFoundError
from agent.core.models import FrozenModel, JsonObject
from agent.core.surrogates import replace_surrogates
from agent.ingest.ingestion import IngestReport
from agent.ingest.pipeline import PipelineDAG
from agent.ingest.reindex import ReindexReport
from agent.search.models import ConnectorInput
from agent.storage.sql import Row, SqlClient

JobStatus = Literal["queued", "running", "done", "failed", "interrupted"]
"""`interrupted`: its process ended; the next gateway that looks claims it again."""
UNFINISHED = "status IN ('queued', 'running', 'interrupted')"
KEPT_SECONDS = 30 * 86_400
"""How long finished jobs are kept."""
MAX_WAITING = 100
"""Unfinished jobs of one owner. More indicates a loop in a client."""
MAX_SKIPPED_KEPT = 1_000
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


class JobRequest(FrozenModel):
    """What to read, and by which pipeline if not the collection's own. Without a source, the collection is
    re-indexed."""

    source: ConnectorInput | None = None
    pipeline: PipelineDAG | None = None


class JobProgress(FrozenModel):
    """The progress of a job. `total` is None while the number of documents is unknown."""

    current: str = ""
    done: int = 0
    total: int | None = None


class JobOutcome(FrozenModel):
    """The end of a job: a report or a failure."""

    report: JsonObject | None = None
    failure: AgentFailure | None = Field(default=None)


@dataclass(frozen=True, slots=True)
class Job:
    """A job. Times are UTC seconds since 1970."""

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
        """Whether the job has ended."""
        return self.status in ("done", "failed")


class JobStore:
    """Stores jobs. A worker renews the lease of its job in time, or loses it. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def create(self, owner: str, collection: str, request: JobRequest) -> Job:
        """Creates a job with status `queued`. Raises `BusyError` if the owner has too many waiting."""
        now = self._clock()
        await self._statements.write(
            "DELETE FROM jobs WHERE owner = ? AND status IN ('done', 'failed') AND updated < ?",
            owner,
            now - KEPT_SECONDS,
        )
        counted = f"SELECT count(*) FROM jobs WHERE owner = ? AND {UNFINISHED}"  # noqa: S608 - constants only
        ((waiting,),) = await self._statements.read(counted, owner)
        if waiting >= MAX_WAITING:
            raise BusyError(f"{waiting} jobs are waiting already; look at /v1/jobs", agent_id="library")
        rows = await self._statements.write(
            _INSERT,
            f"job_{secrets.token_hex(8)}",
            owner,
            replace_surrogates(collection),
            replace_surrogates(request.model_dump_json()),
            JobProgress().model_dump_json(),
            JobOutcome().model_dump_json(),
            now,
            now,
        )
        return self._job_from_row(rows[0])

    async def get(self, owner: str, job_id: str) -> Job:
        """Returns a job. Raises `NotFoundError`."""
        query = f"SELECT {_COLUMNS} FROM jobs WHERE owner = ? AND id = ?"  # noqa: S608 - constants only
        rows = await self._statements.read(query, owner, replace_surrogates(job_id))
        if not rows:
            raise NotFoundError(f"there is no job {job_id!r}", agent_id="library")
        return self._job_from_row(rows[0])

    async def list(self, owner: str, limit: int) -> "list[Job]":
        """Returns the owner's newest jobs, newest first."""
        query = f"SELECT {_COLUMNS} FROM jobs WHERE owner = ? ORDER BY created DESC, id LIMIT ?"  # noqa: S608 - as above
        return [self._job_from_row(row) for row in await self._statements.read(query, owner, limit)]

    async def claim(self, worker: str, seconds: float) -> Job | None:
        """Claims the oldest free job for `seconds`; returns None if there is none."""
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
                return self._job_from_row(rows[0])
        return None

    async def renew_lease(self, job: Job, worker: str, progress: JobProgress, seconds: float) -> bool:
        """Stores progress and renews the lease for `seconds`. Returns False if another worker holds the job."""
        now = self._clock()
        rows = await self._statements.write(
            "UPDATE jobs SET progress = ?, until = ?, updated = ? WHERE id = ? AND worker = ? AND status = 'running' "
            "RETURNING id",
            replace_surrogates(progress.model_dump_json()),
            now + seconds,
            now,
            job.id,
            worker,
        )
        return bool(rows)

    async def finish(self, job: Job, worker: str, progress: JobProgress, outcome: JobOutcome) -> None:
        """Stores the end of a job."""
        await self._statements.write(
            "UPDATE jobs SET status = ?, progress = ?, outcome = ?, updated = ? WHERE id = ? AND worker = ?",
            "failed" if outcome.failure is not None else "done",
            replace_surrogates(progress.model_dump_json()),
            replace_surrogates(outcome.model_dump_json()),
            self._clock(),
            job.id,
            worker,
        )

    async def requeue(self, job: Job, worker: str, status: JobStatus, seconds: float) -> None:
        """Returns the job to the queue, to start after `seconds` at the earliest. The attempt does not count."""
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

    def _job_from_row(self, row: Row) -> Job:
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


def report_to_json(report: IngestReport) -> JsonObject:
    """Returns a report as it is stored and sent; long lists of skipped documents are cut, and counted in full."""
    kept: JsonObject = json.loads(json.dumps({**asdict(report), "by_reason": report.by_reason}))
    kept["asks"] = {one.code: one.remedy for one in report.skipped if one.remedy}
    skipped = kept["skipped"]
    kept["skipped_count"] = len(report.skipped)
    kept["skipped"] = skipped[:MAX_SKIPPED_KEPT] if isinstance(skipped, list) else []
    return kept


def reindex_report_to_json(report: ReindexReport) -> JsonObject:
    """Returns a re-index report as it is stored and sent."""
    return asdict(report)
