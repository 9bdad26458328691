"""Schedules with their ticks."""

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, PrimaryKeyConstraint, Table, Text, text

from agent.storage.tables.schema import metadata

# `next_tick` is None while a schedule is disabled. `held_until` is not 0 while a gateway handles that tick.
schedules = Table(
    "schedules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("work", Text, nullable=False),
    Column("cron", Text, nullable=False),
    Column("timezone", Text, nullable=False),
    Column("overlap", Text, nullable=False),
    Column("misfire", Text, nullable=False),
    Column("webhook", Text),
    Column("key_id", Text),
    Column("enabled", Integer, nullable=False),
    Column("stopped", Text, nullable=False),
    Column("next_tick", Float),
    Column("held_until", Float, nullable=False, server_default="0"),
    Column("last_tick", Float),
    Column("last_run_id", Text),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
)
Index("schedules_by_name", schedules.c.owner, schedules.c.name, unique=True)
Index(
    "schedules_due",
    schedules.c.next_tick,
    sqlite_where=text("enabled = 1"),
    postgresql_where=text("enabled = 1"),
)

schedule_ticks = Table(
    "schedule_ticks",
    metadata,
    Column("schedule_id", Text, ForeignKey("schedules.id", ondelete="CASCADE"), nullable=False),
    Column("tick", Float, nullable=False),
    Column("owner", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("run_id", Text),
    Column("detail", Text, nullable=False),
    Column("missed", Integer, nullable=False, server_default="0"),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("schedule_id", "tick"),
)
