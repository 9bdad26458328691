"""Conversations about pipelines over HTTP without a model: the rules carry the whole flow."""

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.storage.api_keys import KeyStore
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.features.documents.engine.ingest.dry_run_report import ValidationReport
from gateway.features.documents.engine.ingest.pipeline import PipelineDAG
from gateway.features.pipeline_builder.engine.subagents.pipeline_validator import PipelineValidator
from gateway.features.pipeline_builder.engine.subagents.validation_session import ValidationSession
from tests.integration.conftest import Serve, client_of
from tests.support.documents import encrypted_pdf
from tests.support.talks import API, kinds, papers, read_answer, talk

INDEX = "Help me index these research papers"


@pytest.mark.row("S000-01", "S000-04", "S000-06", "S000-07", "S000-15", "S000-24", "S000-26", "S000-27", "S000-52")
async def test_a_folder_is_analysed_proposed_validated_and_applied(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data")
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        found = await mine.say(INDEX)
        assert kinds(found) >= {"text", "tool", "subagent", "pipeline", "done"}
        assert [one["agent"] for one in found if one.get("status") == "done" and one["type"] == "subagent"] == [
            "source_analyzer",
            "pipeline_validator",
        ]
        assert "6 files" in read_answer(found)
        assert "template 'reports'" in read_answer(found)
        known = await mine.look()
        assert known["source_analysis"]["total_files"] == 6
        assert known["current_pipeline"]["template"] == "reports"
        assert known["validation"]["success_rate"] == 1.0
        assert {message["role"] for message in known["messages"]} == {"user", "tool", "subagent", "assistant"}
        assert INDEX in known["summary"]
        asked = await mine.say("apply papers")
        assert "Approval needed" in read_answer(asked)
        known = await mine.look()
        assert known["status"] == "active", "nothing is applied before somebody says so"
        assert known["question"] == read_answer(asked)
        done = await mine.say("approve")
        assert done[-1]["status"] == "complete", done
        known = await mine.look()
        assert (known["status"], known["collection_id"]) == ("applied", "papers")
        job = (await client.get(f"/v1/jobs/{known['job_id']}", params={"wait_s": 30})).json()
        assert (job["status"], job["report"]["read"]) == ("done", 6)
        documents = (await client.get("/v1/collections/papers/documents")).json()
        assert len(documents["data"]) == 6


@pytest.mark.row("S000-02")
async def test_without_a_model_there_is_no_conversation_unless_the_setting_allows_it(
    serve: Serve, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve, conversations_require_llm=True) as client:
        source = (await client.post("/v1/sources", json={"source_identifier": str(folder)})).json()
        refused = await client.post(API, json={"source_id": source["id"]})
        assert refused.status_code == 400
        assert refused.json()["error"]["error_code"] == "ERR_LLM_NOT_CONFIGURED"
        assert "LLM provider not configured" in refused.json()["error"]["message"]


@pytest.mark.row("S000-47")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_message_without_a_model_is_refused_as_a_new_conversation_is(
    serve: Serve, tmp_path: Path, *, stream: bool
) -> None:
    """The model was taken away after the conversation began."""
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
    async with client_of(serve, conversations_require_llm=True, conversation_messages_per_minute=1) as client:
        for _ in range(2):  # what is refused counts as no message
            refused = await client.post(f"{API}/{mine.id}/messages", json={"message": "hello", "stream": stream})
            assert (refused.status_code, refused.json()["error"]["error_code"]) == (400, "ERR_LLM_NOT_CONFIGURED")
            assert refused.json()["detail"].startswith("LLM provider not configured")
        found = (await client.get(f"{API}/{mine.id}")).json()
    assert (found["messages"], found["run_id"]) == ([], None)


@pytest.mark.row("S000-08", "S000-09", "S000-12")
async def test_blocking_doubts_keep_a_pipeline_from_being_applied(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 3)
    for number in range(2):
        (folder / f"locked{number}.pdf").write_bytes(encrypted_pdf())
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        early = await mine.apply("papers")
        assert (early.status_code, "No pipeline configured" in early.text) == (400, True)
        found = await mine.say(INDEX)
        assert any(one["type"] == "uncertainty" and one["severity"] == "blocking" for one in found)
        blocked = await mine.apply("papers")
        assert blocked.status_code == 400
        assert blocked.json()["error"]["error_code"] == "ERR_BLOCKING_UNCERTAINTY"
        for word in ("yes", "true", 1):
            sent = {"collection_name": "papers", "force": word}
            vague = await client.post(f"{API}/{mine.id}/apply", json=sent)
            assert (vague.status_code, vague.json()["error"]["details"]["param"]) == (400, "force"), vague.text
        forced = await mine.apply("papers", force=True)
        assert (forced.status_code, forced.json()["status"]) == (200, "indexing")
        known = await mine.look()
        blocking = [one["id"] for one in known["uncertainties"] if one["severity"] == "blocking"]
        assert (known["applied"]["force"], known["applied"]["overridden"]) == (True, blocking)


async def test_applying_again_says_when_the_collection_was_deleted(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        first, again = await mine.apply("kelp"), await mine.apply("kelp")
        assert first.json() == again.json()
        await client.get(f"/v1/jobs/{first.json()['job_id']}", params={"wait_s": 30})
        assert (await client.delete("/v1/collections/kelp")).status_code == 204
        gone = await mine.apply("kelp")
        assert (gone.status_code, gone.json()["error"]["error_code"]) == (400, "ERR_CONVERSATION_NOT_ACTIVE")
        assert "'kelp', which has been deleted since" in gone.json()["error"]["message"]


@pytest.mark.row("S000-12")
async def test_a_resolved_doubt_blocks_no_more_and_says_who_resolved_it(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 3)
    (folder / "locked.pdf").write_bytes(encrypted_pdf())
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        for doubt in (await mine.look())["uncertainties"]:
            if doubt["severity"] == "blocking":
                path = f"{API}/{mine.id}/uncertainties/{doubt['id']}/resolve"
                settled = await client.post(path, json={"note": "nobody needs it"})
                assert settled.status_code == 200, settled.text
                assert (settled.json()["resolved_by"], settled.json()["resolver"]) == ("user_confirmed", "local")
                assert (await client.post(path, json={})).status_code == 409
        bad = await mine.apply("a/b")
        assert (bad.status_code, bad.json()["error"]["details"]["param"]) == (400, "collection_name")
        assert (await mine.apply("papers")).status_code == 200
        audit = (await client.get("/v1/audit", params={"action": "conversation"})).json()["data"]
    assert (audit[0]["action"], audit[0]["outcome"]) == ("conversation.apply", "done")
    records = [one for one in audit if one["action"] == "conversation.resolve"]
    assert {(one["target"], one["principal"], one["outcome"]) for one in records} == {(mine.id, "local", "done")}
    assert records[0]["detail"]["severity"] == "blocking"
    assert "nobody needs it" not in str(records), "no texts of users"


@pytest.mark.row("S000-12", "S000-24")
async def test_a_pipeline_that_fails_is_corrected_by_what_was_seen_to_help(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 4)
    for number in range(8):
        (folder / f"sheet{number}.csv").write_text("place,metres\nkelp,1\n")
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say("Index this folder")
        found = await mine.say("set file_bytes 20")
        validated = [one for one in found if one["type"] == "subagent" and one["status"] == "done"]
        assert [one["agent"] for one in validated] == ["pipeline_validator", "pipeline_validator"]
        known = await mine.look()
        assert known["current_pipeline"]["template"] == "tables"
        assert known["validation"]["success_rate"] == 1.0
        settled = [one for one in known["uncertainties"] if one["severity"] == "blocking"]
        assert [(one["resolved"], one["resolved_by"]) for one in settled] == [(True, "pipeline_adjusted")]
        assert (await mine.apply("sheets")).status_code == 200


async def test_a_validation_that_did_not_end_is_followed_by_no_correction(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ValidationSession.dry_run

    async def endless_with_a_change(bench: ValidationSession, pipeline: PipelineDAG) -> ValidationReport:
        if pipeline != bench.pipeline:
            await asyncio.Event().wait()
        return await run(bench, pipeline)

    monkeypatch.setattr(ValidationSession, "dry_run", endless_with_a_change)
    monkeypatch.setattr(PipelineValidator, "TIMEOUT_SECONDS", 5)
    folder = papers(tmp_path / "data", 4)
    for number in range(8):
        (folder / f"sheet{number}.csv").write_text("place,metres\nkelp,1\n")
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say("Index this folder")
        found = await mine.say("set file_bytes 20")
        begun = [one["agent"] for one in found if one["type"] == "subagent" and one["status"] == "started"]
        assert begun == ["pipeline_validator"]
        assert "did not finish" in read_answer(found)


async def test_a_rejected_application_changes_nothing(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        await mine.say("apply papers")
        told = await mine.say("no")
        assert "did not allow" in read_answer(told)
        known = await mine.look()
        assert (known["status"], known["run_id"], known["question"]) == ("active", None, "")
        assert (await client.get("/v1/collections/papers")).status_code == 404


@pytest.mark.row("S000-59")
async def test_what_is_over_for_long_is_archived(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve, conversation_archive_days=1e-9) as client:
        over, active = await talk(client, folder), await talk(client, folder)
        await client.post(f"{API}/{over.id}/abandon")
        assert [one["id"] for one in (await client.get(API)).json()["data"]] == [active.id]
        archived = (await client.get(API, params={"archived": True})).json()["data"]
        assert [one["id"] for one in archived] == [over.id]
        assert archived[0]["archived_at"]
        assert (await over.look())["status"] == "abandoned", "it can still be looked at"


@pytest.mark.row("S000-59")
async def test_over_for_long_means_thirty_days(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        ended = {days: await talk(client, folder) for days in (29, 31)}
        (path,) = (tmp_path / "data").glob("*.db")
        for days, one in ended.items():
            await client.post(f"{API}/{one.id}/abandon")
            with sqlite3.connect(path) as store:
                values = (time.time() - days * 86_400, one.id)
                store.execute("UPDATE agent_conversations SET updated = ? WHERE id = ?", values)
        listed = (await client.get(API)).json()["data"]
    assert [one["id"] for one in listed] == [ended[29].id]


@pytest.mark.row("S000-03", "S000-06")
async def test_what_belongs_to_somebody_else_is_not_there(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    headers = {}
    store = await open_sqlite(tmp_path / "data" / "stepgate.db")
    for owner in ("anna", "bert"):
        _, text = await KeyStore(SqliteClient(store.database), time.time).create(owner, "k", ["agent", "ingest"])
        headers[owner] = {"authorization": f"Bearer {text}"}
    await store.close()
    async with client_of(serve, require_key="always") as client:
        client.headers.update(headers["anna"])
        hers = await talk(client, folder)
        client.headers.update(headers["bert"])
        path = f"{API}/{hers.id}"
        refused = [
            await client.get(path),
            await hers.ask("hello"),
            await hers.apply("x"),
            await client.post(f"{path}/abandon"),
            await client.post(f"{path}/uncertainties/unc_1/resolve", json={}),
            await client.get(f"/v1/sources/{hers.source_id}"),
            await client.delete(f"/v1/sources/{hers.source_id}"),
            await client.post(API, json={"source_id": hers.source_id}),
        ]
        assert [response.status_code for response in refused] == [404] * len(refused)
        assert (await client.get(API)).json()["data"] == []
        assert (await client.get("/v1/sources")).json()["data"] == []


@pytest.mark.row("S000-13")
async def test_applying_finds_what_blocks_by_its_index(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = papers(tmp_path / "data", 1)
    (folder / "locked.pdf").write_bytes(encrypted_pdf())
    asked: list[str] = []
    read = SqliteClient.read

    async def note(self: SqliteClient, statement: str, *values: object) -> list[tuple[object, ...]]:
        asked.append(statement)
        return await read(self, statement, *values)

    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        monkeypatch.setattr(SqliteClient, "read", note)
        assert (await mine.apply("papers")).json()["error"]["error_code"] == "ERR_BLOCKING_UNCERTAINTY"
        monkeypatch.undo()
    (statement,) = {one for one in asked if "conversation_uncertainties" in one and "blocking" in one}
    (path,) = (tmp_path / "data").glob("*.db")
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
        plan = store.execute(f"EXPLAIN QUERY PLAN {statement}", (mine.id,)).fetchall()
    assert "uncertainties_blocking_unresolved" in str(plan)


@pytest.mark.row("S000-48")
async def test_each_failure_has_a_code_and_the_details_that_its_caller_needs(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    (folder / "locked.pdf").write_bytes(encrypted_pdf())
    seen: dict[str, Any] = {}

    def note(response: httpx.Response) -> Any:
        failure = response.json()["error"]
        assert response.json()["detail"] == failure["message"]
        assert {"agent_id", "error_code", "message", "recoverable", "details", "timestamp"} <= set(failure)
        seen[failure["error_code"]] = response.status_code
        return failure["details"]

    async with client_of(serve, conversations_require_llm=True) as client:
        source = (await client.post("/v1/sources", json={"source_identifier": str(folder)})).json()
        note(await client.post(API, json={"source_id": source["id"]}))
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        note(await mine.apply("papers"))
        await mine.say(INDEX)
        blocked = note(await mine.apply("papers"))
        assert [one["severity"] for one in blocked["uncertainties"]] == ["blocking"]
        assert all(one["message"] for one in blocked["uncertainties"])
        assert (await mine.apply("papers", force=True)).status_code == 200
        note(await mine.ask("one more thing"))
        note(await client.get(f"{API}/none"))
    assert seen == {
        "ERR_LLM_NOT_CONFIGURED": 400,
        "ERR_PIPELINE_MISSING": 400,
        "ERR_BLOCKING_UNCERTAINTY": 400,
        "ERR_CONVERSATION_NOT_ACTIVE": 400,
        "ERR_NOT_FOUND": 404,
    }


async def test_an_approval_given_in_a_client_that_displays_another_question_applies_nothing(
    serve: Serve, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve) as client:
        mine = await talk(client, folder)
        await mine.say(INDEX)
        (asked,) = [one["approvals"] for one in await mine.say("apply papers") if one.get("approvals")]
        assert (await mine.look())["approvals"] == asked
        path = f"{API}/{mine.id}/messages"
        for displayed in ([], [f"apr_{'0' * 32}"]):
            refused = await client.post(path, json={"message": "approve", "approvals": displayed})
            assert (refused.status_code, "asked or decided elsewhere" in refused.text) == (409, True), refused.text
        assert (await mine.look())["status"] == "active"
        sent = {"message": "approve", "stream": False}
        assert (await client.post(path, json={**sent, "approvals": asked})).status_code == 200
        known = await mine.look()
        assert (known["status"], known["approvals"]) == ("applied", [])
        await client.get(f"/v1/jobs/{known['job_id']}", params={"wait_s": 30})
