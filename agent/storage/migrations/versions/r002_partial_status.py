"""Adds the run status `partial`: runs that ended with an incomplete answer were listed as succeeded before."""

from alembic import op

revision = "r002"
down_revision = "r001"


def upgrade() -> None:
    """Reads the status of ended runs from their last event, whose body begins with its completeness."""
    op.execute(
        "UPDATE runs SET status = 'partial' WHERE status = 'succeeded' AND EXISTS (SELECT 1 FROM events "
        "WHERE events.run_id = runs.run_id AND events.seq = runs.last_seq AND events.type = 'run.succeeded' "
        """AND (events.data LIKE '{"completeness":"partial"%' OR events.data LIKE '{"completeness":"aborted"%'))"""
    )
