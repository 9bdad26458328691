"""Schedules and the outbox of webhooks tested against their contract on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import PostgresClient, SqliteClient
from gateway.features.schedules.engine.schedule_store import ScheduleStore
from gateway.features.schedules.engine.webhook_outbox import WebhookOutbox
from tests.contract.journal_stores import Clock
from tests.contract.schedules_contract import Opened, ScheduleContract, Stores


class TestSqlite(ScheduleContract):
    @pytest.fixture
    async def stores(self, tmp_path: Path, clock: Clock) -> AsyncIterator[Stores]:
        opened = [await open_sqlite(tmp_path / "stepgate.db", clock) for _ in range(2)]
        clients = [SqliteClient(store.database) for store in opened]
        one, other = (
            Opened(ScheduleStore(client, clock), WebhookOutbox(client, clock), store.journal)
            for client, store in zip(clients, opened, strict=True)
        )
        yield one, other
        for store in opened:
            await store.close()


class TestPostgres(ScheduleContract):
    @pytest.fixture
    async def stores(self, url: str, clock: Clock) -> AsyncIterator[Stores]:
        opened = [await open_postgres(url, clock) for _ in range(2)]
        clients = [PostgresClient(store.database) for store in opened]
        one, other = (
            Opened(ScheduleStore(client, clock), WebhookOutbox(client, clock), store.journal)
            for client, store in zip(clients, opened, strict=True)
        )
        yield one, other
        for store in opened:
            await store.close()
