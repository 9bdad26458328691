"""A conversation that goes on at another door: what an earlier answer carried is not done there without a question."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.test_history_labels import CARRIED, FIRST, READ, STOLEN, THANKS, bank
from tests.support.script import plans, says
from tests.support.website import Page, Website

__all__ = ["bank"]

COMPLETE = {"tool": "completion"}
ENDED = ("succeeded", "awaiting_approval", "failed", "partial", "awaiting_input", "cancelled")
Door = Callable[[httpx.AsyncClient, str, str], Awaitable[httpx.Response]]


HARBOUR, NEXT = "What is the harbour code in notes.md?", "Thanks. And what is new?"
CODE = "The harbour code is zanzibar 48213."
HISTORY = {
    THANKS: [("user", READ), ("assistant", CARRIED)],
    NEXT: [("user", HARBOUR), ("assistant", CODE)],
}


async def agent(client: httpx.AsyncClient, conversation: str, text: str) -> httpx.Response:
    return await client.post("/v1/agent", json={"prompt": text, "conversation_id": conversation})


async def responses(client: httpx.AsyncClient, conversation: str, text: str) -> httpx.Response:
    return await client.post("/v1/responses", json={"model": "stepgate", "conversation": conversation, "input": text})


async def messages(client: httpx.AsyncClient, conversation: str, text: str) -> httpx.Response:
    return await client.post(f"/v1/conversations/{conversation}/messages", json={"content": text})


async def query(client: httpx.AsyncClient, conversation: str, text: str) -> httpx.Response:
    body = {"user_message": text, "session_id": conversation, "user_id": "u", "room": "stepgate"}
    return await client.post("/query", json=body)


async def a2a(client: httpx.AsyncClient, conversation: str, text: str) -> httpx.Response:
    message = {"kind": "message", "messageId": text, "role": "user", "parts": [{"kind": "text", "text": text}]}
    params = {"message": {**message, "contextId": conversation}}
    return await client.post("/a2a", json={"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params})


async def ag_ui(client: httpx.AsyncClient, conversation: str, text: str) -> httpx.Response:
    said = HISTORY.get(text, [])  # this client sends its history
    turn = [{"id": one, "role": role, "content": one} for role, one in (*said, ("user", text))]
    body = {"threadId": conversation, "runId": text, "protocolVersion": "1.0", "messages": turn}
    empty: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return await client.post("/v1/ag-ui", json={**body, **empty})


DOORS: dict[str, Door] = {
    "agent": agent, "responses": responses, "messages": messages, "query": query, "a2a": a2a, "ag-ui": ag_ui,
}  # fmt: skip


async def say(client: httpx.AsyncClient, door: str, conversation: str, text: str) -> str:
    """Sends a message and returns the status of its run once that has ended or waits."""
    before = len((await client.get("/v1/runs")).json()["data"])
    answer = await DOORS[door](client, conversation, text)
    assert answer.is_success, answer.text
    async with asyncio.timeout(20):
        while True:
            runs = (await client.get("/v1/runs")).json()["data"]
            if len(runs) > before and runs[0]["status"] in ENDED:
                return str(runs[0]["status"])
            await asyncio.sleep(0.05)


NAMES = [*DOORS]
PAIRS = [*zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)]
"""Each door once as the first and once as the second; all 36 pairs take minutes."""


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_an_effect_that_an_answer_at_another_door_carried_asks(bank: Any, first: str, second: str) -> None:
    async with bank(*FIRST, plans(STOLEN, COMPLETE, about="9000 to EVE-77", times=1)) as it:
        conversation = (await it.client.post("/v1/conversations", json={})).json()["id"]
        statuses = [await say(it.client, first, conversation, READ), await say(it.client, second, conversation, THANKS)]
        is_shared = (first == "query") == (second == "query") or second == "ag-ui"
        assert statuses == ["succeeded", "awaiting_approval" if is_shared else "succeeded"]
        assert it.effects == []


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_words_of_a_file_leave_in_no_later_message(bank: Any, tmp_path: Path, first: str, second: str) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "notes.md").write_text(CODE)
    reads = {"tool": "read_file", "inputs": {"path": "notes.md"}}
    async with Website() as sink:
        sink.put("/", Page(b"<p>A page with enough words to be read as one.</p>"))
        fetches = {"tool": "web_fetch", "inputs": {"url": sink.at("/?d=$s1.output")}}
        rules = (
            plans(reads, COMPLETE, about=HARBOUR, times=1),
            says(CODE, to="completion", times=1),
            plans(reads, {**fetches, "depends_on": ["s1"]}, COMPLETE, about="zanzibar", times=1),
        )
        options: dict[str, Any] = {"file_roots": (files,), "fetch_allow_hosts": (f"127.0.0.1:{sink.port}",)}
        async with bank(*rules, **options) as it:
            conversation = (await it.client.post("/v1/conversations", json={})).json()["id"]
            statuses = [
                await say(it.client, first, conversation, HARBOUR),
                await say(it.client, second, conversation, NEXT),
            ]
            is_shared = (first == "query") == (second == "query") or second == "ag-ui"
            assert statuses == ["succeeded", "awaiting_approval" if is_shared else "succeeded"]
            assert sink.paths() == []
