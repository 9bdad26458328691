"""What a person deletes does not come back: not from memory, and not as the answer to a repeated request."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.errors import ConflictError, StoreError
from agent.run_context.memory import MemoryStore
from agent.runs.run_worker import make_worker_name
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.access.idempotency_store import IdempotencyStore
from tests.integration.conftest import Serve

SUM, RESULT = "What is 66*77?", "5082"


async def answer_in(client: httpx.AsyncClient, conversation: str, text: str = SUM) -> None:
    """Has a text answered in a conversation."""
    answered = await client.post("/v1/agent", json={"prompt": text, "conversation_id": conversation})
    assert answered.status_code == 200, answered.text


async def list_exchanges(client: httpx.AsyncClient) -> list[str]:
    listed: list[dict[str, Any]] = (await client.get("/v1/memories")).json()["data"]
    return [one["text"] for one in listed if one["kind"] == "exchange"]


async def test_a_deleted_conversation_leaves_nothing_in_memory(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await answer_in(client, "first")
        await answer_in(client, "second")
        assert len(await list_exchanges(client)) == 2
        assert (await client.delete("/v1/conversations/first")).status_code == 200
        assert len(await list_exchanges(client)) == 1, "the other conversation keeps its own"


async def test_a_deleted_item_leaves_nothing_in_memory(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await answer_in(client, "chat")
        await answer_in(client, "chat", "What is 11*12?")
        items = (await client.get("/v1/conversations/chat/items", params={"order": "asc"})).json()["data"]
        assert (await client.delete(f"/v1/conversations/chat/items/{items[0]['id']}")).status_code == 200
        assert [text.splitlines()[0] for text in await list_exchanges(client)] == ["What is 11*12?"]


async def test_the_answer_of_a_deleted_run_is_not_repeated(serve: Serve) -> None:
    body = {"model": "stepgate", "input": SUM}
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        sent = await asyncio.gather(
            *(client.post("/v1/responses", json=body, headers={"idempotency-key": f"k-{n}"}) for n in range(2))
        )
        assert (await client.delete(f"/v1/responses/{sent[0].json()['id']}")).status_code == 200
        again = [await client.post("/v1/responses", json=body, headers={"idempotency-key": f"k-{n}"}) for n in range(2)]
        assert (again[0].status_code, RESULT in again[0].text) == (409, False), again[0].text
        assert again[1].content == sent[1].content
        assert len((await client.get("/v1/runs")).json()["data"]) == 1, "it is not carried out again"


async def test_a_deleted_run_that_was_never_answered_is_not_carried_out_again(serve: Serve, tmp_path: Path) -> None:
    """Its process died before it could answer; the next one ended the run."""
    body, key = {"model": "stepgate", "input": SUM}, {"idempotency-key": "k"}
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        sent = await client.post("/v1/responses", json=body, headers=key)
        host = make_worker_name().partition(":")[0]
        pending = [["x-stepgate-run-id", sent.headers["x-stepgate-run-id"]], ["worker", f"{host}:99999999:dead"]]
        with sqlite3.connect(tmp_path / "data" / "stepgate.db") as db:
            db.execute("UPDATE idempotency SET status = 0, body = '', headers = ?", (json.dumps(pending),))
        assert (await client.delete(f"/v1/responses/{sent.json()['id']}")).status_code == 200
        again = await client.post("/v1/responses", json=body, headers=key)
        assert again.status_code == 409, again.text
        assert (await client.get("/v1/runs")).json()["data"] == []


async def test_an_answer_that_is_stored_after_its_run_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path / "stepgate.db")
    statements = SqliteClient(store.database)
    requests = IdempotencyStore(statements)
    await requests.begin_request("local/x", "k", "digest")
    await statements.write("UPDATE idempotency SET status = -1")  # as a deletion does
    await requests.store_response("local/x", "k", 200, [], RESULT.encode())
    with pytest.raises(ConflictError, match="deleted"):
        await requests.begin_request("local/x", "k", "digest")
    await store.close()


async def test_a_deletion_that_broke_off_is_completed_when_it_is_repeated(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_all, failures = MemoryStore.delete_all, [StoreError("the index is down")]

    async def fail_once(self: MemoryStore, *args: Any, **options: Any) -> int:
        if failures:
            raise failures.pop()
        return await delete_all(self, *args, **options)

    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        await answer_in(client, "chat")
        monkeypatch.setattr(MemoryStore, "delete_all", fail_once)
        assert (await client.delete("/v1/conversations/chat")).status_code == 503
        await client.delete("/v1/conversations/chat")
        assert await list_exchanges(client) == []


async def test_a_run_that_ends_after_its_conversation_was_deleted_is_not_remembered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = MemoryStore.save_exchange
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=60) as client:

        async def delete_first(self: MemoryStore, *args: Any, **options: Any) -> None:
            assert (await client.delete("/v1/conversations/chat")).status_code == 200
            await save(self, *args, **options)

        monkeypatch.setattr(MemoryStore, "save_exchange", delete_first)
        await answer_in(client, "chat")
        assert await list_exchanges(client) == []
