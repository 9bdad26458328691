"""No GET request changes anything: a link on any page can make a browser send one."""

import asyncio
import hashlib
import re
import sqlite3
from pathlib import Path

import httpx

from tests.integration.conftest import Serve
from tests.support.talks import API, papers, talk

STREAM_SECONDS = 0.3


def list_files(folder: Path) -> dict[str, str]:
    """Every row of the database and every other file, as they would look after a restart."""
    with sqlite3.connect(folder / "stepgate.db") as database:
        found = {"stepgate.db": "\n".join(database.iterdump())}
    database.close()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("stepgate.db") and path.suffix != ".lock":
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


async def populate(client: httpx.AsyncClient, folder: Path) -> dict[str, str]:
    """Makes one thing of each kind; their ids by the names that paths have for them."""
    run = await client.post("/v1/agent", json={"prompt": "What is 2*21?"})
    task = (await client.post("/tasks", json={"prompt": "What is 2*21?"})).json()["task_id"]
    assert (await client.post(f"/tasks/{task}/run", params={"wait": True})).status_code < 300
    plan = {"name": "nightly", "cron": "0 3 * * *", "prompt": "What is 2*21?"}
    assert (await client.post("/v1/schedules", json=plan)).status_code == 201
    kept = await client.post("/v1/responses", json={"model": "stepgate", "input": "What is 2*21?"})
    upload = await client.post("/v1/documents", files={"file": ("a.md", b"It rains.")}, data={"collection": "weather"})
    remembered = await client.post("/v1/agent", json={"prompt": "Remember that it rains in Bergen."})
    assert remembered.status_code == 200
    made = {"name": "Support team", "description": "Answers."}
    assert (await client.post("/v1/rooms", json=made)).status_code == 201
    chat = (await client.post("/v1/conversations", json={})).json()
    conversation = await talk(client, papers(folder, 1))
    await client.post(f"{API}/{conversation.id}/abandon")
    return {
        "run_id": run.headers["x-stepgate-run-id"], "task_id": task, "schedule": "nightly",
        "response_id": kept.json()["id"], "document_id": upload.json()["document_id"], "name": "weather",
        "room_id": "support-team", "model": "stepgate",
        "conversation_id": conversation.id, "session_id": chat["id"], "entity_id": "room:support-team",
    }  # fmt: skip


async def read(client: httpx.AsyncClient, path: str) -> int:
    """The status of a GET request. A stream is left in the middle, as by a page that is closed."""
    status = 0
    try:
        async with asyncio.timeout(STREAM_SECONDS), client.stream("GET", path) as response:
            status = response.status_code
            await response.aread()
    except TimeoutError:
        pass
    return status


async def test_no_get_request_changes_anything(serve: Serve, tmp_path: Path) -> None:
    options = {"conversations_require_llm": False, "conversation_archive_days": 1e-9}
    async with serve(**options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        ids = await populate(client, tmp_path / "data")
        described = (await client.get("/openapi.json")).json()["paths"]
        paths = [path for path, methods in described.items() if "get" in methods]
        paths += ["/mcp", "/mcp/lookup", "/.well-known/agent-card.json", "/web/app.js", "/healthz", "/readyz"]
        asked = [re.sub(r"\{(\w+)(?::path)?\}", lambda found: ids.get(found[1], "none"), path) for path in paths]
        asked += [f"{API}?archived=true", "/v1/memories?query=rain", "/v1/studio/relationship?a=a&b=b"]
        await asyncio.sleep(0.5)  # what the requests before have started
        before = list_files(tmp_path / "data")
        statuses = {path: await read(client, path) for path in asked}
        for path in ("/", "/health", "/ready", "/web/app.js"):
            assert (await client.head(path)).status_code == 200
        after = list_files(tmp_path / "data")
    assert len(asked) > 50
    assert sum(status == 200 for status in statuses.values()) > 40, statuses
    assert not [path for path, status in statuses.items() if status >= 500]
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == set()
