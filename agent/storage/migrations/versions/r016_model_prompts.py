"""Adds the prompts and replies of models, which are kept only where `AGENT_KEEP_PROMPTS` says so."""

from alembic import op

from agent.storage.tables.runs import model_prompts

revision = "r016"
down_revision = "r015"


def upgrade() -> None:
    """Creates what the first migration has not made already."""
    connection = op.get_bind()
    model_prompts.create(connection, checkfirst=True)
    for index in model_prompts.indexes:
        index.create(connection, checkfirst=True)
