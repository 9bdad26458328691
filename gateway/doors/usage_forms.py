"""The form of usage: the sums of one group, as the route and `stepgate usage --json` send them.

A count is one of `Usage` (`agent/core/models/answer.py`), a column in two tables, since the database sums it up, and a
field of this form. The tables and `UsageLedger` take the counts from `Usage`; databases get the columns by a revision.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import get_args

from pydantic import Field

from agent.core.errors import BadRequestError
from agent.core.models import USAGE_COUNTS, DeferredModel
from agent.storage.usage import DAY_SECONDS, Dimension, UsageGroup


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


def parse_dimensions(text: str) -> tuple[Dimension, ...]:
    """The dimensions of a comma-separated list, each once. Raises `BadRequestError`, naming the known ones."""
    dimensions: tuple[Dimension, ...] = get_args(Dimension)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in dimensions]:
        raise BadRequestError(f"by: {unknown[0][:50]!r} is not a way to group usage; known: {', '.join(dimensions)}")
    return tuple(dict.fromkeys(name for name in dimensions if name in names))


def to_usage_item(group: UsageGroup, dimensions: Sequence[Dimension]) -> UsageItem:
    """A group as it is sent."""
    named: dict[str, object] = dict(zip(dimensions, group.values, strict=True))
    if "day" in named:
        named["day"] = datetime.fromtimestamp(int(str(named["day"])) * DAY_SECONDS, UTC).date()
    sums = {name: getattr(group.usage, name) for name in (*USAGE_COUNTS, "cost_usd")}
    return UsageItem.model_validate({**named, "runs": group.runs, **sums})
