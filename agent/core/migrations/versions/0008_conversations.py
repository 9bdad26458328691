"""Sources by id, conversations about pipelines, and what is doubtful in them."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "sources",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_index("sources_by_owner", "sources", ["owner", "created", "id"])
    op.create_table(
        "agent_conversations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("chat_id", sa.Text),
        sa.Column("source_id", sa.Text, sa.ForeignKey("sources.id", ondelete="SET NULL")),
        sa.Column("collection", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("current_pipeline", sa.Text),
        sa.Column("source_analysis", sa.Text),
        sa.Column("validation", sa.Text),
        sa.Column("applied", sa.Text),
        sa.Column("job_id", sa.Text),
        sa.Column("summary", sa.Text),
        sa.Column("asked", sa.Text, nullable=False, server_default="[]"),
        sa.Column("turns", sa.Integer, nullable=False, server_default="0"),
        sa.Column("tainted", sa.Integer, nullable=False, server_default="0"),
        sa.Column("run_id", sa.Text),
        sa.Column("claimed", sa.Float, nullable=False, server_default="0"),
        sa.Column("model_calls", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("prompt_tokens", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("completion_tokens", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("cost_usd", sa.Float),
        sa.Column("archived", sa.Float),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("updated", sa.Float, nullable=False),
    )
    op.create_index("agent_conversations_by_owner", "agent_conversations", ["owner", "created", "id"])
    op.create_index("agent_conversations_by_chat", "agent_conversations", ["owner", "chat_id"], unique=True)
    op.create_index("agent_conversations_by_source", "agent_conversations", ["source_id"])
    op.create_index(
        "agent_conversations_open",
        "agent_conversations",
        ["run_id"],
        sqlite_where=sa.text("run_id IS NOT NULL"),
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    op.create_table(
        "conversation_uncertainties",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column(
            "conversation_id", sa.Text, sa.ForeignKey("agent_conversations.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("severity", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("context", sa.Text, nullable=False),
        sa.Column("resolved", sa.Integer, nullable=False, server_default="0"),
        sa.Column("resolved_by", sa.Text),
        sa.Column("resolver", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("resolved_at", sa.Float),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_index("uncertainties_by_conversation", "conversation_uncertainties", ["conversation_id", "created", "id"])
    op.create_index(
        "uncertainties_blocking_unresolved",
        "conversation_uncertainties",
        ["conversation_id", "created", "id"],
        sqlite_where=sa.text("severity = 'blocking' AND resolved = 0"),
        postgresql_where=sa.text("severity = 'blocking' AND resolved = 0"),
    )


def downgrade() -> None:
    """Drop them; collections that were made and the runs in the log stay."""
    for table in ("conversation_uncertainties", "agent_conversations", "sources"):
        op.drop_table(table)
