"""Adds the queue of a run, and the tables of the queue's workers and of fairness between owners."""

from alembic import op
from sqlalchemy import inspect

from agent.storage.tables.fleet import queue_tags, queue_workers

revision = "r009"
down_revision = "r008"


def upgrade() -> None:
    """Adds them, unless the first migration has made them already from the tables as they are now."""
    connection = op.get_bind()
    if "queue" not in {column["name"] for column in inspect(connection).get_columns("runs")}:
        op.execute("ALTER TABLE runs ADD COLUMN queue TEXT DEFAULT '' NOT NULL")
    for table in (queue_workers, queue_tags):
        table.create(connection, checkfirst=True)
