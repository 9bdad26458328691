"""The journal and the conversations on SQLite, tested against their contracts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.storage.journal import Journal
from agent.storage.journal_sqlite import SqliteStore, open_sqlite
from tests.contract.conversations_contract import ConversationsContract
from tests.contract.journal_contract import JournalContract
from tests.contract.journal_stores import Clock


class SqliteStores:
    """One file. Every driver object has its own connection and thread."""

    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self._path = path
        self._opened: list[SqliteStore] = []

    async def open(self) -> Journal:
        """See `Stores.open`."""
        store = await open_sqlite(self._path, self.clock)
        self._opened.append(store)
        return store.journal

    async def close(self) -> None:
        """Closes what a test has left open."""
        for store in self._opened:
            await store.close()


class TestSqliteJournal(JournalContract):
    @pytest.fixture
    async def stores(self, tmp_path: Path) -> AsyncIterator[SqliteStores]:
        stores = SqliteStores(tmp_path / "stepgate.db")
        yield stores
        await stores.close()


class TestSqliteConversations(ConversationsContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqliteStore]:
        store = await open_sqlite(tmp_path / "stepgate.db")
        yield store
        await store.close()
