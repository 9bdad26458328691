"""Documents, collections and jobs, held to the contract on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.core.journal_postgres import open_postgres
from agent.core.journal_sqlite import open_sqlite
from agent.core.statements import PostgresStatements, SqliteStatements
from tests.contract.knowledge_contract import PAIR, KnowledgeContract


class TestSqlite(KnowledgeContract):
    @pytest.fixture
    async def statements(self, tmp_path: Path) -> AsyncIterator[PAIR]:
        stores = [await open_sqlite(tmp_path / "stepgate.db") for _ in range(2)]
        yield SqliteStatements(stores[0].database), SqliteStatements(stores[1].database)
        for store in stores:
            await store.close()


class TestPostgres(KnowledgeContract):
    @pytest.fixture
    async def statements(self, url: str) -> AsyncIterator[PAIR]:
        stores = [await open_postgres(url) for _ in range(2)]
        yield PostgresStatements(stores[0].database), PostgresStatements(stores[1].database)
        for store in stores:
            await store.close()
