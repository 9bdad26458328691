"""Adds the branches of conversations: which run a run follows, and which one the next message follows."""

from alembic import op
from sqlalchemy import inspect

revision = "r015"
down_revision = "r014"

_ADDED = (
    ("runs", "parent", "TEXT"),
    ("client_conversations", "head", "TEXT"),
    ("client_conversations", "head_at", "FLOAT"),
)


def upgrade() -> None:
    """Adds what the first migration has not made already. Conversations of earlier versions are one line."""
    connection = op.get_bind()
    for table, column, kind in _ADDED:
        if column not in {present["name"] for present in inspect(connection).get_columns(table)}:
            op.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
