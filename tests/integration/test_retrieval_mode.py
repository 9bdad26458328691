"""How documents are searched: by the request, else the room, else the settings; and without a store of vectors."""

from pathlib import Path
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.models import Room
from agent.storage.vectors.qdrant import QdrantIndex
from gateway.features.documents.engine.search.models import MemoryQuery
from gateway.features.documents.engine.search.retriever import Retriever
from tests.support.engine import Bench, engine_bench
from tests.support.reading import Letters, folder_of, library

QUERY = MemoryQuery(query_text="this is note 2", min_relevance_score=0.1)


async def mode_of(bench: Bench, **args: Any) -> str:
    """The mode a run's search was carried out in."""
    calls = [{"tool": "search_knowledge", "args": {"query": "this is note 2", "min_relevance_score": 0.1, **args}}]
    events = await bench.events("go", metadata={"tool_calls": calls})
    (returned,) = [event.body for event in events if isinstance(event.body, ev.ToolReturned)]
    output: Any = returned.output
    return str(output["results"][0]["retrieval_mode"])


@pytest.mark.row("S004-43")
@pytest.mark.parametrize(
    ("room", "settings", "args", "mode"),
    [
        (None, {}, {}, "hybrid_rerank"),
        (None, {"retrieval_mode": "hybrid"}, {}, "hybrid"),
        ("vector", {"retrieval_mode": "hybrid"}, {}, "vector"),
        ("vector", {"retrieval_mode": "hybrid"}, {"mode": "lexical"}, "lexical"),
    ],
)
async def test_the_request_says_how_then_the_room_then_the_settings(
    tmp_path: Path, room: Any, settings: Any, args: Any, mode: str
) -> None:
    chosen = Room(id="test", retrieval_mode=room)
    async with engine_bench(tmp_path / "data", None, room=chosen, embedder=Letters(), **settings) as bench:
        await bench.library.ingest("local", "work", folder_of(tmp_path, 3))
        assert await mode_of(bench, **args) == mode


@pytest.mark.row("S004-43", "S004-44")
@pytest.mark.parametrize("mode", ["vector", "hybrid", "hybrid_rerank"])
async def test_with_the_store_of_vectors_stopped_the_words_are_searched_and_that_is_said(
    tmp_path: Path, mode: Any
) -> None:
    stopped = QdrantIndex(url="http://127.0.0.1:9", api_key=None, path=":memory:")
    async with library(tmp_path, None, Letters()) as bench:
        await bench.library.ingest("local", "work", folder_of(tmp_path, 3))
        bench.library._retriever = Retriever(bench.library._lexical, stopped, Letters())
        found = await bench.library.search("local", "work", QUERY, mode=mode)
        await stopped.close()
    assert {one.retrieval_mode for one in found.results} == {"lexical"}
    assert found.results[0].content.endswith("This is note 2.")
    assert "passages were found by their words alone: " in found.note
