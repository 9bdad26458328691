"""Adds the prompt library, and the rooms that PostgreSQL stores."""

from alembic import op

from agent.storage.tables.studio import prompts, room_versions

revision = "r005"
down_revision = "r004"


def upgrade() -> None:
    """Creates both tables, unless the first migration has made them already from the tables as they are now."""
    for table in (prompts, room_versions):
        table.create(op.get_bind(), checkfirst=True)
