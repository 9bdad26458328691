"""What AGENT_KEEP_DAYS forgets: when poems were listed. Favourites stay: their owner has saved them."""

from collections.abc import AsyncIterator

from agent.storage.feature_tables import AgingRows, FeatureRetention, OldRows
from agent.storage.sql import SqlClient, SqlStatement


async def list_old(statements: SqlClient, cutoff: float) -> AsyncIterator[OldRows]:
    """Yields the times before the cutoff, in UTC seconds."""
    ((count,),) = await statements.read("SELECT count(*) FROM poem_listings WHERE at < ?", cutoff)
    yield OldRows(int(count), SqlStatement("DELETE FROM poem_listings WHERE at < ?", (cutoff,)))


RETENTION = FeatureRetention(aging=(AgingRows(list_old, "listings of poems"),))
