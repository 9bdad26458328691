"""Usage of models: by run, and summed by day."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    false,
    text,
)

from agent.core.models import USAGE_COUNTS
from agent.storage.tables.schema import metadata

_FIRST_COUNTS = frozenset(("model_calls", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"))
"""The counts of the first version. A later one has a default: a process of an earlier version leaves it out."""


def _make_counts() -> list[Column[int]]:
    return [
        Column(name, BigInteger, nullable=False, server_default=None if name in _FIRST_COUNTS else "0")
        for name in USAGE_COUNTS
    ]


# No foreign key: usage outlives the runs, which may be deleted. `day` counts days of UTC since 1970. A row that is
# `summed` is contained in `usage_days`.
model_usage = Table(
    "model_usage",
    metadata,
    Column("run_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("room", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("day", Integer, nullable=False),
    *_make_counts(),
    Column("cost_usd", Float),
    Column("summed", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("run_id", "model"),
)
Index("model_usage_by_owner", model_usage.c.owner, model_usage.c.at)
Index("model_usage_by_time", model_usage.c.at)
Index(
    "model_usage_unsummed",
    model_usage.c.at,
    sqlite_where=text("NOT summed"),
    postgresql_where=text("NOT summed"),
)

# The sums of `model_usage` by day, which stay when its rows are deleted. `runs` counts each run once, under the first
# of its models; `model_runs` counts it under each.
usage_days = Table(
    "usage_days",
    metadata,
    Column("day", Integer, nullable=False),
    Column("owner", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("room", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("runs", BigInteger, nullable=False),
    Column("model_runs", BigInteger, nullable=False),
    *_make_counts(),
    Column("cost_usd", Float),
    PrimaryKeyConstraint("day", "owner", "key_id", "room", "model"),
)
