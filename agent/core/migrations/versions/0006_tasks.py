"""Tasks, and what each of their runs left behind."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("context", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("updated", sa.Float, nullable=False),
    )
    op.create_index("tasks_by_owner", "tasks", ["owner", "created", "task_id"])
    op.create_table(
        "task_runs",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("task_id", sa.Text, sa.ForeignKey("tasks.task_id", ondelete="CASCADE"), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("ended", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False, server_default="null"),
        sa.Column("plan", sa.Text, nullable=False, server_default="null"),
        sa.Column("tool_results", sa.Text, nullable=False, server_default="null"),
        sa.Column("verification", sa.Text, nullable=False, server_default="null"),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("updated", sa.Float, nullable=False),
    )
    op.create_index("task_runs_by_task", "task_runs", ["task_id", "number"], unique=True)
    op.create_index(
        "task_runs_open",
        "task_runs",
        ["task_id"],
        unique=True,
        sqlite_where=sa.text("ended = 0"),
        postgresql_where=sa.text("ended = 0"),
    )


def downgrade() -> None:
    """Drop them; the runs themselves stay in the log."""
    for table in ("task_runs", "tasks"):
        op.drop_table(table)
