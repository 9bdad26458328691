"""Adds the table of recipes: plans of runs as templates, by owner."""

import sqlalchemy as sa
from alembic import op

revision = "r006"
down_revision = "r005"


def upgrade() -> None:
    """Creates the table."""
    op.create_table(
        "recipes",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("staged", sa.Text),
        sa.Column("applied", sa.Text),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("updated", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("owner", "name"),
    )
