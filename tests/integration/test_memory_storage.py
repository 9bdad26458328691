"""`create_app(storage=...)`: the gateway on a store that is handed to it, in memory."""

from pathlib import Path

import httpx
import pytest
import uvicorn

from agent.core.settings import Settings
from agent.storage.journal_sqlite import open_in_memory
from gateway.app import create_app
from tests.support.serving import running


def list_databases(folder: Path) -> list[Path]:
    return list(folder.rglob("*.db*"))


@pytest.mark.row("S004-13")
async def test_a_gateway_runs_on_a_store_in_memory(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path / "data", port=0, skills_dirs=())
    for _ in range(2):
        config = uvicorn.Config(create_app(settings, storage=open_in_memory()), port=0, log_config=None, lifespan="on")
        async with running(config) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            assert (await client.get("/tasks")).json()["data"] == [], "another store is another gateway"
            created = (await client.post("/tasks", json={"prompt": "What is 6*7?"})).json()
            done = (await client.post(f"/tasks/{created['task_id']}/run")).json()
            asked = {"prompt": "What is 2+3?", "conversation_id": "c"}
            answer = (await client.post("/v1/agent", json=asked)).json()
            history = (await client.get("/v1/conversations/c/state")).json()["history"]
            assert (done["status"], answer["response"], len(history)) == ("completed", "2+3 = 5", 2)
            assert {run["status"] for run in (await client.get("/v1/runs")).json()["data"]} == {"succeeded"}
    assert not list_databases(tmp_path), "no database was made"
