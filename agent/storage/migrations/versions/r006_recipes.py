"""Adds the table of recipes: plans of runs as templates, by owner."""

from alembic import op

from agent.storage.tables.studio import recipes

revision = "r006"
down_revision = "r005"


def upgrade() -> None:
    """Creates the table, unless the first migration has made it already from the tables as they are now."""
    recipes.create(op.get_bind(), checkfirst=True)
