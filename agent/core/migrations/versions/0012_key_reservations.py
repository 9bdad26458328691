"""What API keys have set aside, by run, so that what a killed process held can be told from what is held."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Make the table; the sum that stood with each key, which no crash gave back, goes."""
    op.create_table(
        "key_reservations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("usd", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("key_reservations_by_key", "key_reservations", ["key_id"])
    op.drop_column("api_keys", "reserved_tokens")


def downgrade() -> None:
    """Drop it: nothing is set aside any more."""
    op.add_column("api_keys", sa.Column("reserved_tokens", sa.BigInteger, nullable=False, server_default="0"))
    # The columns as they stood, in their order: what was spent is moved behind what was set aside.
    op.add_column("api_keys", sa.Column("moved_usd", sa.Float, nullable=False, server_default="0"))
    op.execute("UPDATE api_keys SET moved_usd = used_usd")
    op.drop_column("api_keys", "used_usd")
    op.execute("ALTER TABLE api_keys RENAME COLUMN moved_usd TO used_usd")
    op.drop_table("key_reservations")
