"""Adds the batches of ingestion jobs, and a row for each document that may be half written."""

import json

from alembic import op
from sqlalchemy import inspect, text

from agent.storage.tables.collections import pending_passages
from agent.storage.tables.ingestion_jobs import job_batches

revision = "r012"
down_revision = "r011"

_COLUMNS = {
    "place": "TEXT",
    "walk": "TEXT",
    "batched": "BIGINT DEFAULT '0' NOT NULL",
}


def upgrade() -> None:
    """Creates what the first migration has not made already, and moves the note of each collection."""
    connection = op.get_bind()
    for table in (job_batches, pending_passages):
        table.create(connection, checkfirst=True)
    column_names = {column["name"] for column in inspect(connection).get_columns("jobs")}
    for name, kind in _COLUMNS.items():
        if name not in column_names:
            op.execute(f"ALTER TABLE jobs ADD COLUMN {name} {kind}")
    rows = connection.execute(text("SELECT owner, collection, holder, pending FROM ingestions WHERE pending <> ''"))
    for owner, collection, holder, pending in rows.all():
        document_id, amount = json.loads(pending)
        connection.execute(
            pending_passages.insert().values(
                owner=owner, collection=collection, document_id=document_id, amount=amount, holder=holder
            )
        )
    connection.execute(text("UPDATE ingestions SET pending = ''"))
