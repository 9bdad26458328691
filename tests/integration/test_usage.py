"""Usage by day, room, model, key and owner: at the door, on the command line, over ended and deleted runs."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from agent.storage.usage import UsageLedger
from tests.integration.conftest import Serve
from tests.integration.test_audit import keys_of
from tests.integration.test_cli import stepgate
from tests.support.keys import bearer
from tests.support.mcp_client import until_async
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

CHAT = {"model": "chat", "messages": [{"role": "user", "content": "Say something."}]}
SUM = {"model": "stepgate", "messages": [{"role": "user", "content": "What is 17*3?"}]}


async def wait_for_runs(client: httpx.AsyncClient, count: int, **params: str) -> dict[str, Any]:
    """The report, once so many runs are recorded."""
    report: dict[str, Any] = {}

    async def recorded() -> bool:
        nonlocal report
        report = (await client.get("/v1/usage", params=params)).raise_for_status().json()
        return bool(report["total"]["runs"] == count)

    await until_async(recorded)
    return report


async def test_usage_is_summed_by_what_is_asked_for(serve: Serve) -> None:
    with ScriptedServer(script(says("Something.", prompt_tokens=100, completion_tokens=7))) as upstream:
        async with (
            serve(llm_base_url=upstream.url, model_fast="m", model_prices={"m": (10, 20)}) as url,
            httpx.AsyncClient(base_url=url, timeout=30) as client,
        ):
            for _ in range(3):
                (await client.post("/v1/chat/completions", json=CHAT)).raise_for_status()
            report = await wait_for_runs(client, 3, by="model,day,room")
            (item,) = report["data"]
            assert item["room"] == "chat"
            assert item["model"] == "m"
            assert item["day"] == datetime.now(UTC).date().isoformat()
            assert (item["runs"], item["model_calls"]) == (3, 3)
            assert (item["prompt_tokens"], item["completion_tokens"]) == (300, 21)
            assert item["cost_usd"] == pytest.approx((300 * 10 + 21 * 20) / 1e6)
            assert "owner" not in item
            assert (await client.get("/v1/usage", params={"by": ""})).json()["data"] == []
            past = (datetime.now(UTC) - timedelta(days=2)).isoformat()
            assert (await client.get("/v1/usage", params={"until": past})).json()["total"]["runs"] == 0
            first = await client.get("/v1/usage", params={"until": "0001-01-01T00:00:00Z"})
            assert (first.status_code, first.json()["total"]["runs"]) == (200, 0), "no 30 days lie before the year 1"


async def test_runs_without_a_model_are_counted_and_outlive_their_deletion(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.runs.usage_recorder.BATCH_SECONDS", 60)  # the deletion comes before the record
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = {"model": "stepgate", "input": "What is 17*3?"}
        answer = (await client.post("/v1/responses", json=asked)).json()
        assert (await client.delete(f"/v1/responses/{answer['id']}")).status_code == 200
        report = await wait_for_runs(client, 1, by="room,model")
        assert report["data"] == [
            {
                "room": "stepgate", "model": "", "runs": 1, "model_calls": 0, "prompt_tokens": 0,
                "completion_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0, "cost_usd": None,
            }
        ]  # fmt: skip


async def test_owners_see_their_own_usage_and_admins_all(serve: Serve, tmp_path: Path) -> None:
    async with (
        serve(require_key="always") as url,
        keys_of(tmp_path / "data") as keys,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        anna, hers = await keys.create("anna", "laptop", ["chat"], by="test")
        _, his = await keys.create("bert", "phone", ["chat"], by="test")
        _, admin = await keys.create("root", "desk", ["admin"], by="test")
        for text, count in ((hers, 2), (his, 1)):
            for _ in range(count):
                (await client.post("/v1/chat/completions", json=SUM, headers=bearer(text))).raise_for_status()
        client.headers.update(bearer(admin))
        report = await wait_for_runs(client, 3, owner="*", by="key,owner")
        assert [(item["owner"], item["runs"]) for item in report["data"]] == [("anna", 2), ("bert", 1)]
        assert report["data"][0]["key"] == anna.id
        own = await client.get("/v1/usage", headers=bearer(his))
        assert own.json()["total"]["runs"] == 1
        for foreign in ("anna", "*"):
            refused = await client.get("/v1/usage", params={"owner": foreign}, headers=bearer(his))
            assert refused.status_code == 403
            assert "admin" in refused.text


@pytest.mark.parametrize(
    ("params", "words"),
    [({"by": "colour"}, "known: day, owner, key, room, model"), ({"since": "yesterday"}, "since")],
)
async def test_what_cannot_be_summed_is_said(serve: Serve, params: dict[str, str], words: str) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        refused = await client.get("/v1/usage", params=params)
        assert refused.status_code in (400, 422)
        assert words in refused.text


async def test_a_run_whose_process_died_is_recorded_at_the_next_start_and_only_once(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        for _ in range(2):
            (await client.post("/v1/chat/completions", json=SUM)).raise_for_status()
        await wait_for_runs(client, 2)
    store = await open_sqlite(tmp_path / "data" / "stepgate.db")
    statements = SqliteClient(store.database)
    await statements.write("DELETE FROM model_usage")
    ledger = UsageLedger(statements, time.time)
    first, second = await ledger.find_unrecorded()
    await ledger.record(first)
    await ledger.record(first)
    await ledger.record("run_unknown")
    assert await ledger.find_unrecorded() == [second]
    await store.close()
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        await wait_for_runs(client, 2)


async def test_the_command_prints_a_table_and_json(serve: Serve, tmp_path: Path) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        (await client.post("/v1/chat/completions", json=SUM)).raise_for_status()
        await wait_for_runs(client, 1)
    folder = tmp_path
    code, table = stepgate(folder, "usage")
    assert code == 0
    assert datetime.now(UTC).date().isoformat() in table
    code, line = stepgate(folder, "usage", "--by", "room", "--json")
    assert (code, json.loads(line)["room"]) == (0, "stepgate")
    code, refused = stepgate(folder, "usage", "--by", "colour")
    assert code != 0
    assert "known: day" in refused
    assert "No run has ended" in stepgate(folder, "usage", "--owner", "nobody")[1]
