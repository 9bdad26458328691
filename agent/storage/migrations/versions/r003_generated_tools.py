"""Adds the tables of generated tools."""

from alembic import op

from agent.storage.tables.studio import active_tools, tool_versions

revision = "r003"
down_revision = "r002"


def upgrade() -> None:
    """Creates both tables, unless the first migration has made them already from the tables as they are now."""
    for table in (tool_versions, active_tools):
        table.create(op.get_bind(), checkfirst=True)
