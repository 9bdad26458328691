"""`CollectionDrops`: removes collections that nothing refers to, also those into which a file is being read."""

import asyncio
import logging
from typing import Final

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import AgentError, NotFoundError
from gateway.features.documents.engine.ingest.library import Library

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
GIVE_UP_SECONDS: Final = 3_600.0
"""Longer than any file is read. Each attempt is in the audit record, so pauses are doubled."""


class CollectionDrops:
    """Removes collections of a library. An unfinished removal ends with the process."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._tasks: set[asyncio.Task[None]] = set()

    async def drop(self, owner: str, collection: str, *, by: str) -> None:
        """Removes a collection if it exists; where that fails, as while a file is being read, tries again later and
        returns at once. `by` is recorded.
        """
        if not await self._try(owner, collection, by):
            task = asyncio.create_task(self._drop_later(owner, collection, by), name=f"drop {collection}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Ends the attempts."""
        await cancel_and_wait(*self._tasks)

    async def _drop_later(self, owner: str, collection: str, by: str) -> None:
        waited, pause = 0.0, FIRST_PAUSE_SECONDS
        while waited < GIVE_UP_SECONDS:
            await asyncio.sleep(pause)
            if await self._try(owner, collection, by):
                return
            waited, pause = waited + pause, min(2 * pause, LONGEST_PAUSE_SECONDS)
        log.warning("the collection %s of %s could not be removed; delete it by hand", collection, owner)

    async def _try(self, owner: str, collection: str, by: str) -> bool:
        """Whether the collection is gone."""
        try:
            await self._library.drop_collection(owner, collection, by=by)
        except NotFoundError:
            return True
        except AgentError as error:
            log.info("the collection %s of %s is not removed yet: %s", collection, owner, error.message)
            return False
        return True
