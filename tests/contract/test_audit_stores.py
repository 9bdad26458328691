"""The audit record and the pins tested against their contract on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.core.errors import StoreError
from agent.storage.audit import AuditEvent, StoredAuditLog
from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import PostgresClient, SqliteClient
from tests.contract.audit_contract import AuditContract, Pair
from tests.contract.journal_stores import Clock
from tests.support.postgres import fresh_database


class TestSqlite(AuditContract):
    @pytest.fixture
    async def statements(self, tmp_path: Path) -> AsyncIterator[Pair]:
        opened = [await open_sqlite(tmp_path / "stepgate.db") for _ in range(2)]
        yield SqliteClient(opened[0].database), SqliteClient(opened[1].database)
        for store in opened:
            await store.close()

    async def test_replacing_is_changing(self, statements: Pair, clock: Clock) -> None:
        audit = StoredAuditLog(statements[0], clock)
        await audit.record(AuditEvent("key.create", "k1"))
        (entry,) = await audit.list_entries()
        with pytest.raises(StoreError, match="append-only"):
            await statements[1].write(
                "INSERT OR REPLACE INTO audit (id, at, owner, principal, action, target, outcome, detail) "
                "VALUES (?,?,?,?,?,?,?,?)",
                entry.id,
                0.0,
                "local",
                "nobody",
                "key.create",
                "k1",
                "done",
                "{}",
            )
        assert await audit.list_entries() == [entry]


class TestPostgres(AuditContract):
    @pytest.fixture
    async def statements(self) -> AsyncIterator[Pair]:
        with fresh_database() as url:
            opened = [await open_postgres(url) for _ in range(2)]
            yield PostgresClient(opened[0].database), PostgresClient(opened[1].database)
            for store in opened:
                await store.close()
