"""The tables of the first release: all of `agent/storage/tables/`, as it is now."""

from alembic import op

from agent.storage.tables import metadata

revision = "r001"
down_revision = None


def upgrade() -> None:
    """Creates every table, index and trigger."""
    metadata.create_all(op.get_bind(), checkfirst=False)
