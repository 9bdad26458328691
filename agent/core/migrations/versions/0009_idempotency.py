"""Requests with an idempotency key, and the answers they had."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "idempotency",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("headers", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("owner", "key"),
    )
    op.create_index("idempotency_by_time", "idempotency", ["at"])


def downgrade() -> None:
    """Drop it: what is sent again is carried out again."""
    op.drop_table("idempotency")
