"""API keys."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("secret_hash", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("tools", sa.Text, nullable=False),
        sa.Column("limits", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float),
        sa.Column("revoked_at", sa.Float),
        sa.Column("last_used_at", sa.Float),
        sa.Column("used_tokens", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("reserved_tokens", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("used_usd", sa.Float, nullable=False, server_default="0"),
    )
    op.create_index("api_keys_by_owner", "api_keys", ["owner"])


def downgrade() -> None:
    """Drop it: every key is void."""
    op.drop_table("api_keys")
