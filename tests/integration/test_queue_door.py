"""The queue over HTTP: what waits, who takes it, what is decided about dead letters; and cancelling what waits."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from agent.storage.api_keys import KeyStore
from agent.storage.journal_postgres import open_postgres
from agent.storage.sql import PostgresClient
from tests.integration.conftest import Serve, model_server, serve
from tests.integration.test_cli import stepgate
from tests.support.keys import bearer
from tests.support.postgres import fresh_database

__all__ = ["model_server", "serve"]  # fixtures

QUEUE: dict[str, Any] = {"dispatch": "queue", "queue_slots": 0}


@pytest.fixture
def database() -> Iterator[str]:
    with fresh_database() as url:
        yield url


async def accept_run(client: httpx.AsyncClient) -> str:
    """A run that waits for a worker."""
    response = await client.post("/v1/agent", json={"prompt": "What is 6*7?", "background": True})
    assert response.status_code == 202, response.text
    return str(response.json()["run_id"])


def change(database: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(database, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []


async def test_the_queue_is_shown_and_its_dead_letters_are_retried_and_discarded(serve: Serve, database: str) -> None:
    async with (
        serve(database_url=database, **QUEUE) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        run = await accept_run(client)
        report = (await client.get("/v1/queue")).json()
        (lane,) = report["lanes"]
        assert (lane["lane"], lane["waiting"], lane["failed"], lane["is_served"]) == ("runs", 1, 0, False)
        assert (report["workers"], report["dead_letters"]) == ([], [])
        change(database, "UPDATE procrastinate_jobs SET status = 'failed', attempts = 5")
        (letter,) = (await client.get("/v1/queue")).json()["dead_letters"]
        shown = {name: letter[name] for name in ("lane", "kind", "run_id", "run_status", "owner", "can_retry")}
        assert shown == {
            "lane": "runs", "kind": "run", "run_id": run, "run_status": "queued", "owner": "local", "can_retry": True,
        }  # fmt: skip
        assert "given up after 5 attempts" in letter["reason"]
        path = f"/v1/queue/{letter['id']}"
        refused = await client.delete(path)
        assert (refused.status_code, f"stepgate runs cancel {run}" in refused.text) == (409, True)
        retried = await client.post(f"{path}/retry")
        assert (retried.status_code, retried.json()) == (202, {"id": letter["id"], "status": "queued"})
        assert (await client.post(f"{path}/retry")).status_code == 404, "it is no dead letter any more"
        assert [one["waiting"] for one in (await client.get("/v1/queue")).json()["lanes"]] == [1]
        change(database, "UPDATE procrastinate_jobs SET status = 'failed'")
        change(database, "UPDATE runs SET terminal = true, status = 'failed'")
        refused = await client.post(f"{path}/retry")
        assert (refused.status_code, f"/v1/runs/{run}/fork" in refused.text) == (409, True)
        assert (await client.delete(path)).status_code == 204
        gone = await client.delete(path)
        assert (gone.status_code, "`stepgate queue dead` or GET /v1/queue" in gone.text) == (404, True)
        assert (await client.get("/v1/queue")).json()["lanes"] == []
        audit = (await client.get("/v1/audit?action=queue")).json()["data"]
        assert [one["action"] for one in audit] == ["queue.discard", "queue.retry"]


async def test_only_an_admin_sees_the_queue_of_all_owners(serve: Serve, database: str) -> None:
    async with serve(database_url=database, require_key="always", **QUEUE) as url:
        store = await open_postgres(database)
        keys = KeyStore(PostgresClient(store.database), time.time)
        _, anna = await keys.create("anna", "laptop", ["agent", "approve", "ingest"])
        _, root = await keys.create("ops", "root", ["admin"])
        await store.close()
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            for method, path in (("GET", "/v1/queue"), ("POST", "/v1/queue/1/retry"), ("DELETE", "/v1/queue/1")):
                assert (await client.request(method, path)).status_code == 401
                assert (await client.request(method, path, headers=bearer(anna))).status_code == 403
            assert (await client.get("/v1/queue", headers=bearer(root))).status_code == 200
            assert (await client.delete("/v1/queue/1", headers=bearer(root))).status_code == 404


async def test_a_gateway_without_a_queue_says_what_to_do(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url) as client:
        refused = [await client.get("/v1/queue"), await client.delete("/v1/queue/1")]
        assert [one.status_code for one in refused] == [409, 409]
        assert all("AGENT_DISPATCH=queue" in one.json()["error"]["message"] for one in refused)


async def test_a_run_that_waits_is_cancelled_at_once_though_no_worker_is_there(
    serve: Serve, database: str, tmp_path: Path
) -> None:
    async with (
        serve(database_url=database, **QUEUE) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        over_http, by_command, kept = [await accept_run(client) for _ in range(3)]
        followed = asyncio.create_task(client.get(f"/v1/runs/{over_http}/events"))
        cancelled = await client.post(f"/v1/runs/{over_http}/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (202, "cancelled")
        assert "run.cancelled" in (await followed).text, "who followed it is told"
        settings = {"database_url": database, "dispatch": "queue"}
        code, output = await asyncio.to_thread(stepgate, tmp_path, "runs", "cancel", by_command, **settings)
        assert (code, output.split()) == (0, [by_command, "cancelled"])
        rows = change(database, "SELECT run_id, status, terminal FROM runs ORDER BY created_at")
        assert rows == [(over_http, "cancelled", True), (by_command, "cancelled", True), (kept, "queued", False)]
        assert change(database, "SELECT queueing_lock FROM procrastinate_jobs") == [(kept,)]
        again = await client.post(f"/v1/runs/{over_http}/cancel")
        assert again.status_code == 409


async def test_cancelling_a_run_that_was_given_up_discards_its_dead_letter(serve: Serve, database: str) -> None:
    async with (
        serve(database_url=database, **QUEUE) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        run = await accept_run(client)
        change(database, "UPDATE procrastinate_jobs SET status = 'failed'")
        assert (await client.post(f"/v1/runs/{run}/cancel")).json()["status"] == "cancelled"
        assert change(database, "SELECT 1 FROM procrastinate_jobs") == []
