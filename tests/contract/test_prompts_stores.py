"""The prompt library tested against its contract on SQLite and PostgreSQL."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agent.storage.audit import StoredAuditLog
from agent.storage.feature_schema import FeatureRevision, apply_revisions
from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import PostgresClient, SqlClient, SqliteClient
from gateway.features.studio.engine.prompt_library import PromptLibrary
from gateway.features.studio.feature import FEATURE
from tests.contract.journal_stores import Clock
from tests.contract.prompts_contract import Pair, PromptsContract
from tests.support.postgres import database_with_tables

REVISIONS = [FeatureRevision(FEATURE.name, one.name, one.sqlite, one.postgres) for one in FEATURE.revisions]


def build(statements: list[SqlClient], clock: Clock) -> Pair:
    audit = StoredAuditLog(statements[0], clock)
    one, other = (PromptLibrary(client, audit, clock) for client in statements)
    return one, other, audit


class TestSqlite(PromptsContract):
    @pytest.fixture
    async def libraries(self, tmp_path: Path, clock: Clock) -> AsyncIterator[Pair]:
        opened = [await open_sqlite(tmp_path / "stepgate.db") for _ in range(2)]
        await apply_revisions(opened[0], REVISIONS)
        yield build([SqliteClient(store.database) for store in opened], clock)
        for store in opened:
            await store.close()


async def make_tables(url: str) -> None:
    store = await open_postgres(url)
    await apply_revisions(store, REVISIONS)
    await store.close()


class TestPostgres(PromptsContract):
    @pytest.fixture
    def url(self) -> Iterator[str]:
        with database_with_tables(make_tables) as address:
            yield address

    @pytest.fixture
    async def libraries(self, url: str, clock: Clock) -> AsyncIterator[Pair]:
        opened = [await open_postgres(url) for _ in range(2)]
        yield build([PostgresClient(store.database) for store in opened], clock)
        for store in opened:
            await store.close()
