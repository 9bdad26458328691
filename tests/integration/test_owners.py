"""An owner is removed with all that is theirs; nothing of anybody else's is touched."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.settings import Settings
from agent.core.subagent_result import Uncertainty
from agent.storage.api_keys import KeyStore
from agent.storage.owners import OWNED_TABLES
from agent.storage.sql import SqlClient, SqlStatement
from agent.storage.tables import metadata
from gateway.bootstrap_database import build_statements, open_store
from gateway.configured_features import collect_tables
from gateway.feature_loader import load_features
from gateway.features.documents.engine.ingest.collection_store import Collection, CollectionStore
from gateway.features.documents.engine.ingest.source_store import SourceStore
from gateway.features.documents.engine.ingest.templates import from_template
from gateway.features.documents.engine.search.models import ConnectorInput
from gateway.features.pipeline_builder.engine.conversation_store import BuilderConversationStore
from gateway.features.studio.engine.generated_tools.version_store import ToolVersionStore
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.support.postgres import fresh_database
from tests.support.talks import API, papers
from tests.support.tool_scripts import make_version

SENDERS = {"idempotency"}
"""Tables whose owners are senders: API keys, by id."""
OWNER_TABLES = {table.name for table in metadata.sorted_tables if "owner" in table.c} - SENDERS
WEB = "https://kelp.example/"
UNSURE = Uncertainty(severity="notable", message="Is it kelp?")
LONG = "long " * 5_000


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if request.param == "sqlite":
        yield {}
        return
    with fresh_database() as url:
        yield {"database_url": url}


@contextlib.asynccontextmanager
async def statements(tmp_path: Path, database: dict[str, str]) -> AsyncIterator[SqlClient]:
    store = await open_store(Settings(_env_file=None, data_dir=tmp_path / "data", **database))  # type: ignore[arg-type]
    yield build_statements(store)
    await store.close()


async def keys_of(tmp_path: Path, database: dict[str, str], **owners: list[str]) -> dict[str, dict[str, str]]:
    """The headers of each owner's key."""
    async with statements(tmp_path, database) as db:
        made = {}
        for owner, scopes in owners.items():
            _, text = await KeyStore(db, time.time).create(owner, "k", scopes)
            made[owner] = {"authorization": f"Bearer {text}"}
    return made


async def left(db: SqlClient, owner: str) -> dict[str, int]:
    """How many rows of each table are this owner's, by the schema."""
    found = {}
    for table in OWNER_TABLES:
        ((count,),) = await db.read(f"SELECT count(*) FROM {table} WHERE owner = ?", owner)
        found[table] = int(count)
    return found


async def settled(db: SqlClient, owner: str) -> dict[str, int]:
    """What `left` returns, once the usage of every run is recorded, which happens in the background."""
    for _ in range(200):
        found = await left(db, owner)
        if found["model_usage"] == found["runs"]:
            return found
        await asyncio.sleep(0.05)
    pytest.fail(f"the usage of {owner}'s runs was not recorded: {found}")


async def build(client: httpx.AsyncClient, db: SqlClient, folder: Path) -> None:
    """Have a generated tool, a prompt, a recipe, a source, a conversation about it with a doubt, and a job that is
    under way.
    """
    saved = await client.put("/v1/studio/prompts/tone", json={"text": "Be kind."})
    assert saved.status_code == 200, saved.text
    await db.write("INSERT INTO recipes (owner, name, created, updated) VALUES (?, ?, 0, 0)", "anna", "dive-report")
    tools = ToolVersionStore(db, time.time)
    tool = await tools.add(make_version(owner="anna"))
    await tools.activate(tool, by="anna", sha256=tool.sha256)
    source = (await client.post("/v1/sources", json={"source_identifier": str(folder)})).json()["id"]
    made = (await client.post(API, json={"source_id": source})).json()["id"]
    conversations = BuilderConversationStore(db, time.time)
    mine = await conversations.get(made, "anna")
    assert mine is not None
    await conversations.record_uncertainties(mine, "conversation", (UNSURE,), settled_by="x")
    job = await client.post(
        "/v1/collections/kelp/ingest", json={"source_type": "local", "source_identifier": str(folder)}
    )
    assert job.status_code == 202, job.text


NOBODY = "127.0.0.1:9"
"""A receiver of webhooks that is not there."""


async def live(client: httpx.AsyncClient, folder: Path) -> None:
    """Have a document, memories, runs, a long result, a task, a recipe, a prompt and a conversation of a client."""
    (folder / "long.md").write_text(LONG)
    uploaded = await client.post("/v1/documents", files={"file": ("a.txt", b"Kelp grows.")}, data={"collection": "up"})
    assert uploaded.status_code == 201, uploaded.text
    told = {"prompt": "remember that I dive", "session_id": "s"}
    agent = await client.post("/v1/agent", json=told, headers={"Idempotency-Key": "once"})
    assert agent.status_code == 200, agent.text
    read = {"tool": "read_file", "args": {"path": "papers/long.md"}}
    long = await client.post("/v1/agent", json={"prompt": "read", "metadata": {"tool_calls": [read]}})
    assert long.status_code == 200, long.text
    sum_run = (await client.post("/v1/agent", json={"prompt": "2+3"})).json()["metadata"]["run_id"]
    recipe = await client.post(f"/v1/runs/{sum_run}/recipe", json={"name": "add"})
    assert recipe.status_code == 201, recipe.text
    prompt = await client.put("/v1/studio/prompts/brief", json={"text": "Be brief."})
    assert prompt.status_code == 200, prompt.text
    kept = await client.post("/v1/conversations", json={"items": [{"role": "user", "content": "I dive."}]})
    assert kept.status_code == 200, kept.text
    task = (await client.post("/tasks", json={"prompt": "What is 2+3?"})).json()["task_id"]
    assert (await client.post(f"/tasks/{task}/run")).status_code == 200
    daily = {"name": "daily", "cron": "@daily", "prompt": "2+3", "webhook": {"url": f"http://{NOBODY}/"}}
    scheduled = await client.post("/v1/schedules", json=daily)
    assert scheduled.status_code == 201, scheduled.text
    assert (await client.post("/v1/schedules/daily/run")).status_code == 202


@pytest.mark.row("S000-14")
async def test_nothing_of_a_removed_owner_is_left_in_any_table(
    serve: Serve, tmp_path: Path, database: dict[str, str]
) -> None:
    folder = papers(tmp_path / "data", 1)
    scopes = ["chat", "agent", "approve", "ingest"]
    keys = await keys_of(tmp_path, database, anna=scopes, bert=scopes, root=["admin"])
    options: dict[str, Any] = {**database, "require_key": "always", "conversations_require_llm": False}
    options["fetch_allow_hosts"] = (NOBODY,)
    async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        for name in ("anna", "bert"):
            client.headers.update(keys[name])
            await live(client, folder)
        client.headers.update(keys["anna"])
        async with statements(tmp_path, database) as db:
            await build(client, db, folder)
            before = {owner: await settled(db, owner) for owner in ("anna", "bert")}
            had = {table for table, count in before["anna"].items() if count}
            # What is empty here is written only while something is under way, or with an embedder.
            assert OWNER_TABLES - had <= {
                "ingestions",
                "pending_passages",
                "collection_vectors",
                "key_reservations",
                "audit",
                "queue_tags",
                "usage_days",
            }, "this test has something of everything"
            senders = {str(row[0]).partition("/")[0] for row in await db.read("SELECT owner FROM idempotency")}
            assert senders == {keys[name]["authorization"].split("_")[1] for name in ("anna", "bert")}
            ((blobs,),) = await db.read("SELECT count(*) FROM blobs")
            assert blobs > 0
        client.headers.update(keys["bert"])
        assert (await client.delete("/v1/users/anna")).status_code == 403
        client.headers.update(keys["root"])
        gone = await client.delete("/v1/users/anna")
        assert gone.status_code == 200, gone.text
        assert gone.json()["rows"]["runs"] == before["anna"]["runs"]
        assert (await client.delete("/v1/users/anna")).status_code == 404
        audit = (await client.get("/v1/audit", params={"action": "user.delete"})).json()["data"]
        assert [(one["target"], one["outcome"], one["principal"].split()[0]) for one in audit] == [
            ("anna", "done", "root")
        ]
        client.headers.update(keys["anna"])
        assert (await client.get("/v1/runs")).status_code == 401
        client.headers.update(keys["bert"])
        assert (await client.get("/v1/collections/up")).status_code == 200
        found = await client.post("/v1/search", json={"query_text": "kelp", "collection": "up"})
        assert found.status_code == 200, found.text
        facts = await client.get("/v1/memories", params={"kind": "fact"})
        assert [one["text"] for one in facts.json()["data"]] == ["I dive"]
    async with statements(tmp_path, database) as db:
        after = await left(db, "anna")
        assert {table: count for table, count in after.items() if count and table != "audit"} == {}
        theirs = await left(db, "bert")
        theirs.pop("audit")
        assert theirs == {table: count for table, count in before["bert"].items() if table != "audit"}
        for table, key in (("events", "run_id"), ("signals", "run_id")):
            assert await db.read(f"SELECT 1 FROM {table} WHERE {key} NOT IN (SELECT run_id FROM runs)") == []
        answers = await db.read("SELECT owner FROM idempotency")
        assert [str(row[0]).partition("/")[0] for row in answers] == [keys["bert"]["authorization"].split("_")[1]]
        ((kept,),) = await db.read("SELECT count(*) FROM blobs")
        assert kept == blobs, "the long result is bert's too"
    uploads = tmp_path / "data" / "uploads"
    assert sorted(folder.name for folder in uploads.iterdir()) == ["bert"]


@pytest.mark.row("S000-14")
async def test_an_owner_removed_right_after_an_answer_is_not_recorded_later(
    serve: Serve, tmp_path: Path, database: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.runs.usage_recorder.BATCH_SECONDS", 60)  # usage is recorded when the gateway ends
    async with serve(None, **database) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        assert (await client.post("/v1/agent", json={"prompt": "2+3"})).status_code == 200
        gone = await client.delete("/v1/users/local")
        assert (gone.status_code, gone.json()) == (200, {"owner": "local", "rows": {"answer_digests": 1, "runs": 1}})
    async with statements(tmp_path, database) as db:
        after = await left(db, "local")
    assert {table: count for table, count in after.items() if count and table != "audit"} == {}


def test_the_order_names_every_table_with_an_owner() -> None:
    tables = (*collect_tables(load_features("", with_installed=False)).owned, *OWNED_TABLES)
    assert set(tables) == OWNER_TABLES - {"audit"}
    assert len(set(tables)) == len(tables)
    references = {(table.name, key.column.table.name) for table in metadata.sorted_tables for key in table.foreign_keys}
    for table, other in references:
        if table in tables and other in tables:
            assert tables.index(table) < tables.index(other)


@pytest.mark.row("S000-14")
async def test_the_command_asks_and_then_removes(tmp_path: Path) -> None:
    async with statements(tmp_path, {}) as db:
        await SourceStore(db, (), time.time).add("anna", ConnectorInput(source_type="web", source_identifier=WEB))
    code, output = await asyncio.to_thread(stepgate, tmp_path, "users", "delete", "anna")
    assert (code != 0, "anna has 1 sources" in output) == (True, True), output
    removed = await asyncio.to_thread(stepgate, tmp_path, "users", "delete", "anna", "--yes")
    assert removed == (0, "removed anna: 1 sources")


@pytest.mark.row("S000-14")
async def test_a_dropped_collection_or_source_leaves_conversations_without_it(
    tmp_path: Path, database: dict[str, str]
) -> None:
    async with statements(tmp_path, database) as db:
        sources, collections = SourceStore(db, (), time.time), CollectionStore(db, time.time)
        conversations = BuilderConversationStore(db, time.time)
        source = await sources.add("anna", ConnectorInput(source_type="web", source_identifier=WEB))
        made = await conversations.add("anna", source_id=source.id)
        await collections.put("anna", Collection("kelp", from_template()))
        await conversations.set_pipeline(made, from_template().model_dump(mode="json"), validated=False)
        await conversations.apply(made, "kelp", {"collection": "kelp"})
        found = await conversations.get(made.id, "anna")
        assert found is not None
        assert (found.source_id, found.collection) == (source.id, "kelp")
        await collections.remove("anna", "kelp")
        await sources.remove(source.id, "anna")
        found = await conversations.get(made.id, "anna")
        assert found is not None
        assert (found.source_id, found.collection, found.status) == (None, None, "applied")


async def test_several_changes_are_done_together_or_not_at_all(tmp_path: Path, database: dict[str, str]) -> None:
    async with statements(tmp_path, database) as db:
        insert = SqlStatement("INSERT INTO blobs (checksum, data) VALUES (?, ?)", ("c", b"x"))
        with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
            await db.write_all(insert, insert)
        assert await db.read("SELECT checksum FROM blobs") == []
        assert await db.write_all(insert, SqlStatement("DELETE FROM blobs")) == [1, 1]
