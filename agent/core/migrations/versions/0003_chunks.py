"""Passages of collections with the terms they are found by, and what searches can be filtered by."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

_COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
# SQLite's full-text tables are made with each collection (agent/knowledge/lexical_sqlite.py); this stays empty there.
_WORDS = sa.Text().with_variant(postgresql.TSVECTOR(), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "chunk_sets",
        sa.Column("id", _COUNTER, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("changes", sa.BigInteger, nullable=False),
    )
    op.create_index("chunk_sets_by_owner", "chunk_sets", ["owner", "collection"], unique=True)
    op.create_table(
        "chunks",
        sa.Column("seq", _COUNTER, primary_key=True, autoincrement=True),
        sa.Column("set_id", _COUNTER, sa.ForeignKey("chunk_sets.id", ondelete="CASCADE"), nullable=False),
        sa.Column("chunk_id", sa.Text, nullable=False),
        sa.Column("document_id", sa.Text, nullable=False),
        sa.Column("title_count", sa.Integer, nullable=False),
        sa.Column("text_count", sa.Integer, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("title_terms", sa.Text, nullable=False),
        sa.Column("text_terms", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("words", _WORDS),
    )
    op.create_index("chunks_by_id", "chunks", ["set_id", "chunk_id"], unique=True)
    op.create_index("chunks_by_document", "chunks", ["set_id", "document_id"])
    op.create_index("chunks_lengths", "chunks", ["set_id", "seq", "title_count", "text_count"])
    op.create_index(
        "chunks_words", "chunks", ["words"], postgresql_using="gin", sqlite_where=sa.text("words IS NOT NULL")
    )
    op.create_table(
        "chunk_facets",
        sa.Column("set_id", _COUNTER, sa.ForeignKey("chunk_sets.id", ondelete="CASCADE"), nullable=False),
        sa.Column("field", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("seq", _COUNTER, nullable=False),
        sa.PrimaryKeyConstraint("set_id", "field", "value", "seq"),
        sqlite_with_rowid=False,
    )
    op.create_index("chunk_facets_by_chunk", "chunk_facets", ["seq"])


def downgrade() -> None:
    """Drop them; documents must be indexed again."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        ids = [row[0] for row in connection.execute(sa.text("SELECT id FROM chunk_sets"))]
        for identity in ids:
            op.execute(f"DROP TABLE IF EXISTS chunk_vocabulary_{int(identity)}")
            op.execute(f"DROP TABLE IF EXISTS chunk_words_{int(identity)}")
    for table in ("chunk_facets", "chunks", "chunk_sets"):
        op.drop_table(table)
