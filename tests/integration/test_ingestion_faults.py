"""Readings that break off: by a full disk, a cancellation, another writer, or the end of their process."""

import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ConflictError, StoreError, StoreFullError
from gateway.features.documents.engine.ingest import collection_lock as hold_module
from gateway.features.documents.engine.search.documents import PassageRange
from tests.support.faulty import Gate, disturbed
from tests.support.processes import start
from tests.support.reading import (
    Letters,
    chunk_rows,
    consistent,
    counts,
    documents,
    folder_of,
    library,
    read,
    state,
    texts,
)
from tests.support.sources import Site, page

STEPS = (
    "_lexical.put",
    "_vectors.open",
    "_vectors.put",
    "_documents.place",
    "_lexical.delete",
    "_documents.note_pending",
)


@pytest.mark.parametrize("step", STEPS)
async def test_a_full_disk_leaves_the_document_as_it_was(tmp_path: Path, step: str) -> None:
    site = Site({page("a.md"): "# A\n\nApples are red.", page("b.md"): "# B\n\nPears."})
    async with library(tmp_path, site, Letters()) as bench:
        await read(bench)
        before = await state(bench)
        site.pages[page("a.md")] = "# A\n\nApples are blue and green."
        part, method = step.split(".")

        async def full(*_: Any, **__: Any) -> None:
            raise StoreFullError("the disk is full")

        with disturbed(getattr(bench.library, part), method, before=full), pytest.raises(StoreFullError):
            await read(bench)
        after = await state(bench)
        if step == "_lexical.delete":  # the new passages are in place; the old ones wait to be taken away
            assert len(after["chunks"]) == len(before["chunks"]) + 1
        else:
            assert after == before
        assert (await bench.library.get_collection("local", "work")).status == "incomplete"
        assert (await read(bench)).skipped == []
        assert await consistent(bench)
        assert len(await chunk_rows(bench)) == 2
        assert any("blue" in one.text for one in await texts(bench))


async def test_a_disk_that_fills_on_the_way_says_what_is_there_and_how_to_go_on(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 6)
    async with library(tmp_path) as bench:

        async def full(*_: Any, **__: Any) -> None:
            if len(await bench.library._documents.list("local", "work")) == 2:
                raise StoreFullError("the disk is full")

        with disturbed(bench.library._lexical, "put", before=full), pytest.raises(StoreFullError) as caught:
            await bench.library.ingest("local", "work", folder)
        assert "2 documents had been read into 'work' by then, and can be searched" in caught.value.message
        assert "To continue, ingest the same source again" in caught.value.message
        assert (await bench.library.list_collections("local")) == {"work": 2}
        assert (await bench.library.get_collection("local", "work")).status == "incomplete"
        report = await bench.library.ingest("local", "work", folder)
        assert (report.unchanged, report.read) == (2, 4)
        assert await consistent(bench)


async def test_a_disk_too_full_to_tidy_up_is_tidied_by_the_next_reading(tmp_path: Path) -> None:
    """Everything after the first passages fails, as after a crash; then the file has changed once more."""
    site = Site({page("a.md"): "# A\n\nApples are red."})
    async with library(tmp_path, site, Letters()) as bench:
        await read(bench)
        site.pages[page("a.md")] = "# A\n\nApples are blue."

        async def full(*_: Any, **__: Any) -> None:
            raise StoreFullError("the disk is full")

        inner = bench.library
        with (
            disturbed(inner._vectors, "put", before=full),
            disturbed(inner._lexical, "delete", before=full),
            disturbed(inner._documents, "release_lock", before=full),
            pytest.raises(StoreFullError),
        ):
            await read(bench)
        assert len(await chunk_rows(bench)) == 2, "the half written passage is still there"
        site.pages[page("a.md")] = "# A\n\nApples are green."
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(inner._documents, "_clock", lambda: 9e12)  # the hold that could not be let go runs out
            await read(bench)
        assert await consistent(bench)
        assert [one.text for one in await texts(bench)] == ["# A\n\nApples are green."]


async def test_a_reading_that_is_cancelled_goes_on_where_it_was(tmp_path: Path) -> None:
    site = Site({page(f"{number}.md"): f"# {number}\n\nText {number}." for number in range(4)})
    gate = Gate()
    async with library(tmp_path, site) as bench:

        async def third(*_: Any, **__: Any) -> None:
            if len(await bench.library._documents.list("local", "work")) == 2:
                await gate.arrive()

        with disturbed(bench.library._lexical, "put", after=third):
            reading = asyncio.create_task(read(bench))
            await gate.reached.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        assert len(await documents(bench)) == 2
        assert await consistent(bench), "the passages of the third were taken back"
        assert counts(await read(bench)) == (2, 2, 0, 0)


async def test_passages_of_a_crash_are_removed_unless_they_are_a_documents(tmp_path: Path) -> None:
    site = Site({page("a.md"): "# A\n\nApples."})
    async with library(tmp_path, site) as bench:
        await read(bench)
        ((name, current),) = (await documents(bench)).items()
        store = bench.library._documents
        (orphan,) = [replace(one, document_id="doc_orphan", chunk_id="doc_orphan.0") for one in await texts(bench)]
        await bench.library._lexical.put("work", [orphan], owner="local")
        await store.acquire_lock("local", "work", "dead", -1)
        await store.note_pending("local", "work", "dead", "dead", [PassageRange("doc_orphan", 1)])
        assert counts(await read(bench)) == (0, 1, 0, 0)
        assert await chunk_rows(bench) == [(current, f"{current}.0")]
        await store.acquire_lock("local", "work", "dead", -1)
        await store.note_pending("local", "work", "dead", "dead", [PassageRange(current, 1)])
        assert counts(await read(bench)) == (0, 1, 0, 0)
        assert await chunk_rows(bench) == [(current, f"{current}.0")], f"{name} was written to its end"


async def test_two_readings_exclude_each_other_and_one_that_lost_its_hold_writes_no_more(tmp_path: Path) -> None:
    site = Site({page("a.md"): "# A", page("b.md"): "# B"})
    gate = Gate()
    async with library(tmp_path, site) as bench:
        with disturbed(bench.library._lexical, "put", before=gate.arrive):
            reading = asyncio.create_task(read(bench))
            await gate.reached.wait()
            with pytest.raises(ConflictError, match="another process is writing to"):
                await read(bench)
            with pytest.raises(ConflictError):
                await bench.library.drop_collection("local", "work")
            taken = await bench.library._documents.acquire_lock("local", "work", "other", 60)
            assert not taken
            gate.open()
            assert counts(await reading) == (2, 0, 0, 0)
        site.pages[page("a.md")] = "# A\n\nNew."

        async def robbed(*_: Any, **__: Any) -> None:
            await bench.store.database.write(lambda db: db.execute("UPDATE ingestions SET holder = 'other'"))

        with disturbed(bench.library._documents, "note_pending", before=robbed), pytest.raises(ConflictError):
            await read(bench)
        assert await consistent(bench)


async def test_a_hold_is_prolonged_while_a_reading_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold_module, "LOCK_SECONDS", 0.3)
    site = Site({page("a.md"): "# A"})
    prolonged = asyncio.Event()
    gate = Gate()
    async with library(tmp_path, site) as bench:

        async def noted(*_: Any, **__: Any) -> None:
            if gate.reached.is_set():
                prolonged.set()

        with (
            disturbed(bench.library._lexical, "put", before=gate.arrive),
            disturbed(bench.library._documents, "acquire_lock", after=noted),
        ):
            reading = asyncio.create_task(read(bench))
            async with asyncio.timeout(20):
                await gate.reached.wait()
                await prolonged.wait()
            gate.open()
            assert counts(await reading) == (1, 0, 0, 0)


async def test_nothing_is_left_in_the_workspace(tmp_path: Path) -> None:
    site = Site({page("a.md"): "# A"}, breaks_after=None)
    async with library(tmp_path, site) as bench:
        await read(bench)
        site.breaks_after, site.error = 0, StoreError("it broke")
        with pytest.raises(StoreError):
            await read(bench)
    assert list((tmp_path / "data" / "workspaces").iterdir()) == []


async def test_nothing_goes_on_behind_a_reading_that_failed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 12)
    async with library(tmp_path) as bench:
        before = asyncio.all_tasks()

        async def full(*_: Any, **__: Any) -> None:
            raise StoreFullError("the disk is full")

        with disturbed(bench.library._lexical, "put", before=full), pytest.raises(StoreFullError):
            await bench.library.ingest("local", "work", folder)
        assert asyncio.all_tasks() == before
        assert (await bench.library.ingest("local", "work", folder)).read == 12


READER = """
import asyncio, sys, time
from pathlib import Path
from gateway.bootstrap import build_gateway
from gateway.features.documents.parts import get_documents
from agent.core.settings import Settings

async def main():
    settings = Settings(_env_file=None, data_dir=Path(sys.argv[1]), skills_dirs=())
    async with build_gateway(settings, recover=False, foreign="ignored") as stepgate:
        def tell(name, done, total):
            print(f"done {done}.", flush=True)
            if done >= 30:  # held here until the kill, however late that comes
                time.sleep(600)

        await get_documents(stepgate).library.ingest("local", "work", Path(sys.argv[2]), progress=tell)

asyncio.run(main())
"""


async def test_a_reading_that_is_killed_goes_on_and_leaves_nothing_half(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 40)
    process = start([sys.executable, "-c", READER, str(tmp_path / "data"), str(folder)])
    try:
        await asyncio.to_thread(process.line_with, "done 10.", 60)
    finally:
        process.kill()
    async with library(tmp_path) as bench:
        there = len(await bench.library.list_documents("local", "work"))
        assert 0 < there <= 30
        assert (await bench.library.get_collection("local", "work")).status == "indexing", "nobody was left to say so"
        with pytest.raises(ConflictError, match="30 s after a crash"):
            await bench.library.ingest("local", "work", folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bench.library._documents, "_clock", lambda: time.time() + hold_module.LOCK_SECONDS + 1)
            report = await bench.library.ingest("local", "work", folder)
        assert (report.unchanged, report.read) == (there, 40 - there)
        assert await consistent(bench)
        assert len(await chunk_rows(bench)) == 40
