"""Tables of features: created once by one of several processes, on both databases; a newer one is refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.core.errors import StoreNewerError
from agent.core.settings import Settings
from agent.storage.feature_schema import FeatureRevision, apply_revisions
from gateway.bootstrap_database import Storage, build_statements, open_store
from tests.support.postgres import fresh_database

FIRST = FeatureRevision("poems", "1", ("CREATE TABLE poems (title TEXT)",), ("CREATE TABLE poems (title TEXT)",))
SECOND = FeatureRevision(
    "poems", "2", ("ALTER TABLE poems ADD COLUMN owner TEXT",), ("ALTER TABLE poems ADD COLUMN owner TEXT",)
)
OTHER = FeatureRevision("songs", "1", ("CREATE TABLE songs (title TEXT)",), ("CREATE TABLE songs (title TEXT)",))


@pytest.fixture(params=["sqlite", "postgres"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Storage, Storage]]:
    """The same database, opened by two processes."""
    if request.param == "sqlite":
        settings = Settings(_env_file=None, data_dir=tmp_path)
        first, second = await open_store(settings), await open_store(settings)
        yield first, second
        await asyncio.gather(first.close(), second.close())
        return
    with fresh_database() as url:
        settings = Settings(_env_file=None, data_dir=tmp_path, database_url=url)
        first, second = await open_store(settings), await open_store(settings)
        yield first, second
        await asyncio.gather(first.close(), second.close())


async def test_each_revision_runs_once_and_in_order(stores: tuple[Storage, Storage]) -> None:
    store, _ = stores
    assert await apply_revisions(store, [FIRST]) == ["poems/1"]
    assert await apply_revisions(store, [FIRST, SECOND, OTHER]) == ["poems/2", "songs/1"]
    assert await apply_revisions(store, [FIRST, SECOND, OTHER]) == []
    await build_statements(store).write("INSERT INTO poems (title, owner) VALUES (?, ?)", "Hope", "local")


async def test_two_processes_that_start_at_once_create_the_tables_once(stores: tuple[Storage, Storage]) -> None:
    done = await asyncio.gather(*(apply_revisions(store, [FIRST, SECOND]) for store in stores))
    assert sorted(done) == [[], ["poems/1", "poems/2"]]


async def test_tables_of_a_newer_version_are_left_alone(stores: tuple[Storage, Storage]) -> None:
    store, _ = stores
    await apply_revisions(store, [FIRST, SECOND])
    with pytest.raises(StoreNewerError, match=r"feature 'poems'.*revision '2'"):
        await apply_revisions(store, [FIRST])


async def test_a_failing_revision_leaves_nothing_behind(stores: tuple[Storage, Storage]) -> None:
    store, _ = stores
    broken = FeatureRevision("poems", "2", ("ALTER TABLE nothing ADD x TEXT",), ("ALTER TABLE nothing ADD x TEXT",))
    with pytest.raises(Exception, match="nothing"):
        await apply_revisions(store, [FIRST, broken])
    assert await apply_revisions(store, [FIRST]) == ["poems/1"]
