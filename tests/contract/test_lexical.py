"""The lexical indexes tested against their contract: FTS5 in the store's SQLite file, and PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.search.lexical import LexicalIndex
from agent.search.lexical_postgres import PostgresLexicalRows, create_postgres_index
from agent.search.lexical_sqlite import SqliteLexicalRows, create_sqlite_index
from agent.search.postings_rows import LexicalRows
from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from tests.contract.lexical_contract import LexicalContract

Pair = tuple[LexicalIndex, LexicalIndex]


class TestSqlite(LexicalContract):
    @pytest.fixture
    async def indexes(self, tmp_path: Path) -> AsyncIterator[Pair]:
        stores = [await open_sqlite(tmp_path / "stepgate.db") for _ in range(2)]
        yield create_sqlite_index(stores[0].database), create_sqlite_index(stores[1].database)
        for store in stores:
            await store.close()

    @pytest.fixture
    async def rows(self, indexes: Pair, tmp_path: Path) -> AsyncIterator[LexicalRows]:
        store = await open_sqlite(tmp_path / "stepgate.db")
        yield SqliteLexicalRows(store.database)
        await store.close()


class TestPostgres(LexicalContract):
    @pytest.fixture
    async def indexes(self, url: str) -> AsyncIterator[Pair]:
        stores = [await open_postgres(url) for _ in range(2)]
        yield create_postgres_index(stores[0].database), create_postgres_index(stores[1].database)
        for store in stores:
            await store.close()

    @pytest.fixture
    async def rows(self, indexes: Pair, url: str) -> AsyncIterator[LexicalRows]:
        store = await open_postgres(url)
        yield PostgresLexicalRows(store.database)
        await store.close()
