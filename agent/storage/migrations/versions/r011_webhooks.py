"""Adds the deliveries of webhooks, and the webhook of a task."""

from alembic import op
from sqlalchemy import Column, Text, inspect

from agent.storage.tables.webhooks import webhook_deliveries

revision = "r011"
down_revision = "r010"


def upgrade() -> None:
    """Creates the table and the column, unless the first migration has made them already."""
    connection = op.get_bind()
    webhook_deliveries.create(connection, checkfirst=True)
    if "webhook" not in {column["name"] for column in inspect(connection).get_columns("tasks")}:
        op.add_column("tasks", Column("webhook", Text))
