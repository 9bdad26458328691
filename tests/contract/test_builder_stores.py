"""The stores of conversations and sources, held to the contract on SQLite and PostgreSQL."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.builder.sources import SourceStore
from agent.builder.store import BuilderStore
from agent.core.journal_postgres import open_postgres
from agent.core.journal_sqlite import SqliteStore, open_sqlite
from agent.core.statements import PostgresStatements, SqliteStatements
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
        one, other = (BuilderStore(SqliteStatements(store.database), clock) for store in opened)
        return one, other

    @pytest.fixture
    def sources(self, opened: list[SqliteStore], clock: Clock) -> SourceStore:
        return SourceStore(SqliteStatements(opened[0].database), (), clock)

    @pytest.mark.row("S000-13")
    async def test_the_blocking_ones_are_found_by_their_index(
        self, opened: list[SqliteStore], stores: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = await stores[0].add("anna")
        await stores[0].record_doubts(made, "source_analyzer", (BLOCKS,), settled_by="x")
        asked: list[str] = []
        read = SqliteStatements.read

        async def noted(self: SqliteStatements, statement: str, *values: object) -> list[tuple[object, ...]]:
            asked.append(statement)
            return await read(self, statement, *values)

        monkeypatch.setattr(SqliteStatements, "read", noted)
        assert len(await stores[0].blocking(made)) == 1

        def plan(db: sqlite3.Connection) -> str:
            return str(db.execute(f"EXPLAIN QUERY PLAN {asked[-1]}", (made.id,)).fetchall())

        assert "uncertainties_blocking_unresolved" in await opened[0].database.read(plan)

    @pytest.mark.row("S000-14")
    async def test_doubts_go_with_their_conversation(self, opened: list[SqliteStore], stores: Pair) -> None:
        made = await stores[0].add("anna")
        await stores[0].record_doubts(made, "source_analyzer", (BLOCKS,), settled_by="x")
        statements = SqliteStatements(opened[0].database)
        await statements.write("DELETE FROM agent_conversations WHERE owner = ?", "anna")
        assert await statements.read("SELECT id FROM conversation_uncertainties") == []


class TestPostgres(BuilderContract):
    @pytest.fixture
    async def statements(self, url: str) -> AsyncIterator[list[PostgresStatements]]:
        opened = [await open_postgres(url) for _ in range(2)]
        yield [PostgresStatements(store.database) for store in opened]
        for store in opened:
            await store.close()

    @pytest.fixture
    def stores(self, statements: list[PostgresStatements], clock: Clock) -> Pair:
        one, other = (BuilderStore(each, clock) for each in statements)
        return one, other

    @pytest.fixture
    def sources(self, statements: list[PostgresStatements], clock: Clock) -> SourceStore:
        return SourceStore(statements[0], (), clock)
