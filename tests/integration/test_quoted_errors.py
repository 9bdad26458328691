"""What speaks of errors is no error: reports, documents and files that quote messages, with the tools as they are."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.door_bench import door_bench
from tests.support.script import judges, plans, says
from tests.support.scripted_server import ScriptedServer
from tests.support.tools import returning

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


@pytest.mark.parametrize(
    ("result", "calls"),
    [
        ("Error: login fails on Safari (opened by bob)", 2),
        ("Error: connection refused\nretrying...\nok", 1),
        ({"status": "failed", "job": "nightly"}, 1),
        ({"status": "failed"}, 2),
        ({"status": 500, "url": "https://example.org"}, 1),
        ({"id": 7, "errors": ["test_login failed"], "state": "done"}, 1),
        ({"errors": ["test_login failed"]}, 2),
        ('{"status": "failed", "job": "nightly"}', 1),
    ],
)
@pytest.mark.parametrize("supervision", ["checks", "auto"])
async def test_a_result_about_an_error_is_answered_from(
    tmp_path: Path, model_server: ScriptedServer, supervision: str, result: Any, calls: int
) -> None:
    """No rule knows whether the words are the tool's or those that it was to read: a judge decides, if one is asked."""
    tool = returning("get_it", result)
    step = {"tool": "get_it", "inputs": {"x": "https://example.org"}}
    rules = (
        plans(step, {"tool": "completion"}),
        says("It is about an error.", to="completion"),
        judges("SUCCESS", "this is what was to be read"),
    )
    room = f"name: Test\nsupervision: {supervision}\n"
    async with door_bench(tmp_path, model_server, *rules, tools=[tool], room=room, model_profile="capable") as door:
        answer = await door.ask("What is it about?")
        judged = door.bodies("supervisor")
    assert (answer["response"], answer["metadata"]["status"]) == ("It is about an error.", "complete")
    assert len(tool.calls) == calls
    doubts = [one["message"] for one in answer["metadata"]["uncertainties"]]
    assert len(judged) == (supervision == "auto")
    assert any("reads like an error message" in one for one in doubts) is (supervision == "checks")


async def test_a_result_that_the_judge_takes_for_an_error_is_not_read_again(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    tool = returning("get_it", "Error: connection refused\nat port 80")
    rules = (
        plans({"tool": "get_it"}, {"tool": "completion"}),
        judges("REPLAN", "the tool could not connect"),
    )
    async with door_bench(tmp_path, model_server, *rules, tools=[tool], room="name: Test\nsupervision: auto\n") as door:
        answer = await door.ask("search with the tool, and what does it say?")
    assert len(tool.calls) == 1
    assert answer["metadata"]["status"] == "partial"
    assert "the tool could not connect" in answer["response"]
