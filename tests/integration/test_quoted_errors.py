"""What speaks of errors is no error: reports, documents and files that quote messages, with the tools as they are."""

from pathlib import Path

import httpx
import pytest

from tests.integration.conftest import Serve

DOCUMENTS = {
    "limits.md": "# Limits\n\nRate limit exceeded is answered with status 429 and a Retry-After header.\n",
    "codes.md": "Error E17 means that the paper tray is empty.\n",
    "gateway.txt": "Service unavailable is shown to members while the proxy restarts.\n",
}


@pytest.mark.row("S004-03", "S004-17")
@pytest.mark.parametrize(
    "prompt",
    [
        "HTTP 503 from checkout-api since 14:00.",
        "NullPointerException when a picture is opened in profile-media-api",
        "ECONNREFUSED between profile-media-api and the object store; members wait.",
    ],
)
async def test_a_report_that_begins_with_an_error_is_read_like_any_other(serve: Serve, prompt: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        task = (await client.post("/tasks", json={"prompt": prompt})).json()
        ended = (await client.post(f"/tasks/{task['task_id']}/run")).json()
        run = (await client.get(f"/tasks/{task['task_id']}/runs/latest")).json()
    assert ended["status"] == "completed", ended["reason"]
    assert [result["tool"] for result in run["tool_results"]].count("extract_entities") == 1
    assert "error" in {entity["type"] for entity in ended["output"]["results"]["extract_entities"]["entities"]}


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What happens when the rate limit is exceeded?", "status 429"),
        ("What does error E17 mean?", "paper tray"),
        ("When is service unavailable shown?", "proxy restarts"),
    ],
)
async def test_documents_about_errors_are_answered_from(serve: Serve, question: str, words: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        for name, text in DOCUMENTS.items():
            sent = await client.post("/v1/documents", files={"file": (name, text)}, data={"collection": "faults"})
            assert sent.is_success, sent.text
        answer = (await client.post("/v1/agent", json={"prompt": question, "room": "knowledge"})).json()
    assert words in answer["response"], answer["response"]
    assert answer["metadata"]["status"] == "complete"


async def test_a_file_that_quotes_an_error_is_read(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "data" / "files").mkdir(parents=True)
    (tmp_path / "data" / "files" / "last.log").write_text("Error: quota exceeded on volume 7\n", "utf-8")
    call = {"tool": "read_file", "args": {"path": "last.log"}}
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        body = {"prompt": "What does last.log say?", "metadata": {"tool_calls": [call]}}
        answer = (await client.post("/v1/agent", json=body)).json()
    assert "volume 7" in answer["response"]
    assert answer["metadata"]["status"] == "complete"
