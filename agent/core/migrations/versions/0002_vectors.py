"""Vectors of the exact index: the sets with their space, and their rows."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "vector_sets",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("embedder", sa.Text, nullable=False),
        sa.Column("dimension", sa.Integer, nullable=False),
        sa.Column("generation", sa.Text, nullable=False),
        sa.Column("added", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("removed", sa.BigInteger, nullable=False, server_default="0"),
    )
    op.create_table(
        "vectors",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", "id"),
    )
    op.create_index("vectors_by_owner", "vectors", ["name", "owner", "seq"])


def downgrade() -> None:
    """Drop them; memories without Qdrant are lost."""
    for table in ("vectors", "vector_sets"):
        op.drop_table(table)
