"""Leases: renewed until lost, through failures of the store; who has lost a collection's lock writes no more."""

import asyncio
from pathlib import Path

import pytest

from agent.core.errors import CollectionLockedError, StoreError
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.leases import keep_renewed
from agent.storage.sql import SqliteClient
from gateway.features.documents.engine.ingest import collection_lock
from gateway.features.documents.engine.ingest.collection_lock import lock_collection
from gateway.features.documents.engine.search.documents import DocumentStore, PassageRange
from tests.contract.journal_stores import Clock


async def test_a_lease_is_renewed_through_failures_of_the_store_until_it_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcomes: list[bool | StoreError] = [True, StoreError("the disk is away"), True, False]

    async def renew() -> bool:
        outcome = outcomes.pop(0)
        if isinstance(outcome, StoreError):
            raise outcome
        return outcome

    async with asyncio.timeout(10):
        await keep_renewed(renew, name="job_1", every_s=0.001)
    assert outcomes == []
    assert caplog.messages == ["the lease on job_1 was not renewed: the disk is away"]


async def test_who_lost_the_lock_of_a_collection_writes_no_more_even_when_it_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection_lock, "LOCK_SECONDS", 0.03)
    clock, store = Clock(), await open_sqlite(tmp_path / "stepgate.db")
    documents = DocumentStore(SqliteClient(store.database), clock)
    async with lock_collection(documents, "ann", "work") as lock:
        await lock.note_pending([PassageRange("doc_1", 1)])
        await documents.clear_pending("ann", "work", ["doc_1"])
        clock.now += 1000  # suspended for longer than the lock lasts
        assert await documents.acquire_lock("ann", "work", "other", 1000.0)
        async with asyncio.timeout(10):
            await lock.keep_renewing()
        await documents.release_lock("ann", "work", "other")
        with pytest.raises(CollectionLockedError):
            await lock.note_pending([PassageRange("doc_1", 1)])
    await store.close()
