"""`JobStore`: background ingestions and re-indexings. They survive the process that runs them."""

import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from pydantic import Field

from agent.core.errors import BusyError, NotFoundError
from agent.core.failures import AgentFailure
from agent.core.models import FrozenModel, JsonObject
from agent.core.surrogates import replace_surrogates
from agent.storage.sql import Row, SqlClient, SqlStatement, UnchangedError
from gateway.features.documents.engine.ingest.batches import BatchStore
from gateway.features.documents.engine.ingest.ingest_report import IngestReport
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.reindex import ReindexReport
from gateway.features.documents.engine.search.models import ConnectorInput

JobStatus = Literal["queued", "running", "done", "failed", "interrupted"]
"""`interrupted`: its process ended; the next gateway that looks claims it again."""
UNFINISHED = "status IN ('queued', 'running', 'interrupted')"
KEPT_SECONDS = 30 * 86_400
"""How long finished jobs are kept."""
MAX_WAITING = 100
"""Unfinished jobs of one owner. More indicates a loop in a client."""
MAX_SKIPPED_KEPT = 1_000
_COLUMNS = (
    "id, owner, collection, status, request, progress, outcome, attempts, until, created, updated, place, walk, batched"
)
# Made of constants only.
_INSERT = (
    "INSERT INTO jobs (id, owner, collection, status, request, progress, outcome, attempts, worker, until, created, "  # noqa: S608
    f"updated, place) VALUES (?,?,?,'queued',?,?,?,0,'',0,?,?,?) RETURNING {_COLUMNS}"
)
_DUE = (
    f"SELECT {_COLUMNS} FROM jobs WHERE {UNFINISHED} AND until < ? AND (created, id) > (?, ?) "  # noqa: S608
    f"ORDER BY created, id LIMIT {MAX_WAITING}"
)
_CLAIM = (
    "UPDATE jobs SET status = 'running', worker = ?, until = ?, attempts = attempts + 1, updated = ? "  # noqa: S608
    f"WHERE id = ? AND {UNFINISHED} AND until < ? RETURNING {_COLUMNS}"
)


class JobRequest(FrozenModel):
    """What to read, and by which pipeline if not the collection's own. Without a source, the collection is
    re-indexed."""

    source: ConnectorInput | None = None
    pipeline: PipelineDAG | None = None

    @property
    def is_local(self) -> bool:
        """Whether it reads local files, which only some processes may see."""
        return self.source is not None and self.source.source_type == "local"


class JobProgress(FrozenModel):
    """The progress of a job. `total` is None while the number of documents is unknown."""

    current: str = ""
    done: int = 0
    total: int | None = None


class WalkResult(FrozenModel):
    """The findings of a finished walk besides the documents of its batches.

    `skipped` are names, error codes and reasons, `vanished` the sources that are no longer there.
    """

    unchanged: int = 0
    left_out: int = 0
    skipped: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()

    @property
    def processed_count(self) -> int:
        """How many documents were found that are in no batch."""
        return self.unchanged + self.left_out + len(self.skipped)


class JobOutcome(FrozenModel):
    """The end of a job: a report or a failure."""

    report: JsonObject | None = None
    failure: AgentFailure | None = Field(default=None)


@dataclass(frozen=True, slots=True)
class Job:
    """A job. Times are UTC seconds since 1970.

    `place` says where its files are (`file_locations.py`); `walk` is None until the walk of its source has ended.
    """

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
    place: str = ""
    walk: WalkResult | None = None
    walked: JobProgress = field(default_factory=JobProgress)
    """The progress without the documents of batches."""

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended."""
        return self.status in ("done", "failed")


class JobStore:
    """Stores jobs. A worker renews the lease of its job in time, or loses it. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock
        self.batches = BatchStore(statements, clock)

    async def create(self, owner: str, collection: str, request: JobRequest, place: str = "") -> Job:
        """Creates a job with status `queued`; `place` is where its files lie, if that is known.

        Raises `BusyError` if the owner has too many waiting.
        """
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
            place,
        )
        return self._parse_row(rows[0])

    async def get(self, owner: str, job_id: str) -> Job:
        """A job. Raises `NotFoundError`."""
        query = f"SELECT {_COLUMNS} FROM jobs WHERE owner = ? AND id = ?"  # noqa: S608 - constants only
        rows = await self._statements.read(query, owner, replace_surrogates(job_id))
        if not rows:
            raise NotFoundError(f"there is no job {job_id!r}", agent_id="library")
        return self._parse_row(rows[0])

    async def list(self, owner: str, limit: int) -> "list[Job]":
        """The owner's newest jobs, newest first."""
        query = f"SELECT {_COLUMNS} FROM jobs WHERE owner = ? ORDER BY created DESC, id LIMIT ?"  # noqa: S608 - as above
        return [self._parse_row(row) for row in await self._statements.read(query, owner, limit)]

    async def claim(
        self, worker: str, seconds: float, can_do: Callable[[Job], Awaitable[bool]] | None = None
    ) -> Job | None:
        """Claims the oldest free job that this process can do for `seconds`; returns None if there is none."""
        now = self._clock()
        after = (0.0, "")
        while page := [self._parse_row(row) for row in await self._statements.read(_DUE, now, *after)]:
            for due in page:
                if can_do is not None and not await can_do(due):
                    continue
                rows = await self._statements.write(_CLAIM, worker, now + seconds, now, due.id, now)
                if rows:
                    return self._parse_row(rows[0])
            after = (page[-1].created, page[-1].id)
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

    async def set_place(self, job: Job, worker: str, place: str) -> None:
        """Stores where the files of a job lie. Raises `BusyError` if another worker holds the job."""
        await self._update(job, worker, "place = ?", place)

    async def set_walk(self, job: Job, worker: str, walk: WalkResult) -> None:
        """Stores the end of a job's walk. Raises `BusyError` if another worker holds the job."""
        await self._update(job, worker, "walk = ?", replace_surrogates(walk.model_dump_json()))

    async def count_batched(self, job_id: str) -> int:
        """Counts the documents of a job that are in batches, done or not."""
        query = "SELECT coalesce(sum(documents), 0) FROM job_batches WHERE job_id = ?"
        ((count,),) = await self._statements.read(query, job_id)
        return int(count)

    async def discard_walk(self, job: Job, worker: str) -> None:
        """Forgets a job's walk and the batches that are not done. Raises `BusyError` if another worker has the job."""
        await self._update(job, worker, "walk = ?", None, self.batches.make_discard(job.id))

    async def finish(self, job: Job, worker: str, progress: JobProgress, outcome: JobOutcome) -> bool:
        """Stores the end of a job. Returns False if another worker holds the job."""
        rows = await self._statements.write(
            "UPDATE jobs SET status = ?, progress = ?, outcome = ?, updated = ? WHERE id = ? AND worker = ? "
            "AND status = 'running' RETURNING id",
            "failed" if outcome.failure is not None else "done",
            replace_surrogates(progress.model_dump_json()),
            replace_surrogates(outcome.model_dump_json()),
            self._clock(),
            job.id,
            worker,
        )
        return bool(rows)

    async def requeue(self, job: Job, worker: str, status: JobStatus, seconds: float) -> None:
        """The job to the queue, to start after `seconds` at the earliest. The attempt does not count."""
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

    async def retry(self, job: Job, worker: str, seconds: float, attempts: int) -> bool:
        """The job to the queue, to start after `seconds` at the earliest. Returns False if it was begun
        `attempts` times without getting further, or another worker holds it."""
        now = self._clock()
        rows = await self._statements.write(
            "UPDATE jobs SET status = 'queued', worker = '', until = ?, updated = ? "
            "WHERE id = ? AND worker = ? AND attempts < ? RETURNING id",
            now + seconds,
            now,
            job.id,
            worker,
            attempts,
        )
        return bool(rows)

    async def list_with_traces(self) -> Sequence[Job]:
        """Jobs that have ended, but whose process has ended before it removed what they had fetched."""
        query = (
            f"SELECT {_COLUMNS} FROM jobs WHERE status IN ('done', 'failed') AND place <> '' "  # noqa: S608 - constants
            f"ORDER BY updated LIMIT {MAX_WAITING}"
        )
        return [self._parse_row(row) for row in await self._statements.read(query)]

    async def clear_place(self, job_id: str) -> None:
        """Records that an ended job has left nothing behind."""
        await self._statements.write("UPDATE jobs SET place = '' WHERE id = ?", job_id)

    async def _update(self, job: Job, worker: str, change: str, value: str | None, *more: SqlStatement) -> None:
        update = f"UPDATE jobs SET {change} WHERE id = ? AND worker = ? AND status = 'running'"  # noqa: S608
        try:
            await self._statements.write_all(SqlStatement(update, (value, job.id, worker), must_change=True), *more)
        except UnchangedError as error:
            raise BusyError(f"{job.id} goes on in another process", agent_id="library") from error

    def _parse_row(self, row: Row) -> Job:
        job_id, owner, collection, status, request, progress, outcome, attempts, until, created, updated = row[:11]
        place, walk, batched = row[11:]
        walked = JobProgress.model_validate_json(progress)
        return Job(
            id=job_id,
            owner=owner,
            collection=collection,
            status="interrupted" if status == "running" and until < self._clock() else status,
            request=JobRequest.model_validate_json(request),
            progress=walked.model_copy(update={"done": walked.done + int(batched)}),
            outcome=JobOutcome.model_validate_json(outcome),
            attempts=attempts,
            created=created,
            updated=updated,
            place=place or "",
            walk=WalkResult.model_validate_json(walk) if walk else None,
            walked=walked,
        )


def report_to_json(report: IngestReport) -> JsonObject:
    """A report as it is stored and sent; long lists of skipped documents are cut, and counted in full."""
    coverage = report.coverage.model_dump() if report.coverage is not None else None
    report_fields: JsonObject = json.loads(
        json.dumps({**asdict(report), "by_reason": report.by_reason, "coverage": coverage})
    )
    report_fields["asks"] = {one.code: one.remedy for one in report.skipped if one.remedy}
    skipped = report_fields["skipped"]
    report_fields["skipped_count"] = len(report.skipped)
    report_fields["skipped"] = skipped[:MAX_SKIPPED_KEPT] if isinstance(skipped, list) else []
    return report_fields


def reindex_report_to_json(report: ReindexReport) -> JsonObject:
    """A re-index report as it is stored and sent."""
    return asdict(report)
