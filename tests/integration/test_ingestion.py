"""Reading sources into collections: what is skipped, replaced and removed."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import BadRequestError
from gateway.features.documents.engine.ingest.connectors.port import MissedDocument
from gateway.features.documents.engine.ingest.errors import ConnectorError, ConnectorNotFoundError, ParserTimeoutError
from gateway.features.documents.engine.ingest.parsers import ParserPool
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.documents.engine.ingest.pipeline_check import PipelineInvalidError
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.search.models import ConnectorInput, ParserInput, ParserOutput
from gateway.features.documents.engine.search.naming import make_vector_set_name
from tests.support.faulty import disturbed
from tests.support.reading import (
    Letters,
    change,
    chunk_rows,
    consistent,
    counts,
    documents,
    folder_of,
    holds,
    library,
    read,
)
from tests.support.sources import REQUEST, Site, page

LONG = "\n\n".join(f"## Part {number}\n\n{'Words about apples and pears. ' * 20}" for number in range(6))


async def test_versions_save_the_fetching_and_checksums_the_reading(tmp_path: Path) -> None:
    site = Site(
        {page("a.md"): "# A\n\nApples.", page("b.md"): "# B\n\nPears.", page("c.md"): "# C\n\nPlums."},
        versions={page("a.md"): "1", page("b.md"): "1"},
    )
    async with library(tmp_path, site) as bench:
        assert counts(await read(bench)) == (3, 0, 0, 0)
        assert counts(await read(bench)) == (0, 3, 0, 0)
        assert site.fetched == [page("c.md")], "what has no version is fetched to be compared"
        site.versions[page("b.md")] = "2"
        assert counts(await read(bench)) == (0, 3, 0, 0), "another version of the same bytes is nothing new"
        await read(bench)
        assert site.fetched == [page("c.md")], "the new version was kept"
        site.pages[page("a.md")] = "# A\n\nApples are red."
        site.versions[page("a.md")] = "2"
        assert counts(await read(bench)) == (1, 2, 0, 0)
        document = next(one for one in await bench.library.list_documents("local", "work") if one.name == "a.md")
        assert (document.url, document.source_type, document.version) == (page("a.md"), "web", "2")
        found = await bench.library.get_document("local", document.document_id)
        (passage,) = await bench.library.list_passages("local", found)
        assert (passage.text, passage.metadata["source_url"]) == ("# A\n\nApples are red.", page("a.md"))


async def test_another_pipeline_reads_everything_again_and_the_same_one_nothing(tmp_path: Path) -> None:
    site = Site({page("a.md"): LONG, page("b.md"): LONG + "more"}, versions={page("a.md"): "1", page("b.md"): "1"})
    async with library(tmp_path, site) as bench:
        first = await read(bench)
        before = await chunk_rows(bench)
        again = await read(bench, from_template("windows", {"chunk_size": 300, "overlap": 0}))
        assert counts(again) == (2, 0, 0, 0)
        assert again.chunks > first.chunks
        assert not {row[0] for row in await chunk_rows(bench)} & {row[0] for row in before}
        assert counts(await read(bench)) == (0, 2, 0, 0), "the collection keeps its pipeline"
        row = await bench.library.get_collection("local", "work")
        assert (row.pipeline.template, row.status, row.sources) == ("windows", "ready", (REQUEST,))
        slower = row.pipeline.with_options("parser", timeout_s=5)
        assert counts(await read(bench, slower)) == (0, 2, 0, 0), "a limit changes no passage"
        assert counts(await read(bench, from_template())) == (2, 0, 0, 0)
        assert await chunk_rows(bench) == before, "the same pipeline makes the same ids"


async def test_what_is_gone_is_removed_only_after_a_whole_walk_and_only_where_it_led(tmp_path: Path) -> None:
    site = Site({page("a.md"): "# A", page("b.md"): "# B", page("c.md"): "# C"})
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "mine.md").write_text("# Mine")
    async with library(tmp_path, site) as bench:
        await bench.library.ingest("local", "work", folder)
        await read(bench)
        del site.pages[page("a.md")]
        site.breaks_after, site.error = 1, ConnectorError("the site went down")
        with pytest.raises(ConnectorError, match="went down"):
            await read(bench)
        assert sorted(await documents(bench)) == ["a.md", "b.md", "c.md", "mine.md"]
        assert (await bench.library.get_collection("local", "work")).status == "incomplete"
        site.breaks_after = None
        assert counts(await read(bench)) == (0, 2, 1, 0)
        assert sorted(await documents(bench)) == ["b.md", "c.md", "mine.md"]
        assert await consistent(bench)


async def test_what_cannot_be_had_keeps_its_passages_and_what_is_gone_does_not(tmp_path: Path) -> None:
    site = Site({page("a.md"): "# A", page("b.md"): "# B"})
    async with library(tmp_path, site) as bench:
        await read(bench)
        site.missing = {
            page("a.md"): MissedDocument(page("a.md"), "a.md", ConnectorError("HTTP status 503")),
            page("b.md"): MissedDocument(page("b.md"), "b.md", ConnectorNotFoundError("HTTP status 410"), gone=True),
        }
        report = await read(bench)
        assert counts(report) == (0, 0, 1, 2)
        assert report.by_reason == {"ERR_CONNECTOR_FAILED": 1, "ERR_CONNECTOR_NOT_FOUND": 1}
        assert list(await documents(bench)) == ["a.md"]


async def test_a_source_that_cannot_be_had_leaves_no_collection_behind(tmp_path: Path) -> None:
    site = Site({page("a.md"): ""}, breaks_after=0, error=ConnectorError("no such host"))
    async with library(tmp_path, site) as bench:
        with pytest.raises(ConnectorError):
            await read(bench)
        assert await bench.library.list_collections("local") == {}
        site.pages = {}
        assert counts(await read(bench)) == (0, 0, 0, 0)
        assert await bench.library.list_collections("local") == {"work": 0}, "an empty source is a source"
        assert await bench.library.list_documents("local", "work") == []
        assert await bench.library.drop_collection("local", "work") == 0
        assert await bench.library.list_collections("local") == {}


async def test_a_pipeline_that_is_not_for_the_source_or_cannot_be_is_refused(tmp_path: Path) -> None:
    async with library(tmp_path, Site({})) as bench:
        with pytest.raises(BadRequestError, match="reads web sources, not local"):
            await bench.library.ingest("local", "work", tmp_path, pipeline=from_template("website"))
        broken = PipelineDAG(nodes=from_template().nodes[1:], edges=())
        with pytest.raises(PipelineInvalidError, match="there is no source"):
            await read(bench, broken)
        for name in ("", "  ", "x" * 201, "a\nb"):
            with pytest.raises(BadRequestError, match="printable"):
                await bench.library.ingest("local", name, tmp_path)
        assert await bench.library.list_collections("local") == {}


async def test_types_that_a_pipeline_no_longer_takes_are_removed(tmp_path: Path) -> None:
    site = Site({page("a.md"): "# A", page("t.csv"): "a,b\n1,2\n"})
    async with library(tmp_path, site) as bench:
        assert counts(await read(bench)) == (2, 0, 0, 0)
        only_tables = from_template("tables")
        report = await read(bench, only_tables)
        assert (counts(report), report.left_out) == ((1, 0, 1, 0), 1)
        assert list(await documents(bench)) == ["t.csv"]


@pytest.mark.row("S003-46")
async def test_a_slow_file_is_tried_once_more_and_then_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site({page("a.md"): "# A", page("b.md"): "# B"})
    slow = {"a.md": 1, "b.md": 2}
    tried: list[str] = []
    measured: list[bool] = []
    original = ParserPool.parse

    async def parse(self: ParserPool, wanted: ParserInput, **options: Any) -> ParserOutput:
        name = "a.md" if holds(wanted, "A") else "b.md"
        tried.append(name)
        measured.append(options["is_measured"])
        if tried.count(name) <= slow[name]:
            raise ParserTimeoutError(f"{name} took longer than 60 s")
        return await original(self, wanted, **options)

    monkeypatch.setattr(ParserPool, "parse", parse)
    async with library(tmp_path, site) as bench:
        report = await read(bench)
    assert tried == ["a.md", "a.md", "b.md", "b.md"]
    assert measured == [True, False, True, False], "it may be the measure that does not end"
    assert counts(report) == (1, 0, 0, 1)
    assert (report.skipped[0].code, report.skipped[0].source) == ("ERR_TIMEOUT", "b.md")


async def test_a_downloaded_file_that_cannot_be_read_is_told_by_its_own_name(tmp_path: Path) -> None:
    """The copy that is read has a name of ours, which says nothing to anybody."""
    site = Site({page("a.md"): "# A", page("locked.docx"): "no zip at all, but long enough to be looked at"})
    async with library(tmp_path, site) as bench:
        (skipped,) = (await read(bench)).skipped
    assert skipped.source == "locked.docx"
    assert skipped.reason.startswith("locked.docx ")
    assert "page.docx" not in skipped.reason


async def test_a_file_that_changes_while_it_is_read_is_what_was_read_and_looked_at_again(tmp_path: Path) -> None:
    site = Site({page("a.md"): "# A\n\nBefore."}, versions={page("a.md"): "1"})
    async with library(tmp_path, site) as bench:
        original = ParserPool.parse

        async def parse(self: ParserPool, wanted: ParserInput, **options: Any) -> ParserOutput:
            change(wanted, "# A\n\nAfter.")
            return await original(self, wanted, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ParserPool, "parse", parse)
            report = await read(bench)
        assert report.notes == ["a.md: it changed while it was read"]
        site.pages[page("a.md")] = "# A\n\nAfter."
        assert counts(await read(bench)) == (0, 1, 0, 0)
        assert site.fetched == [page("a.md")], "its version was not trusted"


async def test_vectors_come_when_there_is_an_embedder_and_a_broken_one_is_asked_once(tmp_path: Path) -> None:
    site = Site({page(f"{number}.md"): f"# {number}" for number in range(3)}, versions={page("0.md"): "1"})
    embedder = Letters()
    async with library(tmp_path, site) as bench:
        await read(bench)
    async with library(tmp_path, site, embedder) as bench:
        embedder.down = True
        report = await read(bench)
        assert embedder.calls == 1
        assert report.notes == ["no vectors: the endpoint cannot be reached"]
        embedder.down = False
        assert counts(await read(bench)) == (3, 0, 0, 0), "now they get their vectors"
        assert counts(await read(bench)) == (0, 3, 0, 0)
        assert (await bench.library.get_collection("local", "work")).embedder == "letters (8 numbers)"
        assert {one.embedder for one in await bench.library.list_documents("local", "work")} == {"letters (8 numbers)"}
        name = make_vector_set_name("local", "work")
        assert len(await bench.library._vectors.list_items(name, owner="local", limit=10)) == 3
        words = from_template()
        nodes = [
            node.model_copy(update={"plugin": {"embedder": "none", "index": "lexical"}.get(node.kind, node.plugin)})
            for node in words.nodes
        ]
        assert counts(await read(bench, words.model_copy(update={"nodes": tuple(nodes)}))) == (3, 0, 0, 0)
        assert await bench.library._vectors.list_items(name, owner="local", limit=10) == []
        assert await consistent(bench)


async def test_files_whose_names_are_no_text_are_read_once_and_stay(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in (b"caf\xe9.md", b"caf\xe8.md", "ünï ☃.md".encode(), b"plain.md"):
        (folder / name.decode("utf-8", "surrogateescape")).write_text(f"# {name!r}")
    async with library(tmp_path) as bench:
        first = await bench.library.ingest("local", "work", folder)
        assert counts(first) == (4, 0, 0, 0)
        assert counts(await bench.library.ingest("local", "work", folder)) == (0, 4, 0, 0)


async def test_without_recursion_only_the_folder_itself_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "below").mkdir(parents=True)
    (folder / "a.md").write_text("# A")
    (folder / "below" / "b.md").write_text("# B")
    flat = ConnectorInput(source_type="local", source_identifier=str(folder))
    async with library(tmp_path) as bench:
        assert (await bench.library.ingest("local", "work", folder)).read == 2
        assert counts(await bench.library.ingest("local", "work", flat)) == (0, 1, 0, 0)
        assert sorted(await documents(bench)) == ["a.md", "below/b.md"], "what the walk did not cover stays"


async def test_progress_is_told_of_every_document(tmp_path: Path) -> None:
    site = Site({page("a.md"): "# A", page("b.exe"): "x", page("c.md"): "# C"})
    told: list[tuple[str, int, int | None]] = []
    async with library(tmp_path, site) as bench:
        await read(bench, progress=lambda *one: told.append(one))
    assert told == [("a.md", 0, 3), ("b.exe", 1, 3), ("c.md", 2, 3), ("", 3, 3)]


async def test_files_that_lie_still_are_read_ahead_and_put_in_their_order(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 8)
    (folder / "003.md").write_text("")
    (folder / "005.pdf").write_text("%PDF-1.4 no more of it")
    reading, most = 0, 0
    original = ParserPool.parse

    async def parse(self: ParserPool, wanted: ParserInput, **options: Any) -> ParserOutput:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        try:
            return await original(self, wanted, **options)
        finally:
            reading -= 1

    placed: list[str] = []
    async with library(tmp_path) as bench:

        async def noted(_: str, __: str, documents: Any, **___: Any) -> None:
            placed.extend(one.name for one in documents)

        with pytest.MonkeyPatch.context() as patch, disturbed(bench.library._documents, "place", after=noted):
            patch.setattr(ParserPool, "parse", parse)
            report = await bench.library.ingest("local", "work", folder)
        assert [one.source for one in report.skipped] == ["003.md", "005.pdf"]
        assert placed == [f"{number:03}.md" for number in range(8) if number != 3]
        assert most > 1
        assert await consistent(bench)
