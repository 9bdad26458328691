"""Collections over HTTP and on the command line, on one data folder."""

import sys
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.support.processes import start

HANDBOOK = "# Handbook\n\n## Holidays\n\nEvery employee has 28 days of paid holiday a year.\n"


def stepgate(folder: Path, *words: str, cold: bool = False) -> tuple[int, str]:
    environment = {"AGENT_DATA_DIR": str(folder / "data"), "AGENT_SKILLS_DIRS": "none", "COLUMNS": "200"}
    process = start([sys.executable, "-m", "gateway.cli", *words], environment=environment, cold=cold)
    return process.wait(90), "\n".join(process.output)


async def test_from_a_folder_to_a_cited_answer_and_away_again(serve: Serve, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "handbook.md").write_text(HANDBOOK)
    (docs / "broken.pdf").write_text("no pdf")
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        code, output = stepgate(tmp_path, "ingest", str(docs), "--collection", "staff", cold=True)
        assert code == 0, output
        assert "staff: 1 read, 0 unchanged, 0 removed, 1 skipped" in output
        assert "skipped broken.pdf: " in output
        (row,) = (await client.get("/v1/collections")).json()["data"]
        assert row == {
            "name": "staff", "documents": 1, "status": "ready", "template": "documents", "embedder": ""
        }  # fmt: skip
        (document,) = (await client.get("/v1/collections/staff/documents")).json()["data"]
        assert (document["name"], document["title"], document["file_type"]) == ("handbook.md", "Handbook", "md")
        body = {"collection": "staff", "query_text": "days of paid holiday", "min_relevance_score": 0.1}
        found = (await client.post("/v1/search", json=body)).json()
        assert "28 days of paid holiday" in found["results"][0]["content"]
        assert 0 <= found["results"][0]["relevance_score"] <= 1
        asked = {"model": "knowledge", "messages": [{"role": "user", "content": "how many days of paid holiday?"}]}
        answer = (await client.post("/v1/chat/completions", json=asked)).json()
        assert "28 days of paid holiday a year. [1]" in answer["choices"][0]["message"]["content"]
        assert answer["stepgate"]["sources"][0]["name"].startswith("handbook.md")
        assert (await client.delete("/v1/collections/staff")).status_code == 204
        assert (await client.get("/v1/collections/staff/documents")).status_code == 404


async def test_a_search_that_cannot_be_served_says_why(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(HANDBOOK)
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        missing = await client.post("/v1/search", json={"collection": "nope", "query_text": "x"})
        assert (missing.status_code, missing.json()["error"]["error_code"]) == (404, "ERR_NOT_FOUND")
        assert stepgate(tmp_path, "ingest", str(tmp_path / "a.md"))[0] == 0
        nothing = await client.post("/v1/search", json={"collection": "documents", "query_text": "football"})
        assert (nothing.status_code, nothing.json()["error"]["error_code"]) == (404, "ERR_MEMORY_NO_RESULTS")
        filters = {"collection": "documents", "query_text": "holiday", "filters": {"colour": "red"}}
        unknown = await client.post("/v1/search", json=filters)
        assert unknown.status_code == 400
        assert "file_type" in unknown.json()["error"]["message"]
    (tmp_path / "nothing").mkdir()
    code, output = stepgate(tmp_path, "ingest", str(tmp_path / "nothing"))
    assert code == 1
    assert "nothing was read: every file is hidden or ignored, or of another type" in output
    code, output = stepgate(tmp_path, "ingest", "ftp://host.example/y")
    assert code == 1
    assert "addresses that begin with ftp:// are not read" in output
    code, output = stepgate(tmp_path, "ingest", str(tmp_path / "nowhere"))
    assert code == 1
    assert "there is no file or folder" in output
