"""Machines whose clocks differ, on one PostgreSQL."""

import functools
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from agent.storage import postgres
from agent.storage.journal_postgres import PostgresStore, open_postgres
from agent.storage.leases import HousekeepingLease
from agent.storage.server_clock import ServerClock
from agent.storage.sql import PostgresClient
from gateway.features.documents.engine.ingest.jobs import JobRequest, JobStore

APART_S = 120.0


@asynccontextmanager
async def open_with_clock(url: str, ahead: float, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresStore]:
    """The store of a machine whose clock is so many seconds ahead."""
    with monkeypatch.context() as patch:
        patch.setattr(postgres, "ServerClock", functools.partial(ServerClock, lambda: time.time() + ahead))
        store = await open_postgres(url)
    try:
        yield store
    finally:
        await store.close()


async def test_a_lease_lasts_for_a_machine_whose_clock_is_two_minutes_ahead(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        open_with_clock(url, 0.0, monkeypatch) as right,
        open_with_clock(url, APART_S, monkeypatch) as ahead,
        open_with_clock(url, -APART_S, monkeypatch) as behind,
    ):
        stores = {"right": right, "ahead": ahead, "behind": behind}
        assert max(store.clock() for store in stores.values()) - min(s.clock() for s in stores.values()) < 1
        jobs = {name: JobStore(PostgresClient(store.database), store.clock) for name, store in stores.items()}
        leases = {
            name: HousekeepingLease(
                PostgresClient(store.database), "cleaning", holder=name, seconds=30, clock=store.clock
            )
            for name, store in stores.items()
        }
        for holder in stores:
            job = await jobs[holder].create("alice", f"of {holder}", JobRequest())
            assert await jobs[holder].claim(holder, 30) is not None
            assert await leases[holder].take()
            for other in stores.keys() - {holder}:
                assert await jobs[other].claim(other, 30) is None, f"{other} takes the job of {holder}"
                assert not await leases[other].take(), f"{other} takes the lease of {holder}"
            await leases[holder].release()
            assert (await jobs[holder].get("alice", job.id)).status == "running"


async def test_a_clock_that_is_far_off_is_told_once(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="agent.storage.postgres"):
        async with (
            open_with_clock(url, APART_S, monkeypatch) as ahead,
            ahead.database.separate_connection() as connection,
        ):
            await ahead.database._synchronize_clock(connection)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert told[0].startswith("this machine's clock is -120 s off that of ")
    assert told[0].endswith("set it, for example by NTP")
