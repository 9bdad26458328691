"""Dry runs: what they tell, that they are right, and that they write nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import EmbedderError
from agent.llm.embedder import Embedded
from gateway.features.documents.engine.ingest.connectors.port import FetchedDocument, MissedDocument
from gateway.features.documents.engine.ingest.dry_run_report import (
    CATEGORIES,
    FileResult,
    ValidationReport,
    assess,
    build_report,
    compute_chunk_stats,
)
from gateway.features.documents.engine.ingest.dry_run_sample import Candidate, Sampler
from gateway.features.documents.engine.ingest.errors import ConnectorAuthError, ConnectorError
from gateway.features.documents.engine.ingest.parsers import ocr
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG, PipelineNode, build_chain
from gateway.features.documents.engine.ingest.pipeline_diff import apply_diff
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.search.models import Chunk, ConnectorInput, ConnectorOutput, FileType
from tests.support.documents import Words, encrypted_pdf, pdf, word
from tests.support.engine import Bench, engine_bench
from tests.support.sources import REQUEST, Site, page


@asynccontextmanager
async def library(tmp_path: Path, **options: Any) -> AsyncIterator[Bench]:
    async with engine_bench(tmp_path / "data", None, **options) as bench:
        yield bench


def folder_of(tmp_path: Path, **files: bytes) -> ConnectorInput:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, data in files.items():
        (folder / name.replace("__", ".")).write_bytes(data)
    return ConnectorInput(source_type="local", source_identifier=str(folder), recursive=True)


def result(number: int, code: str | None = None) -> FileResult:
    status: Any = "ok" if code is None else "failed"
    return FileResult(source=f"/{number}", name=str(number), file_type="md", status=status, error_code=code)


def judged(ok: int, failed: int) -> ValidationReport:
    files = [result(number) for number in range(ok)]
    files += [result(ok + number, "ERR_PARSER_ENCRYPTED") for number in range(failed)]
    return build_report(files, [], {}, [], found=ok + failed, seed=0)


@pytest.mark.row("S000-42")
@pytest.mark.parametrize(
    ("ok", "failed", "assessment", "severity"),
    [
        (96, 4, "ready", None),
        (95, 5, "needs_adjustment", "notable"),
        (93, 7, "needs_adjustment", "notable"),
        (90, 10, "needs_adjustment", "notable"),
        (85, 15, "blocking_issues", "blocking"),
        (0, 3, "blocking_issues", "blocking"),
        (0, 0, "blocking_issues", "blocking"),
    ],
)
def test_the_thresholds_are_those_of_the_seed(ok: int, failed: int, assessment: str, severity: str | None) -> None:
    told = judged(ok, failed)
    assert told.assessment == assessment
    assert [one.severity for one in told.uncertainties] == ([severity] if severity else [])
    if ok + failed:
        assert told.success_rate == ok / (ok + failed)
        assert (f"{failed} of" in told.uncertainties[0].message) if severity else True
    assert assess(0.9501) == "ready"


@pytest.mark.row("S000-43")
def test_failures_are_counted_by_category_with_examples_and_advice() -> None:
    told = judged(2, 8)
    ((name, category),) = told.failure_categories.items()
    assert (name, category.count, len(category.examples)) == ("encrypted", 8, 5)
    assert category.suggested_fix == CATEGORIES["ERR_PARSER_ENCRYPTED"][1]
    assert "8 encrypted" in told.summary
    other = build_report([result(1, "ERR_NEW_ONE")], [], {}, [], found=1, seed=0)
    assert other.failure_categories["new_one"].suggested_fix is None


def test_chunks_are_counted_and_measured() -> None:
    def chunk(text: str, number: int) -> Chunk:
        return Chunk(
            chunk_id=str(number), document_id="d", index=number, text=text, start=0, end=len(text), checksum=text
        )

    lengths = [*range(1, 20), 500]
    stats = compute_chunk_stats(
        [chunk("x" * length, number) for number, length in enumerate([*lengths, 500])] + [chunk("--", 99)]
    )
    assert (stats.count, stats.min, stats.max, stats.p95) == (22, 1, 500, 500)
    assert (stats.empty, stats.duplicates) == (1, 1)
    assert stats.median == 10.5
    assert compute_chunk_stats([]).count == 0


def candidate(source: str, size: int, file_type: FileType | None) -> Candidate:
    output = ConnectorOutput(file_path=source, file_size_bytes=size, source_metadata={}, checksum="0")
    return Candidate(FetchedDocument(source, source, file_type, output))


def sample(candidates: list[Candidate], count: int, seed: int = 0) -> list[str]:
    sampler = Sampler(count, seed)
    for one in candidates:
        if sampler.would_keep(one.found):
            sampler.add(one)
    return [one.found.source for one in sampler.sample()]


def test_the_sample_is_the_same_each_time_and_spread_over_types_and_sizes() -> None:
    many = [candidate(f"/{number}.md", 100, "md") for number in range(500)]
    few = [candidate("/big.md", 10**6, "md"), candidate("/a.pdf", 5_000, "pdf"), candidate("/x.exe", 9, None)]
    chosen = sample([*many, *few], 10)
    assert len(chosen) == 10
    assert {"/big.md", "/a.pdf", "/x.exe"} <= set(chosen)
    assert sample([*few, *reversed(many)], 10) == chosen, "the order of the walk does not count"
    assert sample([*many, *few], 10, seed=1) != chosen
    assert sorted(sample(few, 10)) == ["/a.pdf", "/big.md", "/x.exe"]
    refused = MissedDocument("/secret", "secret", ConnectorAuthError("no"))
    sampler = Sampler(2, 0)
    assert sampler.would_keep(refused)
    sampler.add(Candidate(refused))
    assert [one.found for one in sampler.sample()] == [refused]
    sampler.add(Candidate(refused))
    assert [one.found for one in sampler.sample()] == [refused, refused], "a site may list an address twice"


async def content(bench: Bench, tmp_path: Path) -> tuple[dict[str, int], list[str]]:
    """Rows of every table, and every file of the data folder but the database's own."""

    def counted(db: Any) -> dict[str, int]:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'")]
        return {name: db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}

    files = sorted(str(path) for path in (tmp_path / "data").rglob("*") if not path.name.startswith("stepgate.db"))
    return await bench.store.database.read(counted), [name for name in files if not name.endswith("workspaces")]


@pytest.mark.row("S000-37")
async def test_a_dry_run_tells_of_every_file_and_writes_nothing(tmp_path: Path) -> None:
    request = folder_of(
        tmp_path,
        a__md=b"# Apples\n\nApples are red.",
        twin__md=b"# Apples\n\nApples are red.",
        b__docx=word(title="Report", rows=[["a", "b"], ["1", "2"]]),
        c__pdf=pdf([Words("A page of words.")], [Words("And another.")]),
        locked__pdf=encrypted_pdf(),
        broken__docx=b"PK\x03\x04 no archive",
        empty__txt=b"",
        tool__exe=b"MZ\x00",
    )
    async with library(tmp_path) as bench:
        await bench.library.ingest("local", "other", tmp_path / "docs" / "a.md")
        before = await content(bench, tmp_path)
        told = await bench.library.dry_run(request, from_template())
        assert await content(bench, tmp_path) == before
    by_name = {one.name: one for one in told.files}
    assert {name: one.error_code for name, one in by_name.items() if one.status == "failed"} == {
        "locked.pdf": "ERR_PARSER_ENCRYPTED",
        "broken.docx": "ERR_PARSER_CORRUPT",
        "empty.txt": "ERR_PARSER_EMPTY",
    }
    assert {one.stage for one in told.files} == {None, "parser"}
    assert (by_name["c.pdf"].pages, by_name["a.md"].chunks) == (2, 1)
    assert by_name["locked.pdf"].message
    assert (told.files_found, told.files_tested, told.files_succeeded, told.files_failed) == (8, 7, 4, 3)
    assert (round(told.success_rate, 3), told.assessment) == (0.571, "blocking_issues")
    assert set(told.failure_categories) == {"encrypted", "corrupted", "no_text"}
    assert "1 file (.exe 1) is of a kind that no parser reads" in {one.message for one in told.uncertainties}
    assert told.chunk_stats.duplicates == 1
    assert told.chunk_stats.count == sum(one.chunks for one in told.files)
    assert told.stage_timings["parser"] > 0
    assert set(told.stage_timings) == {"source", "parser", "chunker", "embedder"}


async def test_the_same_seed_tells_the_same(tmp_path: Path) -> None:
    site = Site({page(f"{number}.md"): f"# Number {number}" for number in range(30)})
    async with library(tmp_path) as bench:
        bench.library._connectors = {"web": site}
        one, two = [await bench.library.dry_run(REQUEST, from_template(), sample_count=5, seed=3) for _ in range(2)]
        other = await bench.library.dry_run(REQUEST, from_template(), sample_count=5, seed=4)
    assert (one.files_found, one.files_tested) == (30, 5)
    assert [file.source for file in one.files] == [file.source for file in two.files]
    assert [file.source for file in one.files] != [file.source for file in other.files]
    assert all(file.status == "ok" for file in one.files), "downloads of the sample are kept until they are tried"


async def test_what_cannot_be_fetched_fails_at_the_source(tmp_path: Path) -> None:
    site = Site({page("a.md"): "# A", page("b.md"): "# B"})
    site.missing = {page("b.md"): MissedDocument(page("b.md"), "b.md", ConnectorAuthError("HTTP status 403"))}
    async with library(tmp_path) as bench:
        bench.library._connectors = {"web": site}
        told = await bench.library.dry_run(REQUEST, from_template())
        (failed,) = [one for one in told.files if one.status == "failed"]
        assert (failed.stage, failed.error_code) == ("source", "ERR_CONNECTOR_AUTH")
        assert set(told.failure_categories) == {"not_allowed"}
        site.breaks_after, site.error = 0, ConnectorError("no such host")
        with pytest.raises(ConnectorError):
            await bench.library.dry_run(REQUEST, from_template())


def named(parser: str, file_types: tuple[FileType, ...], **options: Any) -> PipelineDAG:
    """The default pipeline with a parser of its own for some types."""
    own = PipelineNode(id="own", kind="parser", plugin=parser, file_types=file_types, options=options)
    return build_chain([*from_template().nodes, own])


@pytest.mark.row("S000-42")
async def test_excluded_files_and_unread_kinds_do_not_count_and_are_listed(tmp_path: Path) -> None:
    request = folder_of(
        tmp_path,
        a__md=b"# Apples\n\nApples are red.",
        script__py=b"def main() -> None:\n    print('text of any extension is read')\n",
        photo__png=b"\x89PNG\r\n\x1a\n\x00\x00",
        font__woff=b"wOFF\x00\x01\x00\x00",
        locked__pdf=encrypted_pdf(),
        broken__docx=b"PK\x03\x04 no archive",
    )
    (tmp_path / "docs" / "drafts").mkdir()
    (tmp_path / "docs" / "drafts" / "empty.txt").write_text("")
    pipeline = from_template(parameters={"exclude": ["*.PDF", "drafts/*", ".woff"]}).with_options(
        "source", left_out=["docx"]
    )
    async with library(tmp_path) as bench:
        told = await bench.library.dry_run(request, pipeline)
        report = await bench.library.ingest("local", "work", request, pipeline=pipeline)
    assert [one.name for one in told.files if one.status == "ok"] == ["a.md", "script.py"]
    assert (told.files_found, told.files_tested, told.success_rate, told.assessment) == (7, 2, 1.0, "ready")
    notes = [(one.severity, one.message) for one in told.uncertainties]
    assert [severity for severity, _ in notes] == ["info", "info"]
    assert notes[0][1].startswith("4 files (")
    assert notes[0][1].endswith("are left out, as the pipeline says")
    assert notes[1][1] == "1 file (.png 1) is of a kind that no parser reads"
    assert (report.read, report.left_out, [one.source for one in report.skipped]) == (2, 4, ["photo.png"])


@pytest.mark.parametrize(("template", "blocks"), [("scans", True), ("documents", False)])
async def test_ocr_that_is_asked_for_and_not_installed_blocks_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, blocks: bool
) -> None:
    monkeypatch.setattr(ocr, "list_installed_languages", frozenset)
    request = folder_of(tmp_path, a__pdf=pdf([Words("A page of words.")]))
    async with library(tmp_path) as bench:
        told = await bench.library.dry_run(request, from_template(template))
    blocking = [one.message for one in told.uncertainties if one.severity == "blocking"]
    assert bool(blocking) == blocks
    assert all("apt-get install tesseract-ocr tesseract-ocr-eng" in one for one in blocking)


@pytest.mark.row("S000-39", "S000-43")
@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        (from_template("documents").with_options("parser", file_bytes=100), "open files of"),
        (from_template("documents").with_options("parser", timeout_s=0.000001), "Give parser 60 s"),
    ],
)
async def test_a_recommended_change_was_tried_and_raises_the_rate(
    tmp_path: Path, pipeline: PipelineDAG, said: str
) -> None:
    text = b"# Apples\n\n" + b"Apples are red. " * 50
    request = folder_of(tmp_path, a__md=text, b__md=text + b"Pears.", t__csv=b"a,b\n" + b"1,2\n" * 200)
    async with library(tmp_path) as bench:
        before = await bench.library.dry_run(request, pipeline)
        assert before.success_rate < 1
        (fix,) = [one for one in before.recommended_fixes if said in one.description]
        assert "that failed are read then" in fix.description
        better = apply_diff(pipeline, fix.pipeline_diff)
        after = await bench.library.dry_run(request, better)
        assert after.success_rate > before.success_rate
        assert after.success_rate == 1.0
        assert said in before.summary


async def test_a_change_that_helps_nothing_is_not_recommended(tmp_path: Path) -> None:
    pipeline = named("python-docx", ("docx",))
    request = folder_of(tmp_path, a__docx=word(), empty__docx=b"PK\x03\x04 no archive")
    async with library(tmp_path) as bench:
        told = await bench.library.dry_run(request, pipeline)
    assert told.files_failed == 1
    assert told.recommended_fixes == ()


async def test_an_embedder_that_fails_is_told_and_fails_no_file(tmp_path: Path) -> None:
    class Down:
        async def embed(self, texts: Any) -> Embedded:
            raise EmbedderError("the endpoint cannot be reached", agent_id="embedder")

        async def aclose(self) -> None:
            """Nothing to close."""

    request = folder_of(tmp_path, a__md=b"# A")
    async with library(tmp_path, embedder=Down()) as bench:
        told = await bench.library.dry_run(request, from_template())
    assert told.assessment == "ready"
    assert [one.message for one in told.uncertainties] == [
        "passages would have no vectors: the endpoint cannot be reached"
    ]


async def test_a_source_without_files_is_not_ready(tmp_path: Path) -> None:
    async with library(tmp_path) as bench:
        told = await bench.library.dry_run(folder_of(tmp_path), from_template())
    assert (told.assessment, told.files_tested, told.success_rate) == ("blocking_issues", 0, 0.0)
    assert told.summary.startswith("No files")
