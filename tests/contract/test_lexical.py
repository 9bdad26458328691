"""The lexical indexes tested against their contract: beside SQLite as two processes have them, and on PostgreSQL as two
machines have them, each with an index of its own.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from gateway.features.documents.engine.search.lexical import LexicalIndex
from gateway.features.documents.engine.search.lexical_postgres import PostgresLexicalRows, create_postgres_index
from gateway.features.documents.engine.search.lexical_rows import LexicalRows
from gateway.features.documents.engine.search.lexical_sqlite import SqliteLexicalRows, create_sqlite_index
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
    async def indexes(self, url: str, tmp_path: Path) -> AsyncIterator[Pair]:
        stores = [await open_postgres(url) for _ in range(2)]
        first, second = (
            create_postgres_index(store.database, tmp_path / name)
            for store, name in zip(stores, ("one", "two"), strict=True)
        )
        yield first, second
        for store in stores:
            await store.close()

    @pytest.fixture
    async def rows(self, indexes: Pair, url: str) -> AsyncIterator[LexicalRows]:
        store = await open_postgres(url)
        yield PostgresLexicalRows(store.database)
        await store.close()
