"""The store of tasks, held to the contract on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.core.journal_postgres import open_postgres
from agent.core.journal_sqlite import open_sqlite
from agent.core.statements import PostgresStatements, SqliteStatements
from agent.core.tasks_store import TaskStore
from tests.contract.journal_stores import Clock
from tests.contract.tasks_contract import Pair, TasksContract


class TestSqlite(TasksContract):
    @pytest.fixture
    async def stores(self, tmp_path: Path, clock: Clock) -> AsyncIterator[Pair]:
        opened = [await open_sqlite(tmp_path / "stepgate.db") for _ in range(2)]
        one, other = (TaskStore(SqliteStatements(store.database), clock) for store in opened)
        yield one, other
        for store in opened:
            await store.close()


class TestPostgres(TasksContract):
    @pytest.fixture
    async def stores(self, url: str, clock: Clock) -> AsyncIterator[Pair]:
        opened = [await open_postgres(url) for _ in range(2)]
        one, other = (TaskStore(PostgresStatements(store.database), clock) for store in opened)
        yield one, other
        for store in opened:
            await store.close()
