"""Chats and sessions in the room that builds pipelines: their runs are messages of the builder's conversation."""

import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.storage.api_keys import KeyStore
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.features.pipeline_builder.engine.pipeline_hooks import NOT_VALIDATED
from tests.integration.conftest import Serve
from tests.support.script import Call, Rule, Script, says, script
from tests.support.talks import API, papers, talk

CHAT = {"X-OpenWebUI-Chat-Id": "chat-7"}


@contextlib.asynccontextmanager
async def client_of(serve: Serve, model: Script | None, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(model, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


def calls(tool: str, /, **args: Any) -> Rule:
    """The next turn of the skill asks for this call."""
    return says(to="skill", times=1, calls=(Call(tool, args, id=f"call_{tool}"),))


async def ask(client: httpx.AsyncClient, *said: str, model: str = "pipelines", **headers: str) -> httpx.Response:
    """The chat so far, of which the user begins, as a client of OpenAI's API sends it."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    sent = {**CHAT, **headers}
    return await client.post("/v1/chat/completions", json={"model": model, "messages": messages}, headers=sent)


def text_of(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    content: str = response.json()["choices"][0]["message"]["content"]
    return content


async def look(client: httpx.AsyncClient, name: str, **headers: str) -> dict[str, Any]:
    response = await client.get(f"{API}/{name}", headers=headers)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


@pytest.mark.row("S000-06", "S000-11", "S000-15")
async def test_the_turns_of_a_chat_go_on_with_one_pipeline(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 3)
    analysis = {"summary": "Papers on kelp.", "uncertainties": [{"severity": "notable", "message": "all alike"}]}
    model = script(
        says(json.dumps(analysis), to="subagent", about="Analyse the source", times=1),
        calls("spawn_source_analyzer", source_id=str(folder), user_intent="index"),
        says("Papers. Shall I propose something?", to="skill", times=1),
        calls("build_pipeline", template="reports"),
        says("I propose the template reports.", to="skill", times=1),
    )
    async with client_of(serve, model) as client:
        first = f"Index {folder}"
        answer = text_of(await ask(client, first))
        known = await look(client, "chat-7")
        assert (known["source_analysis"]["total_files"], known["current_pipeline"]) == (3, None)
        assert [one["message"] for one in known["uncertainties"] if one["origin"] == "source_analyzer"]
        assert known["run_id"] is None, "the answer is settled"
        spent = known["usage"]["total_tokens"]
        assert spent > 0
        proposed = text_of(await ask(client, first, answer, "Go on"))
        assert proposed == f"I propose the template reports.\n\n{NOT_VALIDATED}"
        later = await look(client, "chat-7")
        assert (later["id"], later["current_pipeline"]["template"]) == (known["id"], "reports")
        assert later["usage"]["total_tokens"] > spent
        assert "template 'reports'" in later["summary"]
        assert [one["content"] for one in later["messages"] if one["role"] == "user"] == [first, "Go on"]
        assert [one["role"] for one in later["messages"]].count("assistant") == 2
        other = await ask(client, "Hello", **{"X-OpenWebUI-Chat-Id": "chat-8"})
        assert other.status_code in (200, 502), "no rule is left for it"
        assert (await look(client, "chat-8"))["id"] != known["id"]
        listed = (await client.get(API)).json()["data"]
        assert len(listed) == 2


@pytest.mark.row("S000-06", "S003-38")
async def test_a_session_goes_on_with_a_conversation_of_the_other_door(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 2)
    async with client_of(serve, None, conversations_require_llm=False) as client:
        mine = await talk(client, folder)
        sent = {"prompt": "Help me index these research papers", "room": "pipelines", "session_id": mine.id}
        first = await client.post("/v1/agent", json=sent)
        assert first.status_code == 200, first.text
        assert "template 'reports'" in first.json()["response"]
        known = await mine.look()
        assert known["current_pipeline"]["template"] == "reports"
        assert {one["role"] for one in known["messages"]} == {"user", "tool", "subagent", "assistant"}
        waits = await client.post("/v1/agent", json={**sent, "prompt": "apply papers"})
        assert "Approval needed" in waits.json()["response"]
        told = await client.post("/v1/agent", json={**sent, "prompt": "approve"})
        assert told.json()["metadata"]["run_id"] == waits.json()["metadata"]["run_id"]
        known = await mine.look()
        assert known["status"] == "applied"
        await client.get(f"/v1/jobs/{known['job_id']}", params={"wait_s": 30})
        over = await client.post("/v1/agent", json=sent)
        assert (over.status_code, over.json()["error"]["error_code"]) == (400, "ERR_CONVERSATION_NOT_ACTIVE")
        chat = await ask(client, "one more thing", **{"X-OpenWebUI-Chat-Id": mine.id})
        assert (chat.status_code, chat.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_session_id_is_another_name_of_conversation_id(serve: Serve) -> None:
    async with client_of(serve, None) as client:
        first = await client.post("/v1/agent", json={"prompt": "What is 2+3?", "session_id": "s"})
        assert first.json()["response"] == "2+3 = 5"
        listed = (await client.get("/v1/runs")).json()["data"]
        assert [run["conversation_id"] for run in listed] == ["s"]
        both = await client.post("/v1/agent", json={"prompt": "x", "session_id": "s", "conversation_id": "s"})
        assert both.status_code == 200
        differ = await client.post("/v1/agent", json={"prompt": "x", "session_id": "s", "conversation_id": "t"})
        assert (differ.status_code, "session_id" in differ.json()["error"]["message"]) == (400, True)


async def test_the_client_s_background_prompts_belong_to_no_conversation(serve: Serve) -> None:
    async with client_of(serve, script(says("A title"))) as client:
        assert text_of(await ask(client, "### Task:\nMake a title")) == "A title"
        assert (await client.get(API)).json()["data"] == []


async def test_a_chat_of_another_room_is_tied_to_its_conversation(serve: Serve) -> None:
    async with client_of(serve, None) as client:
        assert text_of(await ask(client, "What is 2+3?", model="stepgate")) == "2+3 = 5"
        assert [run["conversation_id"] for run in (await client.get("/v1/runs")).json()["data"]] == ["chat-7"]
        assert (await client.get(API)).json()["data"] == [], "it builds no pipeline"


@pytest.mark.row("S000-29")
async def test_only_a_key_that_may_approve_gives_the_word(serve: Serve, tmp_path: Path) -> None:
    headers = {}
    store = await open_sqlite(tmp_path / "data" / "stepgate.db")
    for name, scopes in (("may", ["chat", "agent", "ingest", "approve"]), ("may not", ["chat", "agent", "ingest"])):
        _, text = await KeyStore(SqliteClient(store.database), time.time).create("anna", name, scopes)
        headers[name] = {"authorization": f"Bearer {text}"}
    await store.close()
    folder = papers(tmp_path / "data", 1)
    model = script(
        calls("build_pipeline", template="reports"),
        calls("apply_pipeline", collection_name="kelp"),
        says("It is being indexed.", to="skill"),
    )
    async with client_of(serve, model, require_key="always") as client:
        client.headers.update(headers["may not"])
        mine = await talk(client, folder)
        assert "Approval needed" in (await mine.ask("Apply it as kelp")).json()["response"]
        refused = [
            await mine.ask("yes"),
            await client.post("/v1/agent", json={"prompt": "yes", "room": "pipelines", "session_id": mine.id}),
            await ask(client, "yes", **{"X-OpenWebUI-Chat-Id": mine.id}),
        ]
        assert [response.status_code for response in refused] == [403] * 3, [r.text for r in refused]
        assert (await mine.look())["status"] == "active"
        client.headers.update(headers["may"])
        assert (await mine.ask("yes")).json()["response"] == "It is being indexed."
        known = await mine.look()
        assert known["status"] == "applied"
        await client.get(f"/v1/jobs/{known['job_id']}", params={"wait_s": 30})
