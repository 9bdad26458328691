"""`/v1/queue`: lanes, workers and dead letters of the queue. Needs the scope `admin`: it covers all owners."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field

from agent.core.errors import ConflictError
from agent.core.models import DeferredModel
from agent.storage.audit import MAX_ID
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway
from gateway.features.fleet import parts
from gateway.features.fleet.engine.queue_state import QueueDepth, QueueState, find_unserved
from gateway.features.fleet.forms import DeadLetterItem, QueueItem, WorkerItem, to_queue_item

router = APIRouter(tags=["queue"], route_class=DeferredRoute, dependencies=[require_scope("admin")])

JobId = Annotated[int, Path(ge=1, le=MAX_ID, description="of a dead letter")]


class QueueReport(DeferredModel):
    """What is in the queue."""

    lanes: list[QueueItem]
    workers: list[WorkerItem]
    dead_letters: list[DeadLetterItem] = Field(description="the newest ones")
    lease_seconds: float = Field(description="a process that is silent for longer loses its jobs to others")


class QueuedJob(DeferredModel):
    """A job that is queued again."""

    id: int
    status: Literal["queued"] = "queued"


@router.get("/v1/queue", responses=ERRORS)
async def get_queue(stepgate: Gateway, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> QueueReport:
    """Return the lanes with their jobs, who takes them, and up to `limit` dead letters, newest first."""
    state = _require_queue(stepgate)
    depths, workers = await state.list_depths(), await state.list_workers()
    unserved = find_unserved(depths, workers)
    idle = {one.queue for one in workers} - {one.queue for one in depths}
    lanes = sorted((*depths, *map(QueueDepth, idle)), key=lambda one: one.queue)
    return QueueReport(
        lanes=[to_queue_item(one, is_served=one.queue not in unserved) for one in lanes],
        workers=WorkerItem.from_records(workers),
        dead_letters=DeadLetterItem.from_records(await state.list_dead_letters(limit)),
        lease_seconds=stepgate.settings.lease_seconds,
    )


@router.post("/v1/queue/{job_id}/retry", status_code=202, responses=ERRORS)
async def retry_job(job_id: JobId, stepgate: Gateway, caller: CurrentCaller) -> QueuedJob:
    """Retry a dead letter. 409 for one of a run that has ended."""
    await _require_queue(stepgate).requeue(job_id, by=caller.name)
    return QueuedJob(id=job_id)


@router.delete("/v1/queue/{job_id}", status_code=204, responses=ERRORS)
async def discard_job(job_id: JobId, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Delete a dead letter. 409 for one of a run that has not ended: cancel the run first."""
    await _require_queue(stepgate).discard(job_id, by=caller.name)


def _require_queue(stepgate: Stepgate) -> QueueState:
    queue = parts.get_queue(stepgate)
    if queue is None:
        raise ConflictError(
            "this gateway executes its runs itself and has no queue (AGENT_DISPATCH=local); to share runs with "
            "workers, set AGENT_DISPATCH=queue and AGENT_DATABASE_URL=postgresql://... (docs/scale.md)"
        )
    return queue.state
