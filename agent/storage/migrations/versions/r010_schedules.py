"""Adds schedules and the record of their ticks."""

from alembic import op

from agent.storage.tables.schedules import schedule_ticks, schedules

revision = "r010"
down_revision = "r009"


def upgrade() -> None:
    """Creates both tables, unless the first migration has made them already from the tables as they are now."""
    for table in (schedules, schedule_ticks):
        table.create(op.get_bind(), checkfirst=True)
