"""Deletes old conversations about pipelines: archived ones."""

from collections.abc import AsyncIterator

from agent.storage.feature_tables import AgingRows, FeatureRetention, OldRows
from agent.storage.sql import SqlClient, SqlStatement


async def list_archived(_: SqlClient, cutoff: float) -> AsyncIterator[OldRows]:
    """Yields the conversations that were archived before. They are not counted."""
    yield OldRows(0, SqlStatement("DELETE FROM agent_conversations WHERE archived < ?", (cutoff,)))


RETENTION = FeatureRetention(aging=(AgingRows(list_archived),))
