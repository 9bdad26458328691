"""`BatchStore`: the documents that a job's walk has found, in batches that any process may claim.

A batch is claimed for some seconds at a time. Its documents, its done-mark and the job's counter are written in one
transaction, so that a batch is counted exactly once.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import Field

from agent.core.errors import BusyError
from agent.core.failures import AgentFailure
from agent.core.models import FrozenModel, JsonObject
from agent.core.surrogates import replace_surrogates
from agent.storage.sql import Row, SqlClient, SqlStatement
from gateway.features.documents.engine.search.models import CoverageSummary, FileType

OPEN = "status IN ('queued', 'running')"
"""The condition of the partial index, which a query must repeat in these words."""
_JOB_GOES_ON = "(SELECT 1 FROM jobs WHERE jobs.id = job_id AND jobs.status NOT IN ('done', 'failed'))"
_CANDIDATES = 8
"""Batches looked at by one claim: several processes look at the same ones."""
_COLUMNS = "job_id, number, attempts, place, items"
# Made of constants only.
_ADD = (
    "INSERT INTO job_batches (job_id, number, status, place, items, result, documents, attempts, worker, until, "
    "updated) SELECT id, (SELECT coalesce(max(number), 0) + 1 FROM job_batches WHERE job_id = jobs.id), 'queued', ?, "
    "?, '', ?, 0, '', 0, ? FROM jobs WHERE id = ? AND worker = ? AND status = 'running' RETURNING number"
)
_DUE = (
    f"SELECT number FROM job_batches WHERE job_id = ? AND {OPEN} AND until < ? AND EXISTS {_JOB_GOES_ON} "  # noqa: S608
    f"ORDER BY number LIMIT {_CANDIDATES}"
)
_CLAIM = (
    "UPDATE job_batches SET status = 'running', worker = ?, until = ?, attempts = attempts + 1, updated = ? "  # noqa: S608
    f"WHERE job_id = ? AND number = ? AND {OPEN} AND until < ? AND EXISTS {_JOB_GOES_ON} RETURNING {_COLUMNS}"
)
_MINE = "WHERE job_id = ? AND number = ? AND worker = ? AND attempts = ? AND status = 'running'"


class BatchItem(FrozenModel):
    """A document to read. `file` is a path, or the name of an object if `is_object`; `checksum` is of its bytes."""

    source: str
    name: str
    file_type: FileType
    file: str
    is_object: bool = False
    size: int
    checksum: str
    version: str = ""
    url: str | None = None
    source_metadata: JsonObject = Field(default={}, description="what the source says of it: headers, owners, times")


class SkippedItem(FrozenModel):
    """A document that could not be read, and why."""

    source: str
    code: str
    reason: str


class BatchResult(FrozenModel):
    """The outcome of a batch: how many documents were read, into how many passages, or the failure that ended it."""

    read: int = 0
    chunks: int = 0
    skipped: tuple[SkippedItem, ...] = ()
    notes: tuple[str, ...] = ()
    embedder: str = ""
    coverage: CoverageSummary | None = None
    attempts: int = 1
    failure: AgentFailure | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A claimed batch. `worker` and `attempts` are its claim: another one invalidates it."""

    job_id: str
    number: int
    attempts: int
    place: str
    items: tuple[BatchItem, ...]
    worker: str

    @property
    def name(self) -> str:
        """The batch, for log lines and as the first part of its claims."""
        return f"{self.job_id}/{self.number}"

    @property
    def claim(self) -> str:
        """The claim, by which its half written passages are noted."""
        return f"{self.name}/{self.attempts}"


class BatchStore:
    """Stores batches by job. Methods raise `StoreError`."""

    def __init__(self, statements: SqlClient, clock: Callable[[], float]) -> None:
        self._statements = statements
        self._clock = clock

    async def add(self, job_id: str, worker: str, place: str, items: Sequence[BatchItem]) -> None:
        """Adds a batch. Raises `BusyError` if another worker has the job by now."""
        data = json.dumps([one.model_dump(mode="json", exclude_defaults=True) for one in items], ensure_ascii=False)
        rows = await self._statements.write(
            _ADD, place, replace_surrogates(data), len(items), self._clock(), job_id, worker
        )
        if not rows:
            raise BusyError(f"{job_id} goes on in another process", agent_id="library")

    async def claim(self, job_id: str, worker: str, seconds: float) -> Batch | None:
        """Claims the first free batch of a job for `seconds`; None if there is none or the job has ended."""
        now = self._clock()
        for (number,) in await self._statements.read(_DUE, job_id, now):
            rows = await self._statements.write(_CLAIM, worker, now + seconds, now, job_id, number, now)
            if rows:
                return _from_row(rows[0], worker)
        return None

    async def renew_lease(self, batch: Batch, seconds: float) -> bool:
        """Renews a claim for `seconds`. Returns False if it was lost."""
        now = self._clock()
        rows = await self._statements.write(
            f"UPDATE job_batches SET until = ?, updated = ? {_MINE} RETURNING number",  # noqa: S608 - constants only
            now + seconds, now, *_get_key(batch),
        )  # fmt: skip
        return bool(rows)

    def make_completion(self, batch: Batch, result: BatchResult) -> tuple[SqlStatement, ...]:
        """The statements that mark a batch as done and count it. The first fails if the claim was lost.

        The job has got further: it counts as started for the first time.
        """
        data = replace_surrogates(result.model_dump_json(exclude_defaults=True))
        done = f"UPDATE job_batches SET status = 'done', result = ?, updated = ? {_MINE}"  # noqa: S608 - constants only
        counted = "UPDATE jobs SET batched = batched + ?, attempts = 1 WHERE id = ?"
        return (
            SqlStatement(done, (data, self._clock(), *_get_key(batch)), must_change=True),
            SqlStatement(counted, (len(batch.items), batch.job_id)),
        )

    async def requeue(self, batch: Batch, seconds: float, *, counts: bool) -> None:
        """A batch to the queue, to start after `seconds` at the earliest; `counts` says that it was tried."""
        now = self._clock()
        await self._statements.write(
            f"UPDATE job_batches SET status = 'queued', worker = '', until = ?, attempts = attempts - ?, updated = ? {_MINE}",  # noqa: S608, E501
            now + seconds if seconds else 0.0, 0 if counts else 1, now, *_get_key(batch),
        )  # fmt: skip

    async def fail(self, batch: Batch, failure: AgentFailure) -> None:
        """Gives a batch up."""
        result = BatchResult(failure=failure, attempts=batch.attempts)
        await self._statements.write(
            f"UPDATE job_batches SET status = 'failed', result = ?, updated = ? {_MINE}",  # noqa: S608 - constants only
            replace_surrogates(result.model_dump_json()), self._clock(), *_get_key(batch),
        )  # fmt: skip

    async def count_open(self, job_id: str) -> int:
        """Counts the batches of a job that are neither done nor given up."""
        query = f"SELECT count(*) FROM job_batches WHERE job_id = ? AND {OPEN}"  # noqa: S608 - constants only
        ((count,),) = await self._statements.read(query, job_id)
        return int(count)

    async def list_due_jobs(self, limit: int) -> list[tuple[str, str, str]]:
        """The owner, job id and place of jobs with batches that may be claimed."""
        query = (
            "SELECT DISTINCT jobs.owner, jobs.id, job_batches.place FROM job_batches JOIN jobs ON jobs.id = job_id "  # noqa: S608
            f"WHERE job_batches.{OPEN} AND job_batches.until < ? AND EXISTS {_JOB_GOES_ON} LIMIT ?"
        )
        return [
            (str(row[0]), str(row[1]), str(row[2])) for row in await self._statements.read(query, self._clock(), limit)
        ]

    async def list_sources(self, job_id: str) -> set[str]:
        """The sources of all batches of a job, done or not."""
        rows = await self._statements.read("SELECT items FROM job_batches WHERE job_id = ?", job_id)
        return {str(one["source"]) for (items,) in rows for one in json.loads(items)}

    async def list_results(self, job_id: str) -> list[BatchResult]:
        """The results of the batches that are done or given up, in the order of the walk."""
        rows = await self._statements.read(
            "SELECT result FROM job_batches WHERE job_id = ? AND status IN ('done', 'failed') ORDER BY number", job_id
        )
        return [BatchResult.model_validate_json(row[0]) for row in rows]

    def make_discard(self, job_id: str) -> SqlStatement:
        """The statement that removes the batches of a job that are not done."""
        return SqlStatement(f"DELETE FROM job_batches WHERE job_id = ? AND {OPEN}", (job_id,))  # noqa: S608

    async def remove(self, job_id: str) -> None:
        """Removes the batches of a job that has ended, except those that were given up."""
        await self._statements.write("DELETE FROM job_batches WHERE job_id = ? AND status <> 'failed'", job_id)


def _get_key(batch: Batch) -> tuple[object, ...]:
    """The values of `_MINE`."""
    return batch.job_id, batch.number, batch.worker, batch.attempts


def _from_row(row: Row, worker: str) -> Batch:
    job_id, number, attempts, place, items = row
    return Batch(
        job_id, number, attempts, place, tuple(BatchItem.model_validate(one) for one in json.loads(items)), worker
    )
