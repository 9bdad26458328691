"""Adds the ledger of model calls. Runs that ended in the last 30 days are recorded at the next start."""

from alembic import op

from agent.storage.tables.usage import model_usage

revision = "r007"
down_revision = "r006"


def upgrade() -> None:
    """Creates the table, unless the first migration has made it already from the tables as they are now."""
    model_usage.create(op.get_bind(), checkfirst=True)
