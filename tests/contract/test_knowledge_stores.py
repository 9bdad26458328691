"""Documents, collections and jobs tested against their contract on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import PostgresClient, SqliteClient
from tests.contract.knowledge_contract import PAIR, KnowledgeContract


class TestSqlite(KnowledgeContract):
    @pytest.fixture
    async def statements(self, tmp_path: Path) -> AsyncIterator[PAIR]:
        stores = [await open_sqlite(tmp_path / "stepgate.db") for _ in range(2)]
        yield SqliteClient(stores[0].database), SqliteClient(stores[1].database)
        for store in stores:
            await store.close()


class TestPostgres(KnowledgeContract):
    @pytest.fixture
    async def statements(self, url: str) -> AsyncIterator[PAIR]:
        stores = [await open_postgres(url) for _ in range(2)]
        yield PostgresClient(stores[0].database), PostgresClient(stores[1].database)
        for store in stores:
            await store.close()
