"""`GET /v1/usage`: runs, model calls, tokens and cost, by day, room, model, key or owner."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from agent.core.models import DeferredModel
from agent.storage.usage import DAY_SECONDS
from gateway.access.dependencies import CurrentCaller
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway
from gateway.doors.usage_forms import UsageItem, parse_dimensions, to_usage_item

router = APIRouter(tags=["usage"], route_class=DeferredRoute)

DEFAULT_DAYS = 30


class UsageReport(DeferredModel):
    """The usage of the runs that ended in `[since, until)`."""

    since: datetime
    until: datetime
    data: list[UsageItem]
    total: UsageItem


@router.get("/v1/usage", responses=ERRORS, response_model_exclude_unset=True)
async def get_usage(
    stepgate: Gateway,
    caller: CurrentCaller,
    since: Annotated[AwareDatetime | None, Query(description="with its time zone; 30 days before `until`")] = None,
    until: Annotated[AwareDatetime | None, Query(description="with its time zone; now")] = None,
    by: Annotated[str, Query(description="day, owner, key, room, model; several with commas")] = "day",
    owner: Annotated[str | None, Query(description="needs the scope `admin`; `*` is all owners")] = None,
) -> UsageReport:
    """Sum up the usage of the caller's runs; with the scope `admin` also of another owner's, or of all."""
    dimensions = parse_dimensions(by)
    counted = caller.principal.owner if owner is None else owner
    if counted != caller.principal.owner:
        caller.require_scope("admin")
    end = until or datetime.now(UTC)
    begin = since or datetime.fromtimestamp(max(0.0, end.timestamp() - DEFAULT_DAYS * DAY_SECONDS), UTC)
    span = {"since": begin.timestamp(), "until": end.timestamp()}
    one = None if counted == "*" else counted
    # In this order: a run that is recorded between the two is in a group and not yet in the total, never the reverse.
    (total,) = await stepgate.usage.summarize((), owner=one, **span)
    groups = await stepgate.usage.summarize(dimensions, owner=one, **span)
    return UsageReport(
        since=begin,
        until=end,
        data=[to_usage_item(group, dimensions) for group in groups] if dimensions else [],
        total=to_usage_item(total, ()),
    )
