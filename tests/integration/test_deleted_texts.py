"""What a person deletes does not come back: not from memory, and not as the answer to a repeated request."""

import asyncio
from typing import Any

import httpx

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
