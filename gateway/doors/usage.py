"""`GET /v1/usage`: runs, model calls, tokens and cost, by day, room, model, key or owner."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Annotated, get_args

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, Field

from agent.core.errors import BadRequestError
from agent.core.models import DeferredModel
from agent.storage.usage import DAY_SECONDS, Dimension, UsageGroup
from gateway.auth.dependencies import CurrentCaller
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway

router = APIRouter(tags=["usage"], route_class=DeferredRoute)

DEFAULT_DAYS = 30


class UsageItem(DeferredModel):
    """The usage of one group. Fields that were not asked for in `by` are absent."""

    day: date | None = None
    owner: str | None = None
    key: str | None = Field(default=None, description="id of the API key; empty without one")
    room: str | None = None
    model: str | None = Field(default=None, description="empty for runs without a model call")
    runs: int = Field(description="ended runs; one that asked two models counts in both groups of `by=model`")
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = Field(description="part of prompt_tokens")
    reasoning_tokens: int = Field(description="part of completion_tokens")
    cost_usd: float | None = Field(description="the sum of the known costs; null if no price was known")


class UsageReport(DeferredModel):
    """The usage of the runs that ended in `[since, until)`."""

    since: datetime
    until: datetime
    data: list[UsageItem]
    total: UsageItem


def parse_dimensions(text: str) -> tuple[Dimension, ...]:
    """The dimensions of a comma-separated list, each once. Raises `BadRequestError`, naming the known ones."""
    dimensions: tuple[Dimension, ...] = get_args(Dimension)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in dimensions]:
        raise BadRequestError(f"by: {unknown[0][:50]!r} is not a way to group usage; known: {', '.join(dimensions)}")
    return tuple(dict.fromkeys(name for name in dimensions if name in names))


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


def to_usage_item(group: UsageGroup, dimensions: Sequence[Dimension]) -> UsageItem:
    """A group as it is sent."""
    named: dict[str, object] = dict(zip(dimensions, group.values, strict=True))
    if "day" in named:
        named["day"] = datetime.fromtimestamp(int(str(named["day"])) * DAY_SECONDS, UTC).date()
    counts = {name: getattr(group, name) for name in UsageGroup.__dataclass_fields__ if name != "values"}
    return UsageItem.model_validate({**named, **counts})
