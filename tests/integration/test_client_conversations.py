"""`/v1/conversations` by the official SDK: made, filled, used by runs, paged and deleted; by owner."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_audit import keys_of
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

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
        ({"items": [{"type": "web_search_call"}]}, "items[0]"),
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
