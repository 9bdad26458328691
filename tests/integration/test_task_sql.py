"""The SQL of the document on tasks, on both databases."""

import contextlib
import json
import sqlite3
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.integration.conftest import Serve
from tests.support.postgres import fresh_database


@pytest.mark.row("S004-11")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_the_sql_of_the_document_shows_the_newest_run_first(serve: Serve, tmp_path: Path, store: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        url = stack.enter_context(fresh_database()) if store == "postgres" else None
        address = await stack.enter_async_context(serve(database_url=url))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=address, timeout=60))
        task = await client.post("/tasks", json={"prompt": "Summarise this: Anna sent the invoices."})
        task_id = task.json()["task_id"]
        runs = [(await client.post(f"/tasks/{task_id}/run")).json()["run_id"] for _ in range(3)]
        connect = psycopg.connect(url) if url else sqlite3.connect(tmp_path / "data" / "stepgate.db")
        with contextlib.closing(connect) as database:
            newest_first = f"FROM task_runs WHERE task_id = '{task_id}' ORDER BY run_id DESC"
            rows = database.execute(f"SELECT run_id, status, created_at {newest_first}").fetchall()
            documents = database.execute(
                f"SELECT plan_json, tool_results_json, verification_json {newest_first} LIMIT 1"
            ).fetchall()
    assert [(run_id, status) for run_id, status, _ in rows] == [(run_id, "completed") for run_id in reversed(runs)]
    assert sorted((row[2] for row in rows), reverse=True) == [row[2] for row in rows]
    plan, results, verification = documents[0] if url else map(json.loads, documents[0])
    assert plan["steps"]
    assert "summarize" in {result["tool"] for result in results}
    assert verification["passed"] is True
