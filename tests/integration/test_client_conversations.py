"""`/v1/conversations` by the official SDK: made, filled, used by runs, paged and deleted; by owner."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from agent.core.models import LOCAL_OWNER
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.features.documents.engine.ingest.collection_lock import lock_collection
from gateway.features.documents.engine.search.documents import DocumentStore
from tests.integration.conftest import Serve
from tests.integration.test_audit import keys_of
from tests.support.keys import bearer
from tests.support.mcp_client import until_async
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

Headers = dict[str, str] | None
ADA: dict[str, Any] = {"type": "message", "role": "user", "content": "I am Ada-Marie."}


@asynccontextmanager
async def connected(serve: Serve, **settings: Any) -> AsyncIterator[tuple[openai.AsyncOpenAI, ScriptedServer]]:
    with ScriptedServer(script(says("You are Ada-Marie.", about="Who am I?"), says("Hello."))) as upstream:
        async with (
            serve(llm_base_url=upstream.url, model_fast="m", **settings) as url,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
        ):
            yield client, upstream


async def test_a_conversation_holds_what_runs_and_the_client_said(serve: Serve) -> None:
    async with connected(serve) as (client, upstream):
        made = await client.conversations.create(metadata={"topic": "names"}, items=[ADA])  # type: ignore[list-item]
        answer = await client.responses.create(model="chat", input="Who am I?", conversation=made.id)
        assert answer.output_text == "You are Ada-Marie."
        sent = upstream.requests()[-1]["body"]["messages"]
        assert [message["content"] for message in sent if message["role"] != "system"] == [
            "I am Ada-Marie.",
            "Who am I?",
        ]
        items = [item async for item in client.conversations.items.list(made.id, order="asc", limit=2)]
        assert [(item.type, item.role, item.content[0].text) for item in items] == [  # type: ignore[index, union-attr]
            ("message", "user", "I am Ada-Marie."),
            ("message", "user", "Who am I?"),
            ("message", "assistant", "You are Ada-Marie."),
        ]
        one = await client.conversations.items.retrieve(items[2].id or "", conversation_id=made.id)
        assert one.to_dict() == items[2].to_dict()
        newest = await client.conversations.items.list(made.id, limit=1)
        assert newest.has_more
        assert newest.data[0].id == items[2].id
        read = await client.conversations.retrieve(made.id)
        assert read.metadata == {"topic": "names"}
        changed = await client.conversations.update(made.id, metadata={"topic": "people"})
        assert (changed.metadata, changed.created_at) == ({"topic": "people"}, made.created_at)


async def test_calls_are_kept_for_the_client_and_deleted_items_are_forgotten(serve: Serve) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "42"}
    async with connected(serve) as (client, upstream):
        made = await client.conversations.create()
        added = await client.conversations.items.create(made.id, items=[ADA, call, output])  # type: ignore[list-item]
        assert [item.type for item in added.data] == ["message", "function_call", "function_call_output"]
        assert len({item.id for item in added.data}) == 3
        await client.conversations.items.delete(added.data[0].id or "", conversation_id=made.id)
        await client.responses.create(model="chat", input="Who am I?", conversation=made.id)
        sent = upstream.requests()[-1]["body"]["messages"]
        assert not any("Ada-Marie" in str(message["content"]) for message in sent)
        left = [item.type async for item in client.conversations.items.list(made.id)]
        assert sorted(left) == ["function_call", "function_call_output", "message", "message"]
        turn, *_ = [item async for item in client.conversations.items.list(made.id)]
        await client.conversations.items.delete(turn.id or "", conversation_id=made.id)
        assert len([item async for item in client.conversations.items.list(made.id)]) == 3
        with pytest.raises(openai.NotFoundError, match="no item"):
            await client.conversations.items.delete("msg_unknown", conversation_id=made.id)


@pytest.mark.parametrize("role", ["developer", "system"])
async def test_instructions_stay_instructions(serve: Serve, role: str) -> None:
    rule = {"type": "message", "role": role, "content": [{"type": "input_text", "text": "Answer in one word."}]}
    async with connected(serve) as (client, upstream):
        made = await client.conversations.create(items=[rule, ADA])  # type: ignore[list-item]
        await client.responses.create(model="chat", input="Who am I?", conversation=made.id)
        sent = upstream.requests()[-1]["body"]["messages"]
    assert "Answer in one word." in sent[0]["content"]
    assert [one["role"] for one in sent if "one word" in str(one["content"])] == ["system"]


async def test_a_picture_of_an_item_is_refused_and_not_dropped(serve: Serve) -> None:
    picture = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    item: dict[str, Any] = {"type": "message", "role": "user", "content": [picture]}
    async with connected(serve) as (client, _):
        made = await client.conversations.create()
        with pytest.raises(openai.BadRequestError, match="has text alone; send its pictures in the `input`"):
            await client.conversations.items.create(made.id, items=[ADA, item])  # type: ignore[list-item]
        assert [one async for one in client.conversations.items.list(made.id)] == []


async def test_a_deleted_conversation_is_gone_with_its_items(serve: Serve) -> None:
    async with connected(serve) as (client, _):
        made = await client.conversations.create(items=[ADA])  # type: ignore[list-item]
        assert (await client.conversations.delete(made.id)).deleted
        for use in (client.conversations.retrieve, client.conversations.delete):
            with pytest.raises(openai.NotFoundError, match="no conversation"):
                await use(made.id)
        with pytest.raises(openai.NotFoundError):
            await client.conversations.items.list(made.id)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"items": [ADA] * 21}, "items"),
        ({"items": [{"type": "hologram_call"}]}, "items[0]"),
        ({"items": [{"role": "nobody", "content": "x"}]}, "items[0].role"),
        ({"metadata": {"a": "x" * 513}}, "metadata"),
        ({"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
        ({"metadata": {"a": 1}}, "metadata"),
    ],
)
async def test_what_cannot_be_kept_is_refused_with_its_place(serve: Serve, fields: Any, words: str) -> None:
    async with connected(serve) as (client, _):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.conversations.create(**fields)
        assert words in str(caught.value)


async def test_conversations_belong_to_their_owner(serve: Serve, tmp_path: Path) -> None:
    async with connected(serve, require_key="always") as (client, _), keys_of(tmp_path / "data") as keys:
        _, hers = await keys.create("anna", "laptop", ["chat"], by="test")
        _, his = await keys.create("bert", "phone", ["chat"], by="test")
        anna, bert = client.with_options(api_key=hers), client.with_options(api_key=his)
        made = await anna.conversations.create(items=[ADA])  # type: ignore[list-item]
        for use in (bert.conversations.retrieve, bert.conversations.delete):
            with pytest.raises(openai.NotFoundError):
                await use(made.id)
        with pytest.raises(openai.NotFoundError):
            await bert.conversations.items.create(made.id, items=[ADA])  # type: ignore[list-item]
        assert len([item async for item in anna.conversations.items.list(made.id)]) == 1


async def test_secrets_of_the_gateway_are_not_kept(serve: Serve) -> None:
    async with connected(serve, llm_api_key="sk-of-the-gateway-123456") as (client, _):
        told = {**ADA, "content": "the key is sk-of-the-gateway-123456"}
        made = await client.conversations.create(items=[told])  # type: ignore[list-item]
        (item,) = [item async for item in client.conversations.items.list(made.id)]
        assert "sk-of-the-gateway" not in str(item.to_dict())


async def read_into(client: httpx.AsyncClient, collection: str, headers: Headers = None) -> None:
    sent = {"file": ("tides.md", b"# Tides\n\nHigh water is at noon.")}
    answer = await client.post("/v1/documents", files=sent, data={"collection": collection}, headers=headers)
    assert answer.is_success, answer.text


async def list_collections(client: httpx.AsyncClient, headers: Headers = None) -> set[str]:
    return {one["name"] for one in (await client.get("/v1/collections", headers=headers)).json()["data"]}


async def begin(client: httpx.AsyncClient, collection: str = "", headers: Headers = None) -> tuple[str, str]:
    """The address of a new conversation, and the collection of its own files; `collection` is noted in it."""
    noted = {"metadata": {"collection": collection}} if collection else {}
    made = (await client.post("/v1/conversations", json=noted, headers=headers)).json()["id"]
    return f"/v1/conversations/{made}", f"chat-{made.removeprefix('conv_')[:20]}"


async def test_the_files_of_a_conversation_go_with_it(serve: Serve) -> None:
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        chat, files = await begin(client)
        other, others = await begin(client, "harbour")
        for collection in (files, others, "harbour"):
            await read_into(client, collection)
        await client.post(chat, json={"metadata": {"collection": files}})
        assert (await client.delete(chat)).json()["deleted"]
        assert await list_collections(client) == {others, "harbour"}
        (entry, *_) = (await client.get("/v1/audit", params={"action": "collection.delete"})).json()["data"]
        assert entry["target"] == files
        await client.delete(other)
        assert await list_collections(client) == {"harbour"}, "what is noted in it is not its own"
        empty, _ = await begin(client)
        assert (await client.delete(empty)).status_code == 200


async def test_files_that_another_conversation_or_a_room_reads_stay(serve: Serve, tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    async with serve(None, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        chat, files = await begin(client)
        reader, _ = await begin(client, files)
        await read_into(client, files)
        await client.delete(chat)
        assert await list_collections(client) == {files}
        assert (await client.delete(reader)).status_code == 200
        assert await list_collections(client) == {files}, "that was not its own"
        second, names = await begin(client)
        await read_into(client, names)
        made = await client.post("/v1/rooms", json={"name": "Tides", "knowledge": True, "collections": [names]})
        assert made.is_success, made.text
        await client.delete(second)
        assert await list_collections(client) == {files, names}


async def test_only_a_key_that_may_delete_documents_deletes_them_with_a_conversation(
    serve: Serve, tmp_path: Path
) -> None:
    async with (
        serve(None, require_key="always") as url,
        keys_of(tmp_path / "data") as keys,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        texts = [
            (await keys.create(owner, "k", scopes, by="test"))[1]
            for owner, scopes in (("anna", ["chat"]), ("anna", ["chat", "agent", "ingest"]), ("bob", ["admin"]))
        ]
        reader, writer, bob = (bearer(text) for text in texts)
        kept, kept_files = await begin(client, headers=reader)
        gone, gone_files = await begin(client, headers=reader)
        foreign = "conv_" + "a" * 48  # an id that the client chose: its digits say nothing
        named = {"prompt": "what is 6*7?", "conversation_id": foreign}
        assert (await client.post("/v1/agent", json=named, headers=writer)).is_success
        for collection in (kept_files, gone_files, f"chat-{'a' * 20}"):
            await read_into(client, collection, headers=writer)
            await read_into(client, collection, headers=bob)
        assert (await client.delete(kept, headers=reader)).status_code == 200
        assert (await client.delete(gone, headers=bob)).status_code == 404
        assert (await client.delete(gone, headers=writer)).status_code == 200
        assert (await client.delete(f"/v1/conversations/{foreign}", headers=writer)).status_code == 200
        assert await list_collections(client, headers=writer) == {kept_files, f"chat-{'a' * 20}"}
        assert len(await list_collections(client, headers=bob)) == 3, "those of another owner"


async def test_files_that_are_being_read_go_after_that(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.features.documents.engine.ingest.later_drops.FIRST_PAUSE_SECONDS", 0.05)
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        chat, files = await begin(client)
        await read_into(client, files)
        store = await open_sqlite(tmp_path / "data" / "stepgate.db")
        async with lock_collection(DocumentStore(SqliteClient(store.database), time.time), LOCAL_OWNER, files):
            assert (await client.delete(chat)).status_code == 200
            assert await list_collections(client) == {files}
        await store.close()

        async def is_gone() -> bool:
            return await list_collections(client) == set()

        await until_async(is_gone)


async def test_deleting_a_conversation_ends_its_run_and_keeps_no_word_of_it(serve: Serve) -> None:
    slow = script(says("The harbour was quiet. " * 40, pause_s=0.2))
    async with serve(slow) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        chat = f"/v1/conversations/{(await client.post('/v1/conversations', json={})).json()['id']}"
        sent = await client.post(f"{chat}/messages", json={"content": "How was the harbour?", "room": "chat"})
        assert (await client.delete(chat)).status_code == 200
        run = f"/v1/runs/{sent.json()['run_id']}"
        async with client.stream("GET", f"{run}/events") as following:
            async for _ in following.aiter_lines():
                pass
        assert (await client.get(run)).json()["status"] == "cancelled"
        for path in ("", "/messages", "/items", "/export"):
            assert (await client.get(chat + path)).status_code == 404, path
