"""Adds the digests of answers. Answers of earlier versions have none: sent back by a client, they are unknown."""

from alembic import op

from agent.storage.tables.runs import answer_digests

revision = "r014"
down_revision = "r013"


def upgrade() -> None:
    """Creates what the first migration has not made already."""
    connection = op.get_bind()
    answer_digests.create(connection, checkfirst=True)
    for index in answer_digests.indexes:
        index.create(connection, checkfirst=True)
