"""Which set of vectors serves a collection, and which one is being made to take its place."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Make the table; a collection without a row is served by the set that has its name."""
    op.create_table(
        "collection_vectors",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("serving", sa.Text, nullable=False),
        sa.Column("remaking", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("owner", "collection"),
    )


def downgrade() -> None:
    """Drop it: collections whose vectors were made anew are found by their words until that is done again."""
    op.drop_table("collection_vectors")
