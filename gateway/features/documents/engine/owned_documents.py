"""`OwnedDocuments`: deletes the collections and uploads of an owner."""

import asyncio
from dataclasses import dataclass

from agent.core.errors import CollectionLockedError, NotFoundError
from gateway.features.documents.engine.ingest.library import Library

STOP_TIMEOUT_SECONDS = 20.0
"""How long a job that writes into a collection may take to stop."""
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class OwnedDocuments:
    """Implements `agent.storage.owners.OwnedStore`."""

    library: Library

    async def remove_owner(self, owner: str, *, by: str) -> None:
        """Drops the collections of an owner, and deletes its uploads. Raises `CollectionLockedError` while a job writes
        into one and does not stop in time."""
        for collection in await self.library.list_collections(owner):
            await self._drop_collection(owner, collection, by)
        await asyncio.to_thread(self.library.uploads.remove_owner, owner)

    async def _drop_collection(self, owner: str, collection: str, by: str) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + STOP_TIMEOUT_SECONDS
        while True:
            try:
                await self.library.drop_collection(owner, collection, by=by)
            except CollectionLockedError:
                if loop.time() >= until:
                    raise
                await asyncio.sleep(POLL_SECONDS)
            except NotFoundError:
                return
            else:
                return
