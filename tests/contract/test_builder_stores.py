"""The stores of pipeline conversations and sources tested against their contract on SQLite and PostgreSQL."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import SqliteStore, open_sqlite
from agent.storage.sql import PostgresClient, SqliteClient
from gateway.features.documents.engine.ingest.source_store import SourceStore
from gateway.features.pipeline_builder.engine.conversation_store import BuilderConversationStore
from tests.contract.builder_contract import BLOCKS, BuilderContract, Pair
from tests.contract.journal_stores import Clock


class TestSqlite(BuilderContract):
    @pytest.fixture
    async def opened(self, tmp_path: Path) -> AsyncIterator[list[SqliteStore]]:
        opened = [await open_sqlite(tmp_path / "stepgate.db") for _ in range(2)]
        yield opened
        for store in opened:
            await store.close()

    @pytest.fixture
    def stores(self, opened: list[SqliteStore], clock: Clock) -> Pair:
        one, other = (BuilderConversationStore(SqliteClient(store.database), clock) for store in opened)
        return one, other

    @pytest.fixture
    def sources(self, opened: list[SqliteStore], clock: Clock) -> SourceStore:
        return SourceStore(SqliteClient(opened[0].database), (), clock)

    @pytest.mark.row("S000-13")
    async def test_the_blocking_ones_are_found_by_their_index(
        self, opened: list[SqliteStore], stores: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = await stores[0].add("anna")
        await stores[0].record_uncertainties(made, "source_analyzer", (BLOCKS,), settled_by="x")
        asked: list[str] = []
        read = SqliteClient.read

        async def noted(self: SqliteClient, statement: str, *values: object) -> list[tuple[object, ...]]:
            asked.append(statement)
            return await read(self, statement, *values)

        monkeypatch.setattr(SqliteClient, "read", noted)
        assert len(await stores[0].list_blocking(made)) == 1

        def plan(db: sqlite3.Connection) -> str:
            return str(db.execute(f"EXPLAIN QUERY PLAN {asked[-1]}", (made.id,)).fetchall())

        assert "uncertainties_blocking_unresolved" in await opened[0].database.read(plan)

    @pytest.mark.row("S000-14")
    async def test_doubts_go_with_their_conversation(self, opened: list[SqliteStore], stores: Pair) -> None:
        made = await stores[0].add("anna")
        await stores[0].record_uncertainties(made, "source_analyzer", (BLOCKS,), settled_by="x")
        statements = SqliteClient(opened[0].database)
        await statements.write("DELETE FROM agent_conversations WHERE owner = ?", "anna")
        assert await statements.read("SELECT id FROM conversation_uncertainties") == []


class TestPostgres(BuilderContract):
    @pytest.fixture
    async def statements(self, url: str) -> AsyncIterator[list[PostgresClient]]:
        opened = [await open_postgres(url) for _ in range(2)]
        yield [PostgresClient(store.database) for store in opened]
        for store in opened:
            await store.close()

    @pytest.fixture
    def stores(self, statements: list[PostgresClient], clock: Clock) -> Pair:
        one, other = (BuilderConversationStore(each, clock) for each in statements)
        return one, other

    @pytest.fixture
    def sources(self, statements: list[PostgresClient], clock: Clock) -> SourceStore:
        return SourceStore(statements[0], (), clock)
