"""The contract of searches: defaults, filters asked of the index, and how much there is beyond what is shown."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core import events as ev
from agent.core.errors import BadRequestError
from gateway.features.documents.engine.search.models import MemoryQuery
from tests.integration.conftest import Serve
from tests.support.reading import library, read
from tests.support.sources import Site, page

QUESTION = "note about apples"


def docs(tmp_path: Path, count: int) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nA note about apples, written as number {number}.")
    return folder


@pytest.mark.row("S003-23")
async def test_the_defaults_are_promised_in_the_api(serve: Serve) -> None:
    query = MemoryQuery(query_text="x")
    assert (query.top_k, query.min_relevance_score, query.filters) == (5, 0.7, None)
    async with serve() as url, httpx.AsyncClient() as client:
        schemas = (await client.get(f"{url}/openapi.json")).json()["components"]["schemas"]
    body = schemas["MemoryQuery"]["properties"]
    assert (body["top_k"]["default"], body["min_relevance_score"]["default"]) == (5, 0.7)
    assert schemas["MemoryQuery"]["required"] == ["query_text"]
    assert {"file_path", "file_type", "ingestion_source", "force_ocr"} == set(schemas["ParserInput"]["properties"])
    assert {"content", "check_type", "metadata"} <= set(schemas["GuardrailsInput"]["properties"])
    assert schemas["GuardrailsInput"]["required"] == ["content", "check_type"]
    assert schemas["NewTask"]["required"] == ["prompt"]


@pytest.mark.row("S003-22", "S003-23", "S003-25")
async def test_over_http_a_query_returns_chunks_with_their_scores_and_sources(serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "files"
    folder.mkdir(parents=True)
    (folder / "travel.md").write_text("# Travel\n\nThe travel budget is 4,000 euros a year. Anna books the trips.")
    (folder / "budget.md").write_text("# Kitchen\n\nThe budget of the kitchen is small.")
    (folder / "rowing.md").write_text("# Rowing\n\nBoats are at the pier.")
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        source = {"source_type": "local", "source_identifier": "."}
        job = (await client.post("/v1/collections/notes/ingest", json={**source, "recursive": True})).json()["id"]
        ended = (await client.get(f"/v1/jobs/{job}", params={"wait_s": 30})).json()
        assert (ended["status"], ended["report"]["read"]) == ("done", 3), ended
        documents = {one["name"]: one for one in (await client.get("/v1/documents")).json()["data"]}
        found = (await client.post("/v1/search", json={"query_text": "travel budget"})).json()
        wide = {"query_text": "travel budget", "min_relevance_score": 0.0}
        both = (await client.post("/v1/search", json=wide)).json()
        first = (await client.post("/v1/search", json={**wide, "top_k": 1})).json()
        kitchen = {"document_id": documents["budget.md"]["document_id"]}
        filtered = (await client.post("/v1/search", json={**wide, "filters": kitchen})).json()
        kept = (await client.get(f"/v1/documents/{documents['travel.md']['document_id']}")).json()
    (best,) = found["results"]
    assert set(best) >= {"chunk_id", "content", "source_id", "source_url", "relevance_score", "metadata"}
    assert "4,000 euros" in best["content"]
    assert best["source_id"] == documents["travel.md"]["document_id"]
    assert best["chunk_id"] in [chunk["chunk_id"] for chunk in kept["chunks"]]
    assert best["metadata"]["source"] == "travel.md"
    assert 0.7 <= best["relevance_score"] <= 1
    assert found["total_found"] == 1
    assert (len(first["results"]), first["total_found"]) == (1, 2), "what is found and what is shown are counted apart"
    assert [one["metadata"]["source"] for one in filtered["results"]] == ["budget.md"]
    scores = [one["relevance_score"] for one in both["results"]]
    assert [one["metadata"]["source"] for one in both["results"]] == ["travel.md", "budget.md"], "no word of rowing"
    assert scores[0] > scores[1] > 0


@pytest.mark.row("S003-24")
async def test_a_filter_is_asked_of_the_index_and_not_of_the_first_results(tmp_path: Path) -> None:
    site = Site({page("web.md"): "# Fruit\n\nThe site has one note, about apples and pears and much else besides."})
    async with library(tmp_path, site) as bench:
        await bench.library.ingest("local", "work", docs(tmp_path, 8))
        await read(bench)
        query = MemoryQuery(query_text=QUESTION, top_k=1, min_relevance_score=0.0)
        best = (await bench.library.search("local", "work", query)).results[0]
        assert best.metadata["source_type"] == "local", "what is looked for is not among the first"
        only = query.model_copy(update={"filters": {"source_type": "web"}})
        found = await bench.library.search("local", "work", only)
        assert [one.metadata["source_type"] for one in found.results] == ["web"]
        with pytest.raises(BadRequestError, match="colour"):
            await bench.library.search("local", "work", query.model_copy(update={"filters": {"colour": "red"}}))


@pytest.mark.row("S003-24")
async def test_the_tool_takes_filters_and_names_a_field_nobody_has(tmp_path: Path) -> None:
    site = Site({page("web.md"): "# Fruit\n\nThe site has one note, about apples."})
    async with library(tmp_path, site) as bench:
        await bench.library.ingest("local", "work", docs(tmp_path, 3))
        await bench.library.ingest("local", "other", tmp_path / "docs")
        await read(bench)

        async def called(filters: Any) -> ev.ToolReturned:
            args = {"query": QUESTION, "filters": filters, "min_relevance_score": 0}
            events = await bench.events("go", metadata={"tool_calls": [{"tool": "search_knowledge", "args": args}]})
            return next(event.body for event in events if isinstance(event.body, ev.ToolReturned))

        output: Any = (await called({"source_type": "web"})).output
        assert [(one["collection"], one["metadata"]["source_type"]) for one in output["results"]] == [("work", "web")]
        refused = await called({"colour": "red"})
        assert (refused.error_code, "colour" in str(refused.error)) == ("ERR_TOOL_INPUT", True)


@pytest.mark.row("S003-25")
async def test_more_is_found_than_is_shown_and_that_is_counted(tmp_path: Path) -> None:
    async with library(tmp_path) as bench:
        await bench.library.ingest("local", "work", docs(tmp_path, 8))
        found = await bench.library.search(
            "local", "work", MemoryQuery(query_text=QUESTION, top_k=2, min_relevance_score=0.1)
        )
    assert (len(found.results), found.total_found) == (2, 8)
    assert json.loads(found.model_dump_json())["total_found"] == 8
