"""From two tables to a collection that is searched: the indexer on real stores, and the three commands."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import BadRequestError, ConflictError, EmbedderError, StoreFullError
from agent.core.settings.loading import load_settings
from agent.llm.embedder import Embedded, Embedder, LocalEmbedder
from agent.tools import ToolContext
from gateway.bootstrap import build_gateway
from gateway.features.documents.doors.collections import _search_everywhere
from gateway.features.documents.engine.ingest.collection_lock import lock_collection
from gateway.features.documents.engine.ingest.corpus import CorpusDocument
from gateway.features.documents.engine.ingest.corpus_index import CorpusIndexer
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.models import MemoryQuery
from gateway.features.documents.parts import get_documents
from gateway.features.incident.tools.issues import SearchPreviousIssuesOutput
from tests.support.engine import Bench, engine_bench
from tests.support.faulty import disturbed
from tests.support.postgres import fresh_database
from tests.support.processes import start


def corpus(folder: Path, *documents: tuple[str, str], name: str = "corpus.jsonl") -> Path:
    path = folder / name
    made = [CorpusDocument(doc_id=key, source="jira", text=text, metadata={"title": key}) for key, text in documents]
    path.write_text("".join(f"{document.to_json_line()}\n" for document in made))
    return path


@asynccontextmanager
async def indexing(folder: Path, embedder: Embedder | None = None) -> AsyncIterator[tuple[Bench, CorpusIndexer]]:
    async with engine_bench(folder / "data", None, embedder=embedder) as bench:
        yield bench, CorpusIndexer(bench.library.resources)


async def search_texts(bench: Bench, words: str) -> list[str]:
    query = MemoryQuery(query_text=words, top_k=20, min_relevance_score=0)
    return [one.content for one in (await bench.library.search("local", "issues", query)).results]


@pytest.mark.row("S004-49")
async def test_documents_are_cut_into_windows_of_900_with_120_shared(tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(400))
    async with indexing(tmp_path) as (bench, indexer):
        report = await indexer.build("local", "issues", [corpus(tmp_path, ("A-1", text))])
        (document,) = await bench.library.list_documents("local", "issues")
        passages = await bench.library._lexical.get_passages("issues", document.chunk_ids, owner="local")
        pieces = [passages[chunk].passage for chunk in document.chunk_ids]
        assert report.chunks == len(pieces) == -(-(len(text) - 120) // 780)
        starts = [piece.metadata["start"] for piece in pieces]
        assert all(abs(int(str(at)) - 780 * number) <= 1 for number, at in enumerate(starts))
        for piece in pieces:
            start, end = int(str(piece.metadata["start"])), int(str(piece.metadata["end"]))
            assert text[start:end] == piece.text
            assert len(piece.text) <= 900


async def test_building_again_changes_only_what_has_changed(tmp_path: Path) -> None:
    async with indexing(tmp_path) as (bench, indexer):
        first = corpus(tmp_path, ("A-1", "old words"), ("A-2", "other words"), ("A-3", "gone words"))
        assert (await indexer.build("local", "issues", [first])).added == 3
        second = corpus(tmp_path, ("A-1", "new words"), ("A-2", "other words"), ("A-4", "more words"))
        report = await indexer.build("local", "issues", [second])
        assert (report.added, report.changed, report.unchanged, report.removed, report.absent) == (1, 1, 1, 0, 1)
        assert sorted(await search_texts(bench, "words")) == ["gone words", "more words", "new words", "other words"]
        report = await indexer.build("local", "issues", [second], prune=True)
        assert (report.unchanged, report.removed, report.absent) == (3, 1, 0)
        assert sorted(await search_texts(bench, "words")) == ["more words", "new words", "other words"]


async def test_files_of_the_collection_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("words of a file")
    async with indexing(tmp_path) as (bench, indexer):
        await bench.library.ingest("local", "issues", tmp_path / "notes")
        await indexer.build("local", "issues", [corpus(tmp_path, ("A-1", "words"))], prune=True)
        assert sorted(await search_texts(bench, "words")) == ["words", "words of a file"]
        await bench.library.ingest("local", "issues", tmp_path / "notes")
        assert len(await search_texts(bench, "words")) == 2


@pytest.mark.row("S004-47")
async def test_bad_lines_and_duplicates_are_told_and_nothing_is_pruned_then(tmp_path: Path) -> None:
    async with indexing(tmp_path) as (bench, indexer):
        await indexer.build("local", "issues", [corpus(tmp_path, ("A-0", "earlier words"))])
        path = corpus(tmp_path, ("A-1", "words"), ("A-2", "words"), ("A-1", "again words"))
        path.write_text(path.read_text().replace('{"doc_id":"A-2"', "no json"))
        report = await indexer.build("local", "issues", [path], prune=True)
        assert [str(fault).split(":")[0] for fault in report.faults.kept] == [
            "corpus.jsonl line 2",
            "corpus.jsonl line 3",
        ]
        assert (report.added, report.removed, report.absent) == (1, 0, 1)
        assert report.notes == ["nothing was removed, because some lines could not be read"]
        assert sorted(await search_texts(bench, "words")) == ["earlier words", "words"]


HOSTILE = (
    '{"doc_id":"a","source":"s","text":"words \\ud800 x"}',
    '{"doc_id":"b","source":"s","text":"words","metadata":{"t\\ud800":"\\ud800","n":null,"deep":{"a":[1,{"b":2}]}}}',
    '{"doc_id":"c","source":"s","text":"words\\u0000 z","metadata":{"title":"t\\u0000t","source":"evil","pages":"x"}}',
    '{"doc_id":"d","source":"s","text":"words","metadata":{"title":{"a":1},"severity":true,"match_service":"zz"}}',
    '{"doc_id":"e","source":"s","text":"words","metadata":{"x":NaN}}',
    '{"doc_id":"f","source":"s","text":"words","metadata":{"x":1e400}}',
    '{"doc_id":"g\\n","source":"s","text":"words"}',
)


async def hostile(folder: Path, database_url: str | None = None) -> None:
    (folder / "corpus.jsonl").write_text("\n".join(HOSTILE))
    configured = load_settings(_env_file=None, data_dir=folder / "data", skills_dirs=(), database_url=database_url)
    async with build_gateway(configured, recover=False, foreign="ignored") as stepgate:
        report = await get_documents(stepgate).corpus.build("local", "issues", [folder / "corpus.jsonl"])
        assert [fault.line for fault in report.faults.kept] == [5, 6, 7]
        assert (
            report.added,
            (await get_documents(stepgate).corpus.build("local", "issues", [folder / "corpus.jsonl"])).unchanged,
        ) == (4, 4)
        tool = stepgate.registry.get("search_previous_issues")
        found = await tool.call({"query": "words", "limit": 10}, ToolContext(run_id="", owner="local"))
        assert len(SearchPreviousIssuesOutput.model_validate(found.value).results) == 4


async def test_hostile_lines_are_stored_or_told_on_sqlite(tmp_path: Path) -> None:
    await hostile(tmp_path)


async def test_hostile_lines_are_stored_or_told_on_postgresql(tmp_path: Path) -> None:
    with fresh_database() as address:
        await hostile(tmp_path, database_url=address)


async def test_a_build_that_is_broken_off_is_taken_up(tmp_path: Path) -> None:
    documents = [(f"A-{number}", f"words of number {number}") for number in range(500)]
    path = corpus(tmp_path, *documents)

    def stop(_: str, done: int, __: int) -> None:
        if done:
            raise KeyboardInterrupt

    async with indexing(tmp_path) as (bench, indexer):
        with pytest.raises(KeyboardInterrupt):
            await indexer.build("local", "issues", [path], progress=stop)
        half = len(await bench.library.list_documents("local", "issues"))
        assert 0 < half < 500
        report = await indexer.build("local", "issues", [path])
        assert (report.unchanged, report.added) == (half, 500 - half)


async def test_a_write_that_fails_leaves_no_passage_behind(tmp_path: Path) -> None:
    async with indexing(tmp_path) as (bench, indexer):

        async def broken(*_: Any, **__: Any) -> None:
            raise StoreFullError("the disk is full")

        with disturbed(bench.library._lexical, "put", after=broken), pytest.raises(StoreFullError):
            await indexer.build("local", "issues", [corpus(tmp_path, ("A-1", "words that nobody may find"))])
        assert await bench.library._lexical.sample("issues", owner="local", limit=10) == []
        assert (await indexer.build("local", "issues", [corpus(tmp_path, ("A-1", "other words"))])).added == 1
        assert await search_texts(bench, "words") == ["other words"]


async def test_a_filter_is_asked_of_the_collections_that_have_its_field(tmp_path: Path) -> None:
    ticket = CorpusDocument(doc_id="A-1", source="jira", text="words of a ticket", metadata={"project": "media"})
    (tmp_path / "corpus.jsonl").write_text(ticket.to_json_line())
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("words of a note")
    configured = load_settings(_env_file=None, data_dir=tmp_path / "data", skills_dirs=())
    async with build_gateway(configured, recover=False, foreign="ignored") as stepgate:
        documents = get_documents(stepgate)
        await documents.corpus.build("local", "issues", [tmp_path / "corpus.jsonl"])
        await documents.library.ingest("local", "notes", tmp_path / "notes")
        query = MemoryQuery(query_text="words", min_relevance_score=0, filters={"project": "media"})
        output = await _search_everywhere(stepgate, "local", query, None)
        assert [one.content for one in output.results] == ["words of a ticket"]
        with pytest.raises(BadRequestError, match="colour"):
            await _search_everywhere(stepgate, "local", query.model_copy(update={"filters": {"colour": "red"}}), None)
        with pytest.raises(MemoryNoResultsError, match="nothing in 2 collections is relevant enough to 'zebra'"):
            await _search_everywhere(stepgate, "local", MemoryQuery(query_text="zebra"), None)


async def test_two_do_not_write_into_one_collection(tmp_path: Path) -> None:
    async with indexing(tmp_path) as (bench, indexer), lock_collection(bench.library._documents, "local", "issues"):
        with pytest.raises(ConflictError, match="another process is writing to 'issues'"):
            await indexer.build("local", "issues", [corpus(tmp_path, ("A-1", "words"))])


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\nb", "a/b", "..", "a\\b"])
async def test_a_collection_needs_a_name(tmp_path: Path, name: str) -> None:
    async with indexing(tmp_path) as (_, indexer):
        with pytest.raises(BadRequestError, match="1 to 200 printable characters"):
            await indexer.build("local", name, [corpus(tmp_path, ("A-1", "words"))])


async def test_a_file_that_is_not_there_is_told_and_makes_no_collection(tmp_path: Path) -> None:
    async with indexing(tmp_path) as (bench, indexer):
        with pytest.raises(BadRequestError, match="cannot be read: No such file"):
            await indexer.build("local", "issues", [tmp_path / "none.jsonl"])
        assert await bench.library.list_collections("local") == {}


class Moody:
    """An embedder that works only while it is well."""

    def __init__(self) -> None:
        self.well = False
        self.asked = 0
        self._inner = LocalEmbedder()

    async def embed(self, texts: Sequence[str]) -> Embedded:
        self.asked += 1
        if not self.well:
            raise EmbedderError("the embedder is away")
        return await self._inner.embed(texts)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def test_without_an_embedder_that_works_words_are_found_and_vectors_made_later(tmp_path: Path) -> None:
    embedder = Moody()
    path = corpus(tmp_path, *((f"A-{number}", f"words of number {number}") for number in range(450)))
    async with indexing(tmp_path, embedder) as (bench, indexer):
        report = await indexer.build("local", "issues", [path])
        assert (report.added, report.notes) == (450, ["no vectors: the embedder is away"])
        assert embedder.asked == 1
        assert len(await search_texts(bench, "words")) == 20
        embedder.well = True
        report = await indexer.build("local", "issues", [path])
        assert (report.changed, report.notes) == (450, [])
        assert (await indexer.build("local", "issues", [path])).unchanged == 450


EXAMPLE = Path(__file__).parents[2] / "config" / "examples"


def stepgate(folder: Path, *words: str | Path, settings: dict[str, str] | None = None) -> tuple[int, str]:
    environment = {
        "AGENT_DATA_DIR": str(folder / "data"),
        "AGENT_SKILLS_DIRS": "none",
        "COLUMNS": "200",
        **(settings or {}),
    }
    process = start([sys.executable, "-m", "gateway.cli", *map(str, words)], environment=environment)
    return process.wait(90), "\n".join(process.output)


@pytest.mark.row("S004-48", "S004-50")
def test_the_three_commands_find_the_profile_picture(tmp_path: Path) -> None:
    made = []
    for name in ("tickets", "incidents"):
        made.append(tmp_path / f"{name}.jsonl")
        mapping, table = EXAMPLE / "mappings" / f"{name}.yaml", EXAMPLE / "company" / f"{name}.csv"
        code, output = stepgate(tmp_path, "corpus", "prepare", mapping, table, "-o", made[-1])
        assert code == 0, output
    assert "18 documents of 58 rows, 40 replaced by later versions, 0 left out" in output
    code, output = stepgate(tmp_path, "corpus", "build", *made, "--collection", "issues")
    assert code == 0, output
    assert "issues: 58 added, 0 changed, 0 unchanged, 0 removed; 58 passages" in output
    code, output = stepgate(tmp_path, "corpus", "build", *made)
    assert (code, "0 added, 0 changed, 58 unchanged" in output) == (0, True)
    asked = ("corpus", "query", "--collection", "issues", "profile picture errors P1 incident")
    code, output = stepgate(tmp_path, *asked)
    assert code == 0, output
    assert output.splitlines()[0].startswith("1. MED-101")
    code, output = stepgate(tmp_path, *asked, "--service", "profile-media-api", "--severity", "SEV1", "--limit", "1")
    assert (code, "matches the service and the severity asked for" in output) == (0, True)


def test_the_example_in_one_command_and_its_answer(tmp_path: Path) -> None:
    code, output = stepgate(tmp_path, "corpus", "example", "--folder", tmp_path / "made")
    assert code == 0, output
    assert output.startswith("The example company goes into the collections example-company and example-issues")
    assert "example-company: 13 documents read" in output
    assert "unless its `collections` are" not in output
    assert (tmp_path / "made" / "incidents.jsonl").is_file()
    code, output = stepgate(tmp_path, "corpus", "example")
    assert (code, "0 added, 0 changed, 58 unchanged" in output) == (0, True)
    prompt = "P1 incident: user profile picture errors causing latency and failures."
    code, output = stepgate(tmp_path, "ask", "--room", "incident", prompt)
    assert code == 0, output
    assert "Probable causes" in output
    assert "INC0010042" in output


def test_the_example_leaves_a_companys_own_documents_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "own.md").write_text("# Our own policy\n\nWe page nobody at night.\n")
    for name in ("company", "issues"):
        assert stepgate(tmp_path, "ingest", tmp_path / "notes", "--collection", name)[0] == 0
    code, output = stepgate(tmp_path, "corpus", "example")
    assert (code, "    collections: [example-company, example-issues]" in output) == (0, True), output
    code, output = stepgate(tmp_path, "collections", "list")
    assert {name for name in ("company", "issues", "example-company", "example-issues") if f"{name} " in output} == {
        "company", "issues", "example-company", "example-issues",
    }, output  # fmt: skip
    code, output = stepgate(tmp_path, "corpus", "example", "--remove")
    assert code == 0
    assert "example-company: removed, with 53 documents" in output
    assert "example-issues: removed, with 58 documents" in output
    _, output = stepgate(tmp_path, "collections", "list")
    assert "example-" not in output
    assert {"company", "issues"} <= set(output.split()), output
    assert "there is no such collection" in stepgate(tmp_path, "corpus", "example", "--remove")[1]


def test_what_goes_wrong_is_one_clear_line_and_an_exit_code(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("key,summary\nA-1\n")
    (tmp_path / "mapping.yaml").write_text("source: s\ndoc_id: '{key}'\ntext: ['{summary}']\n")
    code, output = stepgate(
        tmp_path, "corpus", "prepare", tmp_path / "mapping.yaml", tmp_path / "bad.csv", "-o", tmp_path / "c"
    )
    assert code == 1
    assert "no row became a document: nothing was written" in output
    assert "left out: bad.csv line 2: 1 cell where the header has 2" in output
    (tmp_path / "empty.jsonl").touch()
    code, output = stepgate(tmp_path, "corpus", "build", tmp_path / "empty.jsonl")
    assert code == 1
    assert "it contains no documents" in output
    code, output = stepgate(tmp_path, "corpus", "prepare", tmp_path / "none.yaml", tmp_path / "bad.csv")
    assert code == 1
    assert output.strip().startswith(f"stepgate: {tmp_path / 'none.yaml'}: cannot be read")
    code, output = stepgate(tmp_path, "corpus", "query", "words", "--collection", "nowhere")
    assert code == 1
    assert "there is no collection 'nowhere'" in output
    assert "Traceback" not in output
