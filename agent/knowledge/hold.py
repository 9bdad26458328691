"""`held`: one at a time writes into a collection, in whatever process; and what a crash left half written is known."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from agent.core.errors import ConflictError, StoreError
from agent.knowledge.documents import DocumentStore, Passages

log = logging.getLogger(__name__)

HOLD_SECONDS = 30.0
"""How long a process that died keeps others from writing into its collection; a living one prolongs it in time."""

_POLL_SECONDS = 0.2


class CollectionHeldError(ConflictError):
    """Raised while somebody else writes into the collection. Wait for their end, and try again."""


class Hold:
    """The right to write into one collection."""

    def __init__(self, documents: DocumentStore, owner: str, collection: str) -> None:
        self._documents = documents
        self._holder = secrets.token_hex(8)
        self.owner = owner
        self.collection = collection

    async def take(self) -> None:
        """Take or prolong it. `CollectionHeldError` while somebody else has it."""
        if not await self._documents.hold(self.owner, self.collection, self._holder, HOLD_SECONDS):
            raise self._taken()

    async def writing(self, passages: Passages) -> None:
        """Note what is about to be written, so that whoever comes after a crash can take it away.

        `CollectionHeldError` when the hold was lost, as by a process that slept for too long."""
        if not await self._documents.set_pending(self.owner, self.collection, self._holder, passages):
            raise self._taken()

    async def written(self) -> None:
        """Nothing is half written any more."""
        await self._documents.set_pending(self.owner, self.collection, self._holder, None)

    async def let_go(self) -> None:
        """Let others write. Where the store cannot even do that, the hold runs out by itself."""
        try:
            await self._documents.let_go(self.owner, self.collection, self._holder)
        except StoreError as error:
            log.warning("the hold on %r runs out in %.0f s: %s", self.collection, HOLD_SECONDS, error.message)

    async def keep(self) -> None:
        """Prolong it for as long as this runs."""
        while True:
            await asyncio.sleep(HOLD_SECONDS / 3)
            try:
                await self.take()
            except (StoreError, CollectionHeldError) as error:  # whoever writes next will be told
                log.warning("the hold on %r was not prolonged: %s", self.collection, error.message)

    def _taken(self) -> CollectionHeldError:
        return CollectionHeldError(
            f"somebody else is reading into {self.collection!r}; wait for its end (or {HOLD_SECONDS:.0f} s after a "
            "crash) and start again: what is done is not done twice",
            agent_id="library",
        )


@asynccontextmanager
async def held(documents: DocumentStore, owner: str, collection: str, *, patience_s: float = 0) -> AsyncIterator[Hold]:
    """Keep others from writing into a collection. `CollectionHeldError` when after `patience_s` another still does."""
    hold = Hold(documents, owner, collection)
    until = monotonic() + patience_s
    while True:
        try:
            await hold.take()
            break
        except CollectionHeldError:
            if monotonic() >= until:
                raise
        await asyncio.sleep(_POLL_SECONDS)  # the other one may be another process
    keeper = asyncio.create_task(hold.keep(), name=f"hold {collection}")
    try:
        yield hold
    finally:
        keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(asyncio.wait([keeper]))
        await asyncio.shield(hold.let_go())
