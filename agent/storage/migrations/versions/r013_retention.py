"""Adds the references of runs to blobs, the sums of usage by day, leases of housekeeping, and indexes for old runs."""

import json
from collections.abc import Iterator

from alembic import op
from sqlalchemy import Connection, inspect, text

from agent.storage.tables.fleet import housekeeping
from agent.storage.tables.runs import blob_references, runs
from agent.storage.tables.usage import model_usage, usage_days

revision = "r013"
down_revision = "r012"

ROWS = 1000
_INSERT = text(
    "INSERT INTO blob_references (run_id, checksum) SELECT :run_id, checksum FROM blobs WHERE checksum = :checksum "
    "ON CONFLICT DO NOTHING"
)


def upgrade() -> None:
    """Creates what is missing, and records which blobs the logs refer to. Usage is summed by the running gateway."""
    connection = op.get_bind()
    table_names = set(inspect(connection).get_table_names())
    for table in (blob_references, usage_days, housekeeping):
        table.create(connection, checkfirst=True)
    if "summed" not in {column["name"] for column in inspect(connection).get_columns("model_usage")}:
        false = "0" if connection.dialect.name == "sqlite" else "false"
        op.execute(f"ALTER TABLE model_usage ADD COLUMN summed BOOLEAN DEFAULT {false} NOT NULL")
    for index in (*runs.indexes, *model_usage.indexes):
        index.create(connection, checkfirst=True)
    if "blob_references" not in table_names:
        _record_references(connection)


def _record_references(connection: Connection) -> None:
    references: list[dict[str, str]] = []
    for run_id, data in _read_events(connection):
        references += [{"run_id": run_id, "checksum": checksum} for checksum in _list_blobs(json.loads(data))]
        if len(references) >= ROWS:
            connection.execute(_INSERT, references)
            references = []
    if references:
        connection.execute(_INSERT, references)


def _read_events(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yields the run and the body of every event that may refer to a blob, some rows at a time."""
    query = text(
        "SELECT run_id, data FROM events WHERE type IN ('tool.returned', 'subagent.finished', 'step.finished') "
        "AND data LIKE '%blob\":\"%'"
    )
    # Not as an option of the connection: the migration's other statements must not become cursors of the server.
    rows = connection.execute(query, execution_options={"stream_results": True, "max_row_buffer": ROWS})
    for run_id, data in rows:
        yield str(run_id), str(data)


def _list_blobs(body: dict[str, object]) -> list[str]:
    output = body.get("output")
    named = [body.get("blob"), body.get("content_blob"), output.get("blob") if isinstance(output, dict) else None]
    return [checksum for checksum in named if isinstance(checksum, str)]
