"""Adds the conversations that clients make, with the items they add."""

from alembic import op

from agent.storage.tables.client_conversations import client_conversations, client_items

revision = "r008"
down_revision = "r007"


def upgrade() -> None:
    """Creates both tables, unless the first migration has made them already from the tables as they are now."""
    for table in (client_conversations, client_items):
        table.create(op.get_bind(), checkfirst=True)
