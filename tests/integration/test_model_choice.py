"""`room@model`: a caller chooses one of the configured models where the room allows it, through every door."""

from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.support.model_endpoint import list_of, model_endpoint


def say_model(body: dict[str, Any]) -> str:
    """Answers with the name of the model that was asked."""
    return f"I am {body['model']}."


async def ask(client: httpx.AsyncClient, model: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "Who are you?"}]}
    return await client.post("/v1/chat/completions", json=body)


@pytest.mark.parametrize("fast", ["meta/llama3:8b", "qwen"])
async def test_each_chat_may_have_a_model_of_its_own(serve: Serve, fast: str) -> None:
    high = "qwen" if fast != "qwen" else "meta/llama3:8b"
    async with model_endpoint(list_of(fast, high), answer=say_model) as endpoint:
        options = {"llm_base_url": endpoint.url, "model_fast": fast, "model_high": high}
        async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            cards = {one["id"]: one for one in (await client.get("/v1/models")).json()["data"]}
            assert {f"chat@{fast}", f"chat@{high}"} < {*cards}
            assert (cards["chat"]["model"], cards[f"chat@{high}"]["room"]) == (None, "chat")
            assert (await client.get(f"/v1/models/chat@{high}")).json() == cards[f"chat@{high}"]

            reply = (await ask(client, f"chat@{high}")).json()
            assert reply["choices"][0]["message"]["content"] == f"I am {high}."
            assert reply["model"] == f"chat@{high}"
            assert (await ask(client, "chat")).json()["choices"][0]["message"]["content"] == f"I am {fast}."

            chat = (await client.post("/v1/conversations", json={})).json()["id"]
            for room, expected in ((f"chat@{high}", high), ("chat", None), (f"chat@{fast}", fast)):
                sent = await client.post(f"/v1/conversations/{chat}/messages", json={"content": "Hi", "room": room})
                assert sent.status_code == 202, sent.text
                await client.get(f"/v1/conversations/{chat}/messages/{sent.json()['answer']}/events")
                shown = (await client.get(f"/v1/conversations/{chat}/messages")).json()
                assert (shown["room"], shown["model"]) == ("chat", expected)
                assert shown["data"][-1]["content"] == f"I am {expected or fast}."
            runs = (await client.get("/v1/runs")).json()
            assert {one["room"] for one in runs["data"]} == {"chat"}, "a choice makes no room of its own"


async def test_a_room_limits_or_refuses_the_choice(serve: Serve) -> None:
    async with model_endpoint(list_of("small", "large"), answer=say_model) as endpoint:
        options = {"llm_base_url": endpoint.url, "model_fast": "small", "model_high": "large"}
        async with serve(None, **options) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            rooms: dict[str, dict[str, Any]] = {
                "pinned": {"fast_model": "small"}, "closed": {"models": []}, "one": {"models": ["large"]},
            }  # fmt: skip
            for name, fields in rooms.items():
                made = await client.post("/v1/rooms", json={"id": name, "name": name, "planning": False, **fields})
                assert made.status_code == 201, made.text
            listed = {one["id"] for one in (await client.get("/v1/models")).json()["data"]}
            assert "one@large" in listed
            assert not any(one.startswith(("pinned@", "closed@", "one@small")) for one in listed)
            assert (await ask(client, "one@large")).json()["choices"][0]["message"]["content"] == "I am large."
            for refused, word in (
                ("pinned@large", "use 'pinned'"), ("closed@small", "use 'closed'"), ("one@small", "choose: large"),
                ("chat@gpt-9", "small, large"), ("chat@", "small, large"), ("nowhere@small", "known rooms"),
                (f"chat@{'x' * 5000}", "small, large"),
            ):  # fmt: skip
                reply = await ask(client, refused)
                assert reply.status_code == 404, refused
                assert word in reply.json()["error"]["message"]
                assert len(reply.text) < 1000


async def test_one_model_is_no_choice(serve: Serve) -> None:
    async with (
        model_endpoint(list_of("only"), answer=say_model) as endpoint,
        serve(None, llm_base_url=endpoint.url, model_fast="only") as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        assert not any("@" in one["id"] for one in (await client.get("/v1/models")).json()["data"])
        assert (await ask(client, "chat@only")).json()["choices"][0]["message"]["content"] == "I am only."
