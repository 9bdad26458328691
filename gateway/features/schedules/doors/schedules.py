"""`/v1/schedules`: requests and tasks that run at times given by cron."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from pydantic import Field

from agent.core.errors import ScopeError
from agent.core.models import DeferredModel, RunStatus
from agent.core.principal import Principal
from agent.core.record_item import RecordItem
from gateway.access.authentication import Caller
from gateway.access.dependencies import CurrentCaller, require_scope, require_tool
from gateway.access.idempotency import start_once
from gateway.doors.agent import ERRORS, BackgroundRun
from gateway.doors.dependencies import Gateway
from gateway.doors.json_body import JsonRoute
from gateway.doors.strict_body import refuse_unknown_fields
from gateway.features.schedules.engine.model import ScheduleSpec
from gateway.features.schedules.engine.schedule_store import TickOrigin, TickOutcome
from gateway.features.schedules.forms import ScheduleChanges, ScheduleItem, to_schedule_item
from gateway.features.schedules.parts import get_schedules

router = APIRouter(tags=["schedules"], route_class=JsonRoute, dependencies=[require_scope("agent")])

MAX_TICK: Final = 1e11


class ScheduleList(DeferredModel):
    """The schedules of the caller, in order of name."""

    data: list[ScheduleItem]


class TickItem(RecordItem):
    """What was done at one tick."""

    tick: datetime
    origin: TickOrigin = Field(description="`manual`: started by hand")
    outcome: TickOutcome = Field(
        description="`started` a run; `skipped`: the previous run was still running; `missed`: no gateway was running; "
        "`refused`: the run was not allowed"
    )
    run_id: str | None
    run_status: RunStatus | None = Field(description="null without a run, and for one that was deleted")
    detail: str = Field(description="why there is no run")
    missed: int = Field(description="ticks before this one at which no gateway was running, counted up to 100")


class TickList(DeferredModel):
    """Ticks, newest first; pass `next` as `before` for older ones."""

    data: list[TickItem]
    next: float | None = None


@router.post("/v1/schedules", status_code=201, responses=ERRORS, dependencies=[require_tool("schedule_create")])
async def create_schedule(body: ScheduleSpec, http: Request, stepgate: Gateway, caller: CurrentCaller) -> ScheduleItem:
    """Create a schedule. It runs on behalf of the caller's API key, with its tools and limits."""
    refuse_unknown_fields(await http.json(), ScheduleSpec)
    return to_schedule_item(await get_schedules(stepgate).service.create(body, require_lasting_key(caller)))


@router.get("/v1/schedules", responses=ERRORS, dependencies=[require_tool("schedules_list")])
async def list_schedules(stepgate: Gateway, caller: CurrentCaller) -> ScheduleList:
    """List the schedules."""
    return ScheduleList(
        data=[to_schedule_item(one) for one in await get_schedules(stepgate).store.list_all(caller.owner)]
    )


@router.get("/v1/schedules/{schedule}", responses=ERRORS, dependencies=[require_tool("schedules_list")])
async def get_schedule(schedule: str, stepgate: Gateway, caller: CurrentCaller) -> ScheduleItem:
    """Return a schedule by its id or name."""
    return to_schedule_item(await get_schedules(stepgate).store.get(caller.owner, schedule))


@router.patch("/v1/schedules/{schedule}", responses=ERRORS, dependencies=[require_tool("schedule_create")])
async def change_schedule(
    schedule: str, body: ScheduleChanges, stepgate: Gateway, caller: CurrentCaller
) -> ScheduleItem:
    """Change a schedule. From then on it runs on behalf of the API key that changed it."""
    changed = await get_schedules(stepgate).service.change(schedule, body.to_changes(), require_lasting_key(caller))
    return to_schedule_item(changed)


@router.delete(
    "/v1/schedules/{schedule}", status_code=204, responses=ERRORS, dependencies=[require_tool("schedule_remove")]
)
async def delete_schedule(schedule: str, stepgate: Gateway, caller: CurrentCaller) -> None:
    """Delete a schedule with the record of its ticks. Its runs stay."""
    await get_schedules(stepgate).store.remove(await get_schedules(stepgate).store.get(caller.owner, schedule))


@router.post("/v1/schedules/{schedule}/run", status_code=202, responses=ERRORS)
async def run_schedule(schedule: str, http: Request, stepgate: Gateway, caller: CurrentCaller) -> BackgroundRun:
    """Start a run of the schedule now, on behalf of the caller."""
    accepted = await start_once(
        http,
        caller.owner,
        lambda run_id: get_schedules(stepgate).service.run_now(schedule, caller.principal, run_id=run_id),
    )
    http.state.run_started, http.state.run_id = True, accepted.run_id
    row = await stepgate.service.get_run(accepted.run_id, owner=accepted.owner)
    url = f"{stepgate.settings.public_path}/v1/runs/{row.run_id}"
    return BackgroundRun(run_id=row.run_id, status=row.status, url=url)


@router.get("/v1/schedules/{schedule}/ticks", responses=ERRORS, dependencies=[require_tool("schedules_list")])
async def list_schedule_ticks(
    schedule: str,
    stepgate: Gateway,
    caller: CurrentCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[float | None, Query(ge=0, le=MAX_TICK, allow_inf_nan=False)] = None,
) -> TickList:
    """List the ticks of a schedule with their runs, and why there was none."""
    stored = await get_schedules(stepgate).store.get(caller.owner, schedule)
    ticks = await get_schedules(stepgate).store.list_ticks(stored, limit=limit, before=before)
    return TickList(data=TickItem.from_records(ticks), next=ticks[-1].tick if len(ticks) == limit else None)


def require_lasting_key(caller: Caller) -> Principal:
    """The principal of a caller whose key can be checked at each tick. Raises `ScopeError` for other tokens."""
    if caller.is_external:
        raise ScopeError("a token of another issuer expires and cannot be checked later: use an API key for schedules")
    return caller.principal
