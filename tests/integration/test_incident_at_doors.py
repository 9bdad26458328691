"""The incident tools and the corpus, as commands and over HTTP: on the example company, and on tickets of a test."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.integration.test_embedder_doors import topic_server

INCIDENT = "P1 incident: user profile picture errors causing latency and failures."
SEARCHES = ("search_incident_knowledge", "search_previous_issues")


@asynccontextmanager
async def client_of(serve: Serve, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def call(client: httpx.AsyncClient, tool: str, **args: Any) -> dict[str, Any]:
    """The result of a call in the room of incidents."""
    body = {"prompt": "", "room": "incident", "metadata": {"tool_calls": [{"tool": tool, "args": args}]}}
    answer = await client.post("/v1/agent", json=body)
    assert answer.status_code == 200, answer.text
    (result,) = [one for one in answer.json()["metadata"]["tool_results"] if one["tool"] == tool]
    found: dict[str, Any] = result
    return found


def write_corpus(folder: Path, *rows: tuple[str, str, dict[str, str]]) -> Path:
    """JSON lines of id, text and metadata."""
    path = folder / "tickets.jsonl"
    lines = [{"doc_id": key, "source": "jira", "text": text, "metadata": said} for key, text, said in rows]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def load_example(folder: Path) -> None:
    """The example company, by the command that loads it."""
    code, output = stepgate(folder, "corpus", "example")
    assert code == 0, output


@pytest.mark.row("S004-22", "S004-46", "S004-45")
async def test_knowledge_is_searched_with_what_a_citation_needs(serve: Serve, tmp_path: Path) -> None:
    load_example(tmp_path)
    async with client_of(serve) as client:
        hits = (await call(client, "search_incident_knowledge", query=INCIDENT))["output"]["results"]
        other = (await call(client, "search_incident_knowledge", query="voucher refused"))["output"]["results"]
    assert len(hits) == 3, "three without a limit"
    for hit in hits:
        assert {"title", "snippet", "source_type", "source_id", "score", "why_selected", "chunk_id"} <= set(hit)
        assert hit["snippet"]
        assert hit["why_selected"]
        assert 0 <= hit["score"] <= 1
    assert "runbooks/profile-media.md" in {hit["source_id"] for hit in hits}
    assert any(hit["source_type"] in ("policy", "runbook") for hit in hits)
    assert {hit["source_id"] for hit in other} != {hit["source_id"] for hit in hits}


@pytest.mark.row("S004-23", "S004-41", "S004-46")
async def test_earlier_issues_come_once_each_by_relevance(serve: Serve, tmp_path: Path) -> None:
    load_example(tmp_path)
    async with client_of(serve) as client:
        output = (await call(client, "search_previous_issues", query="profile picture errors", limit=10))["output"]
    hits = output["results"]
    names = {
        "ticket",
        "summary",
        "relevance",
        "source",
        "doc_id",
        "chunk_id",
        "score",
        "retrieval_mode",
        "why_selected",
    }
    assert all(names <= set(hit) for hit in hits)
    tickets = [hit["ticket"] for hit in hits]
    assert len(set(tickets)) == len(tickets) == 10
    assert "MED-101" in tickets
    assert hits[0]["match"] == "strict", "every word of the query first"
    for kind in ("strict", "relaxed"):
        scores = [hit["relevance"] for hit in hits if hit["match"] == kind]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


@pytest.mark.row("S004-24")
async def test_every_line_of_a_brief_cites_what_was_found(serve: Serve, tmp_path: Path) -> None:
    load_example(tmp_path)
    async with client_of(serve) as client:
        brief = (await call(client, "build_incident_brief", query=INCIDENT))["output"]
    assert brief["summary"]
    assert 0 < brief["confidence"] < 1
    quotes = {one["id"]: " ".join(" ".join(one["quotes"]).split()) for one in brief["citations"]}
    lines = [*brief["probable_causes"], *brief["recommended_actions"]]
    assert lines
    for line in lines:
        (number,) = line["citations"]
        assert line["text"].split(": ", 1)[-1] in quotes[number], line
    for one in (*brief["similar_incidents"], brief["escalation_recommendation"]):
        assert one["citations"]
        assert set(one["citations"]) <= set(quotes)


@pytest.mark.row("S004-45")
@pytest.mark.parametrize("tool", SEARCHES)
async def test_a_search_returns_one_to_ten_results(serve: Serve, tmp_path: Path, tool: str) -> None:
    load_example(tmp_path)
    async with client_of(serve) as client:
        for limit in (11, -1, "three"):
            refused = await call(client, tool, query=INCIDENT, limit=limit)
            assert not refused["ok"], refused
            assert "limit" in str(refused["error"])
        assert len((await call(client, tool, query=INCIDENT, limit=1))["output"]["results"]) == 1
        assert 3 < len((await call(client, tool, query=INCIDENT, limit=10))["output"]["results"]) <= 10


@pytest.mark.row("S004-39", "S004-40")
async def test_filters_match_fields_or_text_and_are_given_up_in_their_order(serve: Serve, tmp_path: Path) -> None:
    path = write_corpus(
        tmp_path,
        ("a", "pictures are slow", {"ticket": "A-1", "service": "profile-media-api", "priority": "Critical"}),
        ("b", "pictures are slow", {"ticket": "A-2", "project": "MED", "priority": "2 - High"}),
        ("c", "pictures are slow behind media-cdn since P3 was said", {"ticket": "A-3"}),
        ("d", "pictures are slow, said purple", {"ticket": "A-4", "component": "Payments", "severity": "SEV2"}),
    )
    for collection in ("company", "issues"):
        code, output = stepgate(tmp_path, "corpus", "build", str(path), "--collection", collection)
        assert code == 0, output
    expected = {
        ("profile-media-api", "SEV1"): (["A-1"], "service+severity"),
        ("MED", ""): (["A-2"], "service"),
        ("media-cdn", ""): (["A-3"], "service"),
        ("", "SEV3"): (["A-3"], "severity"),
        ("payments", "SEV1"): (["A-4"], "service"),
        ("nobody", "SEV4"): (["A-1", "A-2", "A-3", "A-4"], "none"),
    }
    async with client_of(serve) as client:
        for (service, severity), (tickets, filters) in expected.items():
            args = {"query": "slow pictures", "service": service, "severity": severity, "limit": 10}
            output = (await call(client, "search_previous_issues", **args))["output"]
            asked = [one["ticket"] for one in output["results"] if "another severity" not in one["why_selected"]]
            assert (sorted(asked), output["filters"]) == (tickets, filters), args


@pytest.mark.row("S004-47")
def test_a_bad_line_of_a_corpus_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = write_corpus(tmp_path, ("A-1", "red words", {}), ("A-2", "x", {}), ("A-3", "blue words", {}))
    path.write_text(path.read_text().replace('{"doc_id": "A-2"', "no json"))
    _, output = stepgate(tmp_path, "corpus", "build", str(path), "--collection", "issues")
    assert "line 2" in output
    assert "issues: 2 added" in output
    code, output = stepgate(tmp_path, "corpus", "query", "--collection", "issues", "blue words")
    assert code == 0, output
    assert "A-3" in output.splitlines()[0]


@pytest.mark.row("S004-23", "S004-47")
async def test_a_ticket_without_a_title_has_the_summary_in_its_text(serve: Serve, tmp_path: Path) -> None:
    picture = "Project: WLC\nPriority: Minor\nSummary: User profile picture doesn't display\nDescription: errors"
    incident = "Incident: INC00123\nState: Resolved\nPriority: P1\nCategory: card payments"
    path = write_corpus(
        tmp_path,
        ("jira:JiraEcosystem:WLC-43", picture, {"issue_key": "WLC-43"}),
        ("incident:INC00123", incident, {"incident_number": "INC00123"}),
    )
    code, output = stepgate(tmp_path, "corpus", "build", str(path), "--collection", "issues")
    assert code == 0, output
    async with client_of(serve) as client:
        for query, ticket, summary in (
            ("profile picture errors", "WLC-43", "User profile picture doesn't display"),
            ("card payments resolved", "INC00123", "INC00123"),
        ):
            (hit, *_) = (await call(client, "search_previous_issues", query=query))["output"]["results"]
            assert (hit["ticket"], hit["summary"]) == (ticket, summary)


@pytest.mark.row("S004-22", "S004-46")
async def test_tickets_with_the_fields_of_the_document_are_tickets_at_every_search(
    serve: Serve, tmp_path: Path
) -> None:
    """Metadata as the document writes it, `issue_key` and `incident_number`, in both collections."""
    cause = "Root cause: the cache of avatars was emptied by a purge of the folder."
    path = write_corpus(
        tmp_path,
        ("jira:Eco:WLC-43", f"Summary: Grey avatars after a purge\n{cause}", {"issue_key": "WLC-43"}),
        (
            "incident:INC00123",
            f"Incident: INC00123\nAvatars grey after a purge.\n{cause}",
            {"incident_number": "INC00123"},
        ),
    )
    for collection in ("company", "issues"):
        code, output = stepgate(tmp_path, "corpus", "build", str(path), "--collection", collection)
        assert code == 0, output
    async with client_of(serve) as client:
        hits = (await call(client, "search_incident_knowledge", query="grey avatars purge"))["output"]["results"]
        brief = (await call(client, "build_incident_brief", query="P1: grey avatars after a purge"))["output"]
    assert {(hit["source_type"], hit["source_id"]) for hit in hits} == {("ticket", "WLC-43"), ("ticket", "INC00123")}
    assert {one["source_type"] for one in brief["citations"]} == {"ticket"}
    assert brief["probable_causes"][0]["text"].startswith(("WLC-43: ", "INC00123: ")), brief["probable_causes"]


@pytest.mark.row("S004-41")
async def test_a_ticket_of_several_passages_comes_once(serve: Serve, tmp_path: Path) -> None:
    long = "\n\n".join(f"The picture of member {number} stays grey after the cache was purged." for number in range(60))
    path = write_corpus(tmp_path, ("A-1", long, {}), ("A-2", "A grey picture after the cache was purged.", {}))
    code, output = stepgate(tmp_path, "corpus", "build", str(path), "--collection", "issues")
    assert code == 0, output
    async with client_of(serve) as client:
        listed = (await client.get("/v1/collections/issues/documents")).json()["data"]
        found = (await call(client, "search_previous_issues", query="grey picture cache purged", limit=10))["output"]
    assert sum(one["passages"] for one in listed) > len(listed) == 2
    assert sorted(hit["ticket"] for hit in found["results"]) == ["A-1", "A-2"]


@pytest.mark.row("S004-49")
async def test_texts_are_cut_into_900_characters_of_which_120_are_shared(serve: Serve, tmp_path: Path) -> None:
    text = " ".join(f"word{number}" for number in range(400))
    path = write_corpus(tmp_path, ("A-1", text, {}))
    code, output = stepgate(tmp_path, "corpus", "build", str(path), "--collection", "issues")
    assert code == 0, output
    async with client_of(serve) as client:
        (listed,) = (await client.get("/v1/collections/issues/documents")).json()["data"]
        chunks = (await client.get(f"/v1/documents/{listed['document_id']}")).json()["chunks"]
    pieces = [chunk["text"] for chunk in chunks]
    starts = [text.index(piece) for piece in pieces]
    assert all(len(piece) <= 900 for piece in pieces)
    assert all(abs(start - 780 * number) <= 10 for number, start in enumerate(starts)), starts
    assert starts[-1] + len(pieces[-1]) == len(text), "nothing is lost"


@pytest.mark.row("S004-43", "S004-44")
async def test_without_a_server_of_vectors_the_words_are_searched_and_that_is_said(serve: Serve) -> None:
    async with topic_server() as server:
        embedder = {"embedder_url": server.url, "embedder_model": "tiny"}
        async with client_of(serve, **embedder) as client:
            for name, text in (("a.txt", b"The sauna opens at seven."), ("b.txt", b"Boats are at the pier.")):
                await client.post("/v1/documents", files={"file": (name, text)}, data={"collection": "work"})
        async with client_of(serve, **embedder, qdrant_url="http://127.0.0.1:9") as client:
            late = await client.post("/v1/documents", files={"file": ("c.txt", b"Late.")}, data={"collection": "work"})
            assert late.status_code == 503
            assert "AGENT_QDRANT_URL" in late.json()["error"]["message"], "what cannot be stored is refused"
            for mode in ("vector", "hybrid", "hybrid_rerank"):
                body = {"query_text": "When does the sauna open?", "collection": "work", "mode": mode}
                answer = await client.post("/v1/search", json={**body, "min_relevance_score": 0.1})
                assert answer.status_code == 200, answer.text
                assert {one["retrieval_mode"] for one in answer.json()["results"]} == {"lexical"}
                assert "sauna" in answer.json()["results"][0]["content"]
                assert "by their words alone" in answer.json()["note"]


@pytest.mark.row("S004-43")
async def test_the_mode_of_a_search_is_set_by_the_gateway_and_by_the_request(serve: Serve) -> None:
    async with topic_server() as server:
        embedder = {"embedder_url": server.url, "embedder_model": "tiny"}
        async with client_of(serve, **embedder, retrieval_mode="vector") as client:
            sent = {"file": ("a.txt", b"The sauna opens at seven.")}
            await client.post("/v1/documents", files=sent, data={"collection": "work"})
            body = {"query_text": "steam", "collection": "work", "min_relevance_score": 0.05}
            by_setting = (await client.post("/v1/search", json=body)).json()
            by_request = (
                await client.post("/v1/search", json={**body, "query_text": "sauna", "mode": "lexical"})
            ).json()
    assert [one["retrieval_mode"] for one in by_setting["results"]] == ["vector"], "no word is the same"
    assert [one["retrieval_mode"] for one in by_request["results"]] == ["lexical"]


async def test_the_example_company_is_loaded_for_its_caller_once(serve: Serve) -> None:
    async with client_of(serve) as client:
        keys = {}
        for owner, scopes in (("anna", ["agent", "ingest"]), ("bob", ["agent"])):
            made = await client.post("/v1/admin/keys", json={"owner": owner, "name": "laptop", "scopes": scopes})
            keys[owner] = {"x-api-key": made.json()["text"]}
        loaded = [await client.post("/v1/corpus/example", json={}, headers=keys["anna"]) for _ in range(2)]
        assert [one.status_code for one in loaded] == [201, 201], loaded[0].text
        assert loaded[0].json() == loaded[1].json()
        assert [one["name"] for one in loaded[0].json()["data"]] == ["example-company", "example-issues"]
        assert all(one["documents"] > 0 for one in loaded[0].json()["data"])
        assert (await client.post("/v1/corpus/example", json={}, headers=keys["bob"])).status_code == 403
        assert (await client.get("/v1/collections", headers=keys["bob"])).json()["data"] == []
