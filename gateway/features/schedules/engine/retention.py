"""Deletes old records of schedules and webhooks: ended deliveries, and ticks."""

from collections.abc import AsyncIterator

from agent.storage.feature_tables import AgingRows, FeatureRetention, OldRows
from agent.storage.sql import SqlClient, SqlStatement, format_marks, iter_pages

_IS_OLD = "state <> 'open' AND updated < ?"


async def list_old_deliveries(statements: SqlClient, cutoff: float) -> AsyncIterator[OldRows]:
    """Yields the deliveries that ended before."""
    query = f"SELECT id FROM webhook_deliveries WHERE {_IS_OLD} AND id > ? ORDER BY id LIMIT ?"  # noqa: S608 - a constant
    async for rows in iter_pages(statements, query, cutoff):
        ids = [str(row[0]) for row in rows]
        deletion = f"DELETE FROM webhook_deliveries WHERE id IN ({format_marks(ids)}) AND {_IS_OLD}"  # noqa: S608 - constants
        yield OldRows(len(ids), SqlStatement(deletion, (*ids, cutoff)))


async def list_old_ticks(statements: SqlClient, cutoff: float) -> AsyncIterator[OldRows]:
    """Yields what became of the ticks before, for one schedule after another. It is not counted."""
    for (schedule_id,) in await statements.read("SELECT id FROM schedules"):
        deletion = "DELETE FROM schedule_ticks WHERE schedule_id = ? AND tick < ?"
        yield OldRows(0, SqlStatement(deletion, (schedule_id, cutoff)))


RETENTION = FeatureRetention(aging=(AgingRows(list_old_ticks), AgingRows(list_old_deliveries, "webhook deliveries")))
