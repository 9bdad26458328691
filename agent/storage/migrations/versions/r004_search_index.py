"""Removes the full-text tables, columns and indexes: the search index is in the data folder, made from the passages."""

from alembic import op
from sqlalchemy import inspect, text

revision = "r004"
down_revision = "r003"


def upgrade() -> None:
    """Keeps the passages with their terms, from which the next search of a collection makes its index."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        names = connection.execute(
            text(
                "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE chunk_words_%' "
                "OR sql LIKE 'CREATE VIRTUAL TABLE chunk_vocabulary_%' ORDER BY name"
            )
        ).scalars()
        for name in names.all():
            op.execute(f"DROP TABLE {name}")
    op.execute("DROP INDEX IF EXISTS chunks_words")
    op.execute("DROP INDEX IF EXISTS chunks_lengths")
    column_names = {column["name"] for column in inspect(connection).get_columns("chunks")}
    for column in ("words", "title_count", "text_count"):
        if column in column_names:
            op.execute(f"ALTER TABLE chunks DROP COLUMN {column}")
    op.execute("CREATE INDEX IF NOT EXISTS chunks_by_number ON chunks (set_id, seq)")
    op.execute("DROP TABLE IF EXISTS chunk_facets")
