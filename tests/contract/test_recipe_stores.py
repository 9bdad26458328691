"""The recipe store tested against its contract on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import PostgresClient, SqliteClient
from gateway.features.recipes.engine import RecipeStore
from tests.contract.journal_stores import Clock
from tests.contract.recipes_contract import RecipesContract, Stores


class TestSqlite(RecipesContract):
    @pytest.fixture
    async def stores(self, tmp_path: Path, clock: Clock) -> AsyncIterator[Stores]:
        opened = [await open_sqlite(tmp_path / "stepgate.db") for _ in range(2)]
        one, other = (RecipeStore(SqliteClient(store.database), clock) for store in opened)
        yield one, other
        for store in opened:
            await store.close()


class TestPostgres(RecipesContract):
    @pytest.fixture
    async def stores(self, url: str, clock: Clock) -> AsyncIterator[Stores]:
        opened = [await open_postgres(url) for _ in range(2)]
        one, other = (RecipeStore(PostgresClient(store.database), clock) for store in opened)
        yield one, other
        for store in opened:
            await store.close()
