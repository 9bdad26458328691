"""Collections with their pipelines, the jobs that fill them, and what an interrupted ingestion left half written."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables. Who is indexing is forgotten: nobody is while this runs."""
    op.create_table(
        "collections",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("sources", sa.Text, nullable=False),
        sa.Column("embedder", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("updated", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("owner", "name"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("progress", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("updated", sa.Float, nullable=False),
    )
    op.create_index("jobs_by_owner", "jobs", ["owner", "created"])
    op.create_index("jobs_by_status", "jobs", ["status", "until"])
    op.create_index("documents_by_id", "documents", ["owner", "document_id"])
    op.create_index("documents_by_checksum", "documents", ["owner", "checksum"])
    op.drop_table("ingestions")
    _make_ingestions(sa.Column("pending", sa.Text, nullable=False))


def downgrade() -> None:
    """Drop them; collections go on with the default pipeline."""
    op.drop_table("ingestions")
    _make_ingestions()
    op.drop_index("documents_by_checksum", "documents")
    op.drop_index("documents_by_id", "documents")
    for table in ("jobs", "collections"):
        op.drop_table(table)


def _make_ingestions(*more: sa.Column[str]) -> None:
    op.create_table(
        "ingestions",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        *more,
        sa.PrimaryKeyConstraint("owner", "collection"),
    )
