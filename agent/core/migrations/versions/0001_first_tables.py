"""The first tables: runs, events, signals, blobs, turns.

Written out rather than made from `schema.py`: a migration must stay what it was on the day it was released.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("room", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("hidden", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("tainted", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("terminal", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("worker", sa.Text),
        sa.Column("lease_until", sa.Float, nullable=False, server_default="0"),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
    op.create_index("runs_by_owner", "runs", ["owner", "created_at"])
    op.create_index(
        "runs_unfinished",
        "runs",
        ["lease_until"],
        sqlite_where=sa.text("terminal = 0"),
        postgresql_where=sa.text("NOT terminal"),
    )
    op.create_table(
        "events",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("v", sa.Integer, nullable=False),
        sa.Column("step_id", sa.Text),
        sa.Column("attempt", sa.Integer),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "signals",
        sa.Column("id", _COUNTER, primary_key=True, autoincrement=True),
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("signals_by_run", "signals", ["run_id", "id"])
    op.create_table(
        "blobs",
        sa.Column("checksum", sa.Text, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "turns",
        sa.Column("id", _COUNTER, primary_key=True, autoincrement=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("tainted", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("turns_by_conversation", "turns", ["owner", "conversation_id", "id"])
    op.create_index("turns_once", "turns", ["run_id", "role"], unique=True)


def downgrade() -> None:
    """Drop them."""
    for table in ("turns", "blobs", "signals", "events", "runs"):
        op.drop_table(table)
