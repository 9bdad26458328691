"""Hooks of features are called only in the runs that they concern."""

from collections.abc import Sequence

import pytest

from agent.core.models import RoomFilter, rooms_with
from agent.run_context.engine import Engine
from agent.run_context.extensions import Extension, merge_extensions
from agent.run_context.run import Run
from agent.run_context.run_hooks import RunHooks
from agent.storage.journal import Claim
from agent.storage.journal_sqlite import open_in_memory
from agent.storage.sql import OwnedRows, Row, SqliteClient
from tests.support.builders import RUN_ID, created, log


class Hooks(RunHooks):
    name = "mine"

    def __init__(self, rooms: RoomFilter | None = None, rows: OwnedRows | None = None) -> None:
        if rooms is not None:
            self.rooms = rooms  # type: ignore[misc]  # a class variable of shipped hooks
        self.owner_rows = rows
        self.loads = 0

    def load(self, run: Run, rows: Sequence[Row]) -> object:
        self.loads += 1
        return [row[0] for row in rows]


async def load(hooks: Hooks) -> Run:
    engine = Engine(*[None] * 9, extensions=merge_extensions([Extension("mine", hooks=(hooks,))]))  # type: ignore[arg-type,misc]
    run = Run(engine, Claim(RUN_ID, 1, tuple(log(created()))))
    await run.load_feature_data()
    return run


@pytest.mark.parametrize(
    ("rooms", "loads"), [(None, 1), (rooms_with(planning=True), 1), (rooms_with(knowledge=True), 0)]
)
async def test_hooks_are_loaded_in_their_rooms(rooms: RoomFilter | None, loads: int) -> None:
    hooks = Hooks(rooms)
    run = await load(hooks)
    assert (hooks.loads, hooks in run.hooks, "mine" in run.feature_data) == (loads, bool(loads), bool(loads))


async def test_hooks_with_owner_rows_are_loaded_where_the_owner_has_some() -> None:
    store = open_in_memory()
    try:
        statements = SqliteClient(store.database)
        for owner, kept in (("local", ["one"]), ("somebody", None)):
            rows = OwnedRows(statements, f"SELECT 'one' WHERE ? = '{owner}'")
            run = await load(hooks := Hooks(rows=rows))
            assert run.feature_data.get("mine") == kept
            assert run.hooks == ((hooks,) if kept else ())
    finally:
        await store.close()


class Counting(SqliteClient):
    reads = 0

    async def read(self, statement: str, *values: object) -> list[Row]:
        self.reads += 1
        return await super().read(statement, *values)


async def test_cached_rows_are_read_again_once_forgotten() -> None:
    store = open_in_memory()
    try:
        statements = Counting(store.database)
        rows = OwnedRows(statements, "SELECT ?, 1", cache_seconds=60)
        assert await rows.read("ann") is await rows.read("ann")
        assert (await rows.read_counts("bob"), statements.reads) == ({"bob": 1}, 2)
        rows.forget("ann")
        assert (await rows.read("ann"), statements.reads) == ([("ann", 1)], 3)
    finally:
        await store.close()
