"""The vector indexes tested against their contract: exact on SQLite and PostgreSQL, Qdrant in local mode and as a
server.
"""

import asyncio
import gc
import os
import threading
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import StoreError, VectorSpaceError
from agent.storage.journal_postgres import open_postgres
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.vectors import VectorIndex, exact
from agent.storage.vectors.exact import ExactIndex
from agent.storage.vectors.postgres import PostgresVectorRows
from agent.storage.vectors.qdrant import QdrantIndex
from agent.storage.vectors.sqlite import SqliteVectorRows
from tests.contract.vector_contract import SET, SPACE, VectorContract, make_entry, search_ids

Pair = tuple[VectorIndex, VectorIndex]


class ExactContract(VectorContract):
    """What holds for the rows of both databases."""

    async def test_a_large_set_is_merged_and_searched_off_the_event_loop(
        self, indexes: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        threads: list[bool] = []
        merge = exact._merge_changes

        def record(*values: Any) -> Any:
            threads.append(threading.current_thread() is threading.main_thread())
            return merge(*values)

        monkeypatch.setattr(exact, "_merge_changes", record)
        monkeypatch.setattr(exact, "THREAD_THRESHOLD", 100)
        index, other = indexes
        await index.open(SET, SPACE)
        await index.put(SET, [make_entry("few", 1, 0, 0, 0)])
        assert await search_ids(index, 1, 0, 0, 0) == ["few"]
        await other.put(SET, [make_entry(f"e{number}", 0, 1, number, 0) for number in range(30)])
        assert (await search_ids(index, 1, 0, 0, 0))[0] == "few"
        await other.put(SET, [make_entry("one more", 0, 0, 0, 1)])
        found = await asyncio.gather(*(search_ids(index, 0, 0, 0, 1, limit=1) for _ in range(3)))
        assert found == [["one more"]] * 3
        assert threads[:3] == [True, False, False], "the first was small, the one more is added to thirty"

    async def test_a_set_that_has_outgrown_the_comparison_is_told(
        self, index: VectorIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exact, "MAX_QUICK_VECTORS", 2)
        await index.put(SET, [make_entry("a", 1, 0, 0, 0), make_entry("b", 1, 0, 0, 0)])
        await index.put(SET, [make_entry("c", 1, 0, 0, 0, owner="bob")])
        assert await index.list_outgrown() == {}
        await index.put(SET, [make_entry("d", 1, 0, 0, 0)])
        assert await index.list_outgrown() == {SET: 3}


class TestSqlite(ExactContract):
    @pytest.fixture
    async def indexes(self, tmp_path: Path) -> AsyncIterator[Pair]:
        stores = [await open_sqlite(tmp_path / "stepgate.db") for _ in range(2)]
        yield ExactIndex(SqliteVectorRows(stores[0].database)), ExactIndex(SqliteVectorRows(stores[1].database))
        for store in stores:
            await store.close()

    async def test_numbers_that_are_none_are_refused(self, index: VectorIndex) -> None:
        with pytest.raises(VectorSpaceError, match="NaN"):
            await index.put(SET, [make_entry("a", float("nan"), 0, 0, 0)])


class TestPostgres(ExactContract):
    @pytest.fixture
    async def indexes(self, url: str) -> AsyncIterator[Pair]:
        stores = [await open_postgres(url) for _ in range(2)]
        yield ExactIndex(PostgresVectorRows(stores[0].database)), ExactIndex(PostgresVectorRows(stores[1].database))
        for store in stores:
            await store.close()


class TestQdrantLocal(VectorContract):
    MANY = 120
    """The local mode stores and deletes each entry in a transaction of its own: 1,200 take 50 s."""

    @pytest.fixture
    async def indexes(self, tmp_path: Path) -> AsyncIterator[Pair]:
        index = QdrantIndex(path=str(tmp_path / "qdrant"))
        yield index, index
        await index.close()

    async def test_it_is_there_after_a_restart(self, index: VectorIndex, tmp_path: Path) -> None:
        await index.put(SET, [make_entry("a", 1, 0, 0, 0)])
        await index.close()
        again = QdrantIndex(path=str(tmp_path / "qdrant"))
        await again.open(SET, SPACE)
        assert await search_ids(again, 1, 0, 0, 0) == ["a"]
        await again.close()

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the client forgets its lock file
    async def test_a_second_process_is_told_what_to_do(self, index: VectorIndex, tmp_path: Path) -> None:
        second = QdrantIndex(path=str(tmp_path / "qdrant"))
        with pytest.raises(StoreError, match="AGENT_QDRANT_URL"):
            await second.open(SET, SPACE)
        gc.collect()


class TestQdrantServer(VectorContract):
    @pytest.fixture
    async def indexes(self) -> AsyncIterator[Pair]:
        server = os.environ.get("STEPGATE_TEST_QDRANT")
        if server is None:
            pytest.skip("no Qdrant server: set STEPGATE_TEST_QDRANT to its URL")
        prefix = f"test-{uuid.uuid4().hex[:8]}"
        pair = QdrantIndex(url=server, prefix=prefix), QdrantIndex(url=server, prefix=prefix)
        yield pair
        for name in (SET, "nothing"):
            await pair[0].drop(name)
        for index in pair:
            await index.close()


async def test_a_server_that_is_not_there_is_told_by_its_setting() -> None:
    index = QdrantIndex(url="http://127.0.0.1:9")
    with pytest.raises(StoreError, match="AGENT_QDRANT_URL"):
        await index.open(SET, SPACE)
    await index.close()
