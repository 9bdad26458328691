"""An embedder behind the gateway: how often it is asked, which vectors are compared, how two rankings are fused."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate

TOPICS = ("dog pet animal fido", "boat harbour rowing sea", "money budget crowns cost", "sauna steam towel warm")
SECTIONS = {
    "Pets": "A dog may come along if it is kept on a lead, and every animal gets water at the door. ",
    "Boats": "A boat is rented at the harbour for a day, and rowing at sea needs two people with experience. ",
    "Money": "The budget of a trip is paid in crowns, and what it may cost is said before it begins. ",
    "Sauna": "The sauna gives off steam from seven in the evening, and each guest brings a towel to sit on. ",
}


class TopicServer:
    """An endpoint for embeddings whose vectors count words of topics. `calls` are the texts of each request."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        texts: list[str] = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.calls.append(texts)
        data = [{"index": index, "embedding": _make_vector(text)} for index, text in enumerate(texts)]
        return web.json_response({"data": data, "model": body["model"]})

    @property
    def texts(self) -> list[str]:
        """All texts, in order."""
        return [text for call in self.calls for text in call]


def _make_vector(text: str) -> list[float]:
    words = re.findall(r"\w+", text.lower())
    return [0.05 + sum(word in topic.split() for word in words) for topic in TOPICS]


@asynccontextmanager
async def topic_server() -> AsyncIterator[TopicServer]:
    """The endpoint on a free port."""
    server = TopicServer()
    app = web.Application()
    app.router.add_post("/v1/embeddings", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client_of(serve: Serve, server: TopicServer, model: str = "tiny") -> AsyncIterator[httpx.AsyncClient]:
    options = {"embedder_url": server.url, "embedder_model": model}
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def ask(client: httpx.AsyncClient, prompt: str, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/agent", json={"prompt": prompt, **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def upload(client: httpx.AsyncClient, name: str, text: str) -> dict[str, Any]:
    sent = await client.post("/v1/documents", files={"file": (name, text.encode())}, data={"collection": "club"})
    assert sent.status_code in (200, 201), sent.text
    document: dict[str, Any] = sent.json()
    return document


def write_handbook(**changed: str) -> str:
    """A handbook whose sections are a passage each."""
    return "\n\n".join(f"# {title}\n\n{text * 12}" for title, text in {**SECTIONS, **changed}.items())


@pytest.mark.row("S001-07", "S001-08")
async def test_the_embedder_is_asked_once_for_what_is_saved_and_once_for_what_is_sought(serve: Serve) -> None:
    async with topic_server() as server, client_of(serve, server) as client:
        await ask(client, "Remember that Fido lives with us", conversation_id="one")
        saved = "Fido lives with us"
        assert sum(saved in call for call in server.calls) == 1
        server.calls.clear()
        question = "what do you know about my pet?"
        calls = [{"tool": "memory_search", "args": {"query": question}}]
        found = await ask(client, "Look it up", conversation_id="two", metadata={"tool_calls": calls})
        assert saved in found["response"], "found by meaning: no word is the same"
        assert sum(question in call for call in server.calls) >= 1
        assert saved not in server.texts, "its vector is there already"


@pytest.mark.row("S001-10")
async def test_vectors_of_another_embedder_are_never_compared(serve: Serve) -> None:
    question = "what do you know about my pet?"
    async with topic_server() as server:
        async with client_of(serve, server, "old") as client:
            await ask(client, "Remember that Fido lives with us", conversation_id="one")
            await upload(client, "handbook.md", write_handbook())
        async with client_of(serve, server, "new") as client:
            recalled = await ask(client, question, conversation_id="two")
            assert "Fido" not in recalled["response"], "nothing is found by the vectors of the other one"
            assert "memory reindex" in str(recalled["metadata"]["runtime"]["embedder"]), recalled["metadata"]["runtime"]
            body = {"query_text": "which animal", "collection": "club", "min_relevance_score": 0.05, "mode": "vector"}
            searched = (await client.post("/v1/search", json=body)).json()
            assert "reindex" in str(searched), searched
            assert all(one["retrieval_mode"] == "lexical" for one in searched.get("results", ()))
            job = (await client.post("/v1/collections/club/reindex", json={})).json()
            await client.get(f"/v1/jobs/{job['id']}", params={"wait_s": 30})
            after = (await client.post("/v1/search", json=body)).json()
            assert after["results"][0]["retrieval_mode"] == "vector", after


async def test_memories_get_new_vectors_on_the_command_line(serve: Serve, tmp_path: Path) -> None:
    async with topic_server() as server:
        async with client_of(serve, server, "old") as client:
            await ask(client, "Remember that Fido lives with us", conversation_id="one")
        words, settings = ("memory", "reindex"), {"embedder_url": server.url, "embedder_model": "new"}
        code, told = await asyncio.to_thread(stepgate, tmp_path, *words, **settings)
    assert code == 0, told
    assert "2 memories have vectors by" in told, "the fact, and the turn itself"


async def ingest(client: httpx.AsyncClient) -> list[str]:
    """The passages of the one document, once its folder has been read."""
    body = {"source_type": "local", "source_identifier": "docs"}
    job = (await client.post("/v1/collections/club/ingest", json=body)).json()
    end = (await client.get(f"/v1/jobs/{job['id']}", params={"wait_s": 30})).json()
    assert end["status"] == "done", end
    (document,) = (await client.get("/v1/collections/club/documents")).json()["data"]
    found = (await client.get(f"/v1/documents/{document['document_id']}")).json()
    return [chunk["text"] for chunk in found["chunks"]]


@pytest.mark.row("S003-26")
async def test_passages_that_have_not_changed_are_not_embedded_again(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "data" / "files" / "docs" / "handbook.md"
    path.parent.mkdir(parents=True)
    path.write_text(write_handbook())
    async with topic_server() as server, client_of(serve, server) as client:
        first = await ingest(client)
        assert len(first) >= 2
        assert all(any(text in sent for sent in server.texts) for text in first)
        server.calls.clear()
        assert await ingest(client) == first
        assert server.calls == [], "nothing has changed"
        path.write_text(write_handbook(Sauna="The sauna is closed in summer, and the towels are washed. "))
        second = await ingest(client)
        changed = [text for text in second if text not in first]
        assert 0 < len(changed) < len(second)
        assert all(any(text in sent for sent in server.texts) for text in changed)
        kept = [text for text in second if text in first]
        assert not [text for text in kept if any(text in sent for sent in server.texts)]


@pytest.mark.row("S004-42")
async def test_two_rankings_are_fused_by_reciprocal_ranks_and_reranked_where_wanted(serve: Serve) -> None:
    texts = {
        "a.md": "The dog sleeps. Rowing is fun at the harbour with a boat.",
        "b.md": "An animal, a pet, a dog: Fido came by boat.",
        "c.md": "The budget of the harbour is a thousand crowns; a dog has no money.",
        "d.md": "A towel for the sauna.",
    }
    query = {"query_text": "dog at the harbour", "collection": "club", "min_relevance_score": 0.0, "top_k": 10}
    async with topic_server() as server, client_of(serve, server) as client:
        for name, text in texts.items():
            await upload(client, name, text)
        found = {
            mode: (await client.post("/v1/search", json={**query, "mode": mode})).json()["results"]
            for mode in ("hybrid", "hybrid_rerank", "lexical", "vector")
        }
    assert len(found["hybrid"]) >= 3
    for one in found["hybrid"]:
        scores = one["metadata"]["scores"]
        weights = {"lexical": 1.0, "vector": scores["vector_weight"]}
        ranks = {branch: scores[branch]["rank"] for branch in weights if branch in scores}
        by_hand = sum(weights[branch] / (60 + rank) for branch, rank in ranks.items() if rank is not None)
        assert scores["fused"] == pytest.approx(by_hand), one
        assert one["retrieval_mode"] == "hybrid"
    fused = [one["metadata"]["scores"]["fused"] for one in found["hybrid"]]
    assert fused == sorted(fused, reverse=True)
    assert any({"lexical", "vector"} <= set(one["metadata"]["scores"]) for one in found["hybrid"])
    for mode in ("hybrid_rerank", "lexical", "vector"):
        assert {one["retrieval_mode"] for one in found[mode]} == {mode}
