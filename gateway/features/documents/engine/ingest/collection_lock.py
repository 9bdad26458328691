"""`lock_collection`: one writer at a time per collection, across processes, and notes of what a crash left half
written. A job whose batches several processes read is one writer: they share its id as the holder, and only the worker
that has the job releases the lock."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic

from agent.core.cancellation import cancel_and_wait
from agent.core.errors import CollectionLockedError, StoreError
from agent.storage.leases import keep_renewed
from gateway.features.documents.engine.search.documents import DocumentStore, PassageRange

log = logging.getLogger(__name__)

LOCK_SECONDS = 30.0
"""How long a crashed process blocks its collection; a living one renews the lock in time."""

_POLL_SECONDS = 0.2


class CollectionLock:
    """The right to write into one collection. `claim` distinguishes the writers of one `holder`; if that is a job,
    `worker` is the one that has it."""

    def __init__(
        self,
        documents: DocumentStore,
        owner: str,
        collection: str,
        *,
        holder: str = "",
        claim: str = "",
        worker: str = "",
    ) -> None:
        self._documents = documents
        self._holder = holder or secrets.token_hex(8)
        self._worker = worker
        self.claim = claim or self._holder
        self.owner = owner
        self.collection = collection

    async def acquire(self) -> None:
        """Acquires or renews the lock. Raises `CollectionLockedError` while another writer holds it."""
        if not await self._renew():
            raise self._make_locked_error()

    async def note_pending(self, passages: Sequence[PassageRange]) -> None:
        """Notes the passages that are about to be written, so that they can be deleted after a crash.

        Raises `CollectionLockedError` if the lock was lost, for example by a process that was suspended.
        """
        noted = await self._documents.note_pending(self.owner, self.collection, self._holder, self.claim, passages)
        if not noted:
            raise self._make_locked_error()

    async def release(self) -> None:
        """Releases the lock. If the store fails, the lock expires by itself."""
        try:
            await self._documents.release_lock(self.owner, self.collection, self._holder, self._worker)
        except StoreError as error:
            log.warning("the lock of %r expires in %.0f s: %s", self.collection, LOCK_SECONDS, error.message)

    async def keep_renewing(self) -> None:
        """Renews the lock until it is lost. The next write raises then: `note_pending` checks the holder."""
        name = f"the collection {self.collection!r}"
        await keep_renewed(self._renew, name=name, every_s=LOCK_SECONDS / 3)
        log.warning("the lease on %s was lost to another writer", name)

    async def _renew(self) -> bool:
        """Whether this holder has the lock for another `LOCK_SECONDS`."""
        return await self._documents.acquire_lock(self.owner, self.collection, self._holder, LOCK_SECONDS)

    def _make_locked_error(self) -> CollectionLockedError:
        return CollectionLockedError(
            f"another process is writing to {self.collection!r}; wait until it ends (or {LOCK_SECONDS:.0f} s after a "
            "crash) and start again: finished work is not repeated",
            agent_id="library",
        )


@asynccontextmanager
async def lock_collection(
    documents: DocumentStore,
    owner: str,
    collection: str,
    *,
    patience_s: float = 0,
    holder: str = "",
    worker: str = "",
) -> AsyncIterator[CollectionLock]:
    """Holds the lock of a collection. Raises `CollectionLockedError` if it is not free within `patience_s` seconds."""
    lock = CollectionLock(documents, owner, collection, holder=holder, worker=worker)
    until = monotonic() + patience_s
    while True:
        try:
            await lock.acquire()
            break
        except CollectionLockedError:
            if monotonic() >= until:
                raise
        await asyncio.sleep(_POLL_SECONDS)  # the other one may be another process
    renewal = asyncio.create_task(lock.keep_renewing(), name=f"hold {collection}")
    try:
        yield lock
    finally:
        try:
            await cancel_and_wait(renewal)
        finally:
            await asyncio.shield(lock.release())
