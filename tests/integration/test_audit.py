"""The audit record: what people do at the doors and on the command line, by whom, without their secrets."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from agent.core.errors import BadRequestError
from agent.core.settings import Settings
from agent.storage.api_keys import KeyStore
from agent.storage.audit import StoredAuditLog
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.cli import app, session
from gateway.cli.audit import parse_time
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.support.approvals import ids_of
from tests.support.keys import bearer

ROOM = "id: careful\nname: Careful\napproval: always\nsupervision: checks\n"


@asynccontextmanager
async def keys_of(folder: Path) -> AsyncIterator[KeyStore]:
    """The keys of a data folder, as the command line has them."""
    store = await open_sqlite(folder / "stepgate.db")
    statements = SqliteClient(store.database)
    yield KeyStore(statements, time.time, StoredAuditLog(statements, time.time))
    await store.close()


async def test_what_is_done_at_the_doors_is_recorded_with_who_did_it(serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "careful.yaml").write_text(ROOM)
    async with (
        serve(rooms_dir=rooms, require_key="always") as url,
        keys_of(tmp_path / "data") as keys,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        anna, text = await keys.create("anna", "laptop", ["agent", "approve", "ingest"], by="root (command line)")
        root, admin = await keys.create("root", "desk", ["admin"], by="root (command line)")
        hers = bearer(text)

        remembered = {"prompt": "remember that my dog is called Rex"}
        assert (await client.post("/v1/agent", json=remembered, headers=hers)).status_code == 200
        memory = (await client.get("/v1/memories", headers=hers)).json()["data"][0]["id"]
        for _ in range(2):
            await client.delete(f"/v1/memories/{memory}", headers=hers)

        sent = await client.post(
            "/v1/documents", headers=hers, files={"file": ("a.md", b"# A\n\nText.")}, data={"collection": "work"}
        )
        document = sent.json()["document_id"] if "document_id" in sent.json() else sent.json()["id"]
        assert (await client.delete(f"/v1/documents/{document}", headers=hers)).status_code == 204
        assert (await client.delete("/v1/collections/work", headers=hers)).status_code == 204
        assert (await client.delete("/v1/collections/work", headers=hers)).status_code == 404

        asked = await client.post("/v1/agent", json={"prompt": "what is 6*7?", "room": "careful"}, headers=hers)
        run = asked.json()["metadata"]["run_id"]
        named = {"approvals": ids_of(asked.json())}
        words = [client.post(f"/v1/runs/{run}/{word}", json=named, headers=hers) for word in ("approve", "reject") * 4]
        said = await asyncio.gather(*words)
        assert sorted(one.status_code for one in said) == [202, *[409] * 7]
        (taken,) = (one for one in said if one.status_code == 202)
        assert taken.json()["status"] != "awaiting_approval"
        decided = taken.request.url.path.rsplit("/", 1)[1]
        await keys.revoke(anna.id, by="root (command line)")
        await keys.revoke(anna.id, by="somebody else")

        lacking = await client.get("/v1/audit", headers=bearer((await keys.create("bob", "x", ["agent"]))[1]))
        assert (lacking.status_code, lacking.json()["error"]["error_code"]) == (403, "ERR_SCOPE")
        answer = await client.get("/v1/audit", headers=bearer(admin))
        paged = (await client.get("/v1/audit?limit=2", headers=bearer(admin))).json()
        older = (await client.get(f"/v1/audit?limit=2&before={paged['next']}", headers=bearer(admin))).json()
        wrong = await client.get("/v1/audit?since=yesterday", headers=bearer(admin))
        none = (await client.get("/v1/audit?since=2999-01-01T00:00:00Z", headers=bearer(admin))).json()
    records = answer.json()["data"]
    who = f"anna (key {anna.id})"
    told = [(one["action"], one["target"], one["principal"]) for one in reversed(records)]
    assert told[:5] == [
        ("key.create", anna.id, "root (command line)"),
        ("key.create", root.id, "root (command line)"),
        ("memory.delete", memory, who),
        ("document.delete", document, who),
        ("collection.delete", "work", who),
    ]
    assert told[5] == (f"approval.{decided}", run, who)
    assert sum(action.startswith("approval.") for action, _, _ in told) == 1
    assert told[-2:] == [("key.revoke", anna.id, "root (command line)"), ("key.create", told[-1][1], "bob")]
    assert {one["outcome"] for one in records} == {"done"}
    assert records[-1]["detail"]["scopes"] == ["agent", "approve", "ingest"]
    assert text.rsplit("_", 1)[1] not in answer.text
    assert "Rex" not in answer.text
    assert [one["id"] for one in (*paged["data"], *older["data"])] == [one["id"] for one in records[:4]]
    assert wrong.status_code == 400
    assert none == {"data": [], "next": None}


def test_the_command_line_records_and_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path / "data")
    monkeypatch.setattr(session, "load_command_settings", lambda: settings)
    assert CliRunner().invoke(app, ["audit", "list"]).output == "No records yet.\n"
    made = stepgate(tmp_path, "keys", "create", "laptop\u200b", "--owner", "anna")[1]
    table = CliRunner().invoke(app, ["audit", "list", "--since", "1h", "--action", "key"]).output
    assert "(command line)" in table
    assert "key.create" in table
    line = json.loads(CliRunner().invoke(app, ["audit", "list", "--json"]).output)
    assert (line["owner"], line["action"], line["detail"]["name"]) == ("anna", "key.create", "laptop\u200b")
    assert made.split("_")[-1].split()[0] not in table


def test_times_are_read_as_people_write_them() -> None:
    assert parse_time("24h", 100_000.0) == 13_600.0
    assert parse_time("2026-11-20", 0.0) == parse_time("2026-11-20T00:00Z", 0.0) == 1_795_132_800.0
    with pytest.raises(BadRequestError, match="--since"):
        parse_time("yesterday", 0.0)
