"""Vectors made anew after the embedder was changed: what serves until then, and what an interruption costs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.core.errors import BadRequestError, EmbedderError
from agent.core.vector_space import VectorSpace
from agent.llm.embedder import Embedded
from agent.text.terms import extract_terms
from gateway.features.documents.engine.ingest import reindex
from gateway.features.documents.engine.ingest.job_runner import IngestJobs
from gateway.features.documents.engine.ingest.jobs import JobRequest, JobStore
from gateway.features.documents.engine.search.errors import MemoryNoResultsError
from gateway.features.documents.engine.search.lexical import IndexedPassage
from gateway.features.documents.engine.search.models import MemoryOutput, MemoryQuery
from gateway.features.documents.engine.search.naming import make_vector_set_name
from gateway.features.documents.engine.search.tantivy_index import TantivyIndex
from tests.integration.conftest import Serve
from tests.integration.test_ingestion_doors import HANDBOOK, client_of, done, files, post
from tests.support.engine import Bench
from tests.support.reading import Letters, consistent, folder_of, library

BEFORE, AFTER, THIRD = VectorSpace("letters", 8), VectorSpace("vowels", 8), VectorSpace("runes", 8)
REMEDY = "`stepgate collections reindex work`"


class Changing(Letters):
    """An embedder whose model is changed, that counts its texts, and ends after so many calls."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.calls_left = 1_000

    async def embed(self, texts: Sequence[str]) -> Embedded:
        self.down = self.calls_left <= 0
        self.calls_left -= 1
        made = await super().embed(texts)
        self.texts += texts
        return made


async def search_all(bench: Bench) -> MemoryOutput:
    query = MemoryQuery(query_text="this is note 003", min_relevance_score=0.1)
    return await bench.library.search("local", "work", query, mode="hybrid")


async def mode(bench: Bench) -> str:
    return (await search_all(bench)).results[0].retrieval_mode


async def entries(bench: Bench, name: str) -> int:
    return len(await bench.library._vectors.list_items(name, owner="local", limit=1_000))


async def read_in(bench: Bench, tmp_path: Path, count: int = 6) -> None:
    await bench.library.ingest("local", "work", folder_of(tmp_path, count))


async def test_a_changed_embedder_is_told_and_its_vectors_are_made_from_the_stored_passages(tmp_path: Path) -> None:
    letters = Changing()
    async with library(tmp_path, None, letters) as bench:
        await read_in(bench, tmp_path)
        assert await mode(bench) == "hybrid"
        letters.space = AFTER
        told = await search_all(bench)
        assert told.results[0].retrieval_mode == "lexical"
        assert f"made by {BEFORE}, the embedder is {AFTER}; set it back, or rebuild them with {REMEDY}" in told.note
        for path in (tmp_path / "docs").iterdir():
            path.unlink()  # the passages are in the store: no source is needed
        report = await bench.library.reindex("local", "work")
        assert (report.documents, report.chunks, report.embedder) == (6, 6, str(AFTER))
        after = await search_all(bench)
        assert (after.results[0].retrieval_mode, after.note) == ("hybrid", "")
        assert await entries(bench, make_vector_set_name("local", "work")) == 0, "the old set is gone"
        assert {one.embedder for one in await bench.library.list_documents("local", "work")} == {str(AFTER)}
        assert (await bench.library.get_collection("local", "work")).embedder == str(AFTER)


async def test_the_old_vectors_serve_until_the_end_and_an_interruption_costs_what_was_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindex, "BATCH_PASSAGES", 2)
    letters = Changing()
    async with library(tmp_path, None, letters) as bench:
        await read_in(bench, tmp_path)
        letters.space, letters.calls_left = AFTER, 3  # the probe and two batches
        with pytest.raises(EmbedderError):
            await bench.library.reindex("local", "work")
        letters.calls_left = 1_000
        assert f"which is under way ({REMEDY} continues it)" in (await search_all(bench)).note
        letters.space = BEFORE
        assert await mode(bench) == "hybrid", "whoever has the old embedder still, has the old vectors"
        letters.space = AFTER
        gone = (await bench.library.list_documents("local", "work"))[0]
        await bench.library.remove_document("local", gone.document_id)
        letters.texts.clear()
        report = await bench.library.reindex("local", "work")
        assert (report.documents, report.chunks) == (5, 5)
        assert len([text for text in letters.texts if "note" in text]) == 2, "four were made before"
        assert await mode(bench) == "hybrid"
        serving = make_vector_set_name("local", "work", str(AFTER))
        assert await entries(bench, serving) == 5, "what was removed meanwhile is not in the new set either"
        await bench.library.drop_collection("local", "work")
        assert await entries(bench, serving) == 0


async def test_a_set_begun_for_a_third_embedder_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindex, "BATCH_PASSAGES", 2)
    letters = Changing()
    async with library(tmp_path, None, letters) as bench:
        await read_in(bench, tmp_path)
        letters.space, letters.calls_left = AFTER, 2
        with pytest.raises(EmbedderError):
            await bench.library.reindex("local", "work")
        assert await entries(bench, make_vector_set_name("local", "work", str(AFTER))) == 2
        letters.space, letters.calls_left = THIRD, 1_000
        await bench.library.reindex("local", "work")
        assert await entries(bench, make_vector_set_name("local", "work", str(AFTER))) == 0
        assert await mode(bench) == "hybrid"


async def test_documents_read_while_the_embedder_was_away_get_their_vectors(tmp_path: Path) -> None:
    letters = Changing()
    async with library(tmp_path, None, letters) as bench:
        letters.calls_left = 0
        await read_in(bench, tmp_path)
        letters.calls_left = 1_000
        assert (
            f"no passage of 'work' has a vector yet, so only its words were searched; rebuild them with {REMEDY}"
            in (await search_all(bench)).note
        )
        assert (await bench.library.reindex("local", "work")).chunks == 6
        assert await mode(bench) == "hybrid"
        assert await consistent(bench)


async def test_without_an_embedder_there_is_nothing_to_make(tmp_path: Path) -> None:
    async with library(tmp_path) as bench:
        await read_in(bench, tmp_path)
        with pytest.raises(BadRequestError, match="AGENT_EMBEDDER_MODEL_DIR"):
            await bench.library.reindex("local", "work")


async def test_words_indexed_by_an_earlier_release_are_renewed_without_an_embedder_too(tmp_path: Path) -> None:
    docs = folder_of(tmp_path, 2)
    (docs / "resor.md").write_text("Hotellkostnaden ers\u00e4tts, och kvittot l\u00e4mnas till chefen.", "utf-8")
    async with library(tmp_path) as bench:
        await bench.library.ingest("local", "work", docs)
        index = bench.library._lexical
        assert isinstance(index, TantivyIndex)
        chunk_ids = [
            one for document in await bench.library.list_documents("local", "work") for one in document.chunk_ids
        ]
        kept = await index.get_passages("work", chunk_ids, owner="local")
        old = [
            IndexedPassage(p, tuple(extract_terms(p.title)), tuple(extract_terms(p.text)))
            for p in (one.passage for one in kept.values())
        ]
        await index._rows.put("local", "work", old)
        asked = MemoryQuery(query_text="hotellkostnader", min_relevance_score=0.1)
        with pytest.raises(MemoryNoResultsError):
            await bench.library.search("local", "work", asked)
        report = await bench.library.reindex("local", "work")
        assert (report.words, report.chunks, report.embedder) == (1, 0, "")
        assert [one.metadata["source"] for one in (await bench.library.search("local", "work", asked)).results] == [
            "resor.md"
        ]
        assert await consistent(bench)


async def test_as_a_job_it_is_followed_like_any_other(tmp_path: Path) -> None:
    letters = Changing()
    async with library(tmp_path, None, letters) as bench:
        await read_in(bench, tmp_path)
        letters.space = AFTER
        jobs = IngestJobs(JobStore(bench.library._documents._statements, bench.library._clock), bench.library, [])
        jobs.start()
        try:
            job = await jobs.submit("local", "work", JobRequest())
            ended = await jobs.wait("local", job.id, 30)
        finally:
            await jobs.aclose()
        assert ended.status == "done", ended
        assert ended.outcome.report is not None
        assert (ended.outcome.report["chunks"], ended.outcome.report["embedder"]) == (6, str(AFTER))
        assert await mode(bench) == "hybrid"


async def test_the_door_begins_a_job_or_says_why_not(serve: Serve, tmp_path: Path) -> None:
    files(tmp_path, handbook__md=HANDBOOK)
    async with serve() as url, client_of(url) as client:
        _, job = await post(client, "/v1/collections/staff/ingest", source_type="local", source_identifier="docs")
        await done(client, job)
        assert (await post(client, "/v1/collections/nowhere/reindex"))[0] == 404
        status, job = await post(client, "/v1/collections/staff/reindex")
        assert (status, job["source"]) == (202, None)
        failure = (await done(client, job))["failure"]
        assert "no embedder is set" in failure["message"]
