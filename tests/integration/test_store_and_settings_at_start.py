"""What a gateway starts with: an empty or an earlier store, and settings under other orchestrators' names."""

import sqlite3
import sys
from pathlib import Path

import httpx
import pytest

from agent.storage.migrations import HEAD
from tests.integration.conftest import Serve
from tests.support.old_store import read_expected, write_sqlite
from tests.support.processes import start
from tests.support.script import answers, script
from tests.support.scripted_server import ScriptedServer


def read_revision(path: Path) -> str:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
        return str(store.execute("SELECT version_num FROM alembic_version").fetchone()[0])


@pytest.mark.row("S004-12")
async def test_an_earlier_store_is_brought_up_to_date_and_everything_is_there(serve: Serve, tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "data" / "stepgate.db")
    assert read_revision(path) != HEAD
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        listed = (await client.get("/v1/runs", params={"limit": 100})).json()["data"]
        assert {one["id"] for one in listed} <= set(read_expected())
        assert listed
        asked = await client.post("/v1/agent", json={"prompt": "What is 6*7?"})
        assert "42" in asked.json()["response"]
    assert read_revision(path) == HEAD


@pytest.mark.row("S004-12")
async def test_an_empty_file_becomes_a_store(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "data" / "stepgate.db"
    path.parent.mkdir(parents=True)
    path.touch()
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        assert (await client.get("/v1/runs")).json()["data"] == []
    assert read_revision(path) == HEAD


@pytest.mark.row("S004-52")
@pytest.mark.parametrize("prefix", ["AGENT_ORCHESTRATOR_", "ORCHESTRATOR_"])
def test_settings_are_read_under_other_names(tmp_path: Path, model_server: ScriptedServer, prefix: str) -> None:
    model_server.load(script(answers("Boats are fine.")))
    environment = {
        f"{prefix}LLM_BASE_URL": model_server.url,
        f"{prefix}LLM_MODEL": "their-model",
        "AGENT_DATA_DIR": str(tmp_path / "data"),
        "AGENT_SKILLS_DIRS": "none",
    }
    command = [sys.executable, "-m", "gateway", "ask", "say something nice about boats and their crews"]
    asking = start(command, environment=environment)
    assert asking.wait() == 0, asking.output
    assert "Boats are fine." in "\n".join(asking.output)
    assert {one["body"]["model"] for one in model_server.requests()} == {"their-model"}
