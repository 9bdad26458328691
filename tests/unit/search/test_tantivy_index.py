"""The search index follows its database, whatever happens to its files or to the rows."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import tantivy

from agent.core.errors import StoreError
from agent.storage.journal_sqlite import SqliteStore, open_sqlite
from gateway.features.documents.engine.search import tantivy_index
from gateway.features.documents.engine.search.lexical import Passage
from gateway.features.documents.engine.search.lexical_sqlite import create_sqlite_index
from gateway.features.documents.engine.search.tantivy_index import INDEX_FOLDER, TantivyIndex
from gateway.features.documents.engine.search.term_index import _SCHEMA

OWNER, HOUSE = "ann", "house"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await open_sqlite(tmp_path / "stepgate.db")
    yield store
    await store.close()


@pytest.fixture
async def index(store: SqliteStore) -> TantivyIndex:
    """An index with five passages about engines, searched once."""
    index = create_sqlite_index(store.database)
    await index.put(HOUSE, [Passage(f"p{n}", f"d{n}", "", f"an engine number{n}") for n in range(5)], owner=OWNER)
    assert len(await search(index, "engine")) == 5
    return index


async def search(index: TantivyIndex, query: str, limit: int = 10) -> list[str]:
    return sorted(hit.id for hit in (await index.search(HOUSE, query, owner=OWNER, limit=limit)).hits)


def folders(tmp_path: Path) -> list[Path]:
    return [one for one in (tmp_path / INDEX_FOLDER).iterdir() if one.is_dir()]


@pytest.mark.parametrize("damage", ["meta.json", "state.json", "segments", "everything"])
async def test_a_damaged_index_is_made_again(
    index: TantivyIndex, store: SqliteStore, tmp_path: Path, damage: str
) -> None:
    (folder,) = folders(tmp_path)
    if damage == "everything":
        shutil.rmtree(folder)
    for one in folder.glob("*.idx" if damage == "segments" else damage):
        one.write_bytes(b"\x00half a fil")
    again = create_sqlite_index(store.database)
    assert len(await search(again, "engine")) == 5
    assert await search(again, "number3") == ["p3"]


async def test_a_folder_that_is_removed_under_a_running_process_is_made_again(
    index: TantivyIndex, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / INDEX_FOLDER)
    assert await search(index, "number3") == ["p3"]
    await index.put(HOUSE, [Passage("new", "dn", "", "an engine number9")], owner=OWNER)
    assert await search(index, "number9") == ["new"]
    assert len(await search(index, "engine")) == 6
    assert len(folders(tmp_path)) == 1


async def test_an_index_ahead_of_a_restored_database_is_made_again(index: TantivyIndex, store: SqliteStore) -> None:
    await index.put(HOUSE, [Passage("late", "dl", "", "an engine too late")], owner=OWNER)
    assert await search(index, "late") == ["late"]

    def restore(db: object) -> None:
        db.execute("DELETE FROM chunks WHERE chunk_id = 'late'")  # type: ignore[attr-defined]
        db.execute("UPDATE chunk_sets SET changes = changes - 1")  # type: ignore[attr-defined]

    await store.database.write(restore)
    assert await search(create_sqlite_index(store.database), "late") == []
    assert await search(index, "late") == []
    assert len(await search(index, "engine")) == 5


async def test_passages_that_the_database_lost_make_room_for_the_others(
    index: TantivyIndex, store: SqliteStore
) -> None:
    """As after a crash between the commit of a removal and the index, or a removal on another machine."""
    await index.put(HOUSE, [Passage(f"q{n}", f"q{n}", "engine", "engine engine") for n in range(40)], owner=OWNER)
    assert len(await search(index, "engine", 100)) == 45
    await store.database.write(lambda db: db.execute("DELETE FROM chunks WHERE chunk_id LIKE 'q%'"))
    assert await search(index, "engine", 5) == [f"p{n}" for n in range(5)]
    assert (await index.select(HOUSE, owner=OWNER, filters={"document_id": "q1"})).documents == {}


async def test_two_processes_write_one_index(index: TantivyIndex, store: SqliteStore) -> None:
    other = create_sqlite_index(store.database)

    async def fill(one: TantivyIndex, name: str) -> None:
        for number in range(8):
            await one.put(HOUSE, [Passage(f"{name}{number}", name, "", f"engine {name}")], owner=OWNER)
            assert f"{name}{number}" in await search(one, f"engine {name}", 50)

    await asyncio.gather(fill(index, "left"), fill(other, "right"), fill(index, "middle"))
    assert len(await search(index, "engine", 100)) == len(await search(other, "engine", 100)) == 5 + 24


async def test_an_index_that_stays_locked_is_told(
    index: TantivyIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tantivy_index, "BUSY_SECONDS", 0.1)
    (folder,) = folders(tmp_path)
    for one in index._open.values():
        if one.merging is not None:
            await one.merging  # the last writer holds the lock until its merges are done
    writer = tantivy.Index(_SCHEMA, str(folder)).writer(15_000_000, 1)
    await index.put(HOUSE, [Passage("new", "dn", "", "engine")], owner=OWNER)
    with pytest.raises(StoreError, match="another process has been writing the search index"):
        await search(index, "engine")
    writer.wait_merging_threads()
    assert len(await search(index, "engine")) == 6, "nothing is lost"


async def test_a_data_folder_that_cannot_be_written_is_told(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / INDEX_FOLDER).write_text("a file where the folder should be")
    index = create_sqlite_index(store.database)
    with pytest.raises(StoreError, match=r"search index cannot be written.*nothing is lost"):
        await index.put(HOUSE, [Passage("a", "d", "", "engine")], owner=OWNER)
    (tmp_path / INDEX_FOLDER).unlink()
    assert await search(index, "engine") == ["a"]


async def test_indexes_of_collections_that_are_gone_are_removed(
    index: TantivyIndex, store: SqliteStore, tmp_path: Path
) -> None:
    await index.put("other", [Passage("x", "d", "", "engine")], owner="bob")
    assert (await index.search("other", "engine", owner="bob", limit=1)).hits
    assert len(folders(tmp_path)) == 2
    await store.database.write(lambda db: db.execute("DELETE FROM chunk_sets WHERE owner = 'bob'"))
    assert await search(create_sqlite_index(store.database), "engine")
    assert len(folders(tmp_path)) == 1
    await index.drop(HOUSE, owner=OWNER)
    assert folders(tmp_path) == []


async def test_many_collections_are_open_at_once_and_the_oldest_are_closed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tantivy_index, "MAX_OPEN", 3)
    index = create_sqlite_index(store.database)
    for number in range(8):
        await index.put(f"c{number}", [Passage("p", "d", "", f"engine {number}")], owner=OWNER)
    for number in range(8):
        assert (await index.search(f"c{number}", "engine", owner=OWNER, limit=1)).hits
    assert len(index._open) == 3
