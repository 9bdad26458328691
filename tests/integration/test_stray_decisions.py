"""A yes or no to a question that is no longer open is answered with a sentence, at every door, and plans nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve
from tests.integration.test_approval_doors import reply, rooms
from tests.integration.test_cli import stepgate
from tests.integration.test_openai_door import ASK, MODEL, user
from tests.support.keys import bearer, created_key

__all__ = ["rooms"]

NOTHING = "Nothing is waiting for approval"
Talk = Callable[[httpx.AsyncClient, list[str]], Awaitable[httpx.Response]]


async def chat(client: httpx.AsyncClient, said: list[str]) -> httpx.Response:
    """Sends each message with the history that came of the ones before; returns the last response."""
    messages: list[dict[str, Any]] = []
    for words in said:
        messages.append({"role": "user", "content": words})
        answer = await client.post("/v1/chat/completions", json={"model": "careful", "messages": messages})
        if answer.is_success:
            messages.append(answer.json()["choices"][0]["message"])
    return answer


async def agent(client: httpx.AsyncClient, said: list[str]) -> httpx.Response:
    made = (await client.post("/v1/conversations", json={})).json()["id"]
    for words in said:
        body = {"prompt": words, "room": "careful", "conversation_id": made}
        answer = await client.post("/v1/agent", json=body)
    return answer


async def messages(client: httpx.AsyncClient, said: list[str]) -> httpx.Response:
    made = (await client.post("/v1/conversations", json={})).json()["id"]
    for words, status in zip(said, ("awaiting_approval", "succeeded", ""), strict=True):
        answer = await client.post(f"/v1/conversations/{made}/messages", json={"content": words, "room": "careful"})
        for _ in range(200 if status else 0):
            if (await client.get(f"/v1/runs/{answer.json()['run_id']}")).json()["status"] == status:
                break
            await asyncio.sleep(0.05)
    return answer


async def query(client: httpx.AsyncClient, said: list[str]) -> httpx.Response:
    for words in said:
        body = {"user_message": words, "session_id": "s", "user_id": "anna", "room": "careful"}
        answer = await client.post("/query", json=body)
    return answer


async def responses(client: httpx.AsyncClient, said: list[str]) -> httpx.Response:
    earlier: dict[str, str] = {}
    for words in said:
        answer = await client.post("/v1/responses", json={"model": "careful", "input": words, **earlier})
        if answer.is_success:
            earlier = {"previous_response_id": answer.json()["id"]}
    return answer


TALKS: tuple[Talk, ...] = (chat, agent, messages, query, responses)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
@pytest.mark.parametrize("word", ["approve", "Reject", "/approve"])
async def test_a_second_decision_is_told_that_nothing_waits(
    serve: Serve, rooms: Path, tmp_path: Path, talk: Talk, word: str
) -> None:
    async with serve(MODEL, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        client.headers.update(bearer(await created_key(tmp_path / "data", "app", owner="local")))
        refused = await talk(client, [ASK, "approve", word])
        runs = (await client.get("/v1/runs")).json()["data"]
    assert (refused.status_code, refused.headers["x-should-retry"]) == (409, "false")
    assert NOTHING in refused.text
    assert [one["status"] for one in runs] == ["succeeded"], "the word is no request of its own"


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_a_yes_after_the_answer_is_a_message_like_any_other(
    serve: Serve, rooms: Path, tmp_path: Path, talk: Talk
) -> None:
    async with serve(MODEL, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        client.headers.update(bearer(await created_key(tmp_path / "data", "app", owner="local")))
        answered = await talk(client, [ASK, "approve", "yes"])
        runs = (await client.get("/v1/runs")).json()["data"]
    assert answered.is_success, answered.text
    assert len(runs) == 2


async def test_a_decided_question_that_is_sent_back_is_not_decided_again(serve: Serve, rooms: Path) -> None:
    async with serve(MODEL, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        asked = await client.post("/v1/chat/completions", json={"model": "careful", "messages": user()})
        question = asked.json()["choices"][0]["message"]["content"]
        for word, status in (("approve", 200), ("yes", 409), ("no", 409), ("approve", 409)):
            body = {"model": "careful", "messages": reply(question, word)}
            answer = await client.post("/v1/chat/completions", json=body)
            assert (answer.status_code, NOTHING in answer.text) == (status, status == 409), word
        changed = reply(question, "and what is 6*8?")
        assert (await client.post("/v1/chat/completions", json={"model": "careful", "messages": changed})).is_success


async def test_a_yes_that_comes_too_late_is_told_so(serve: Serve, rooms: Path) -> None:
    async with (
        serve(MODEL, rooms_dir=rooms, approval_seconds=1) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        made = (await client.post("/v1/conversations", json={})).json()["id"]
        talk = {"room": "careful", "conversation_id": made}
        asked = (await client.post("/v1/agent", json={"prompt": ASK, **talk})).json()
        path = f"/v1/runs/{asked['metadata']['run_id']}"
        for _ in range(100):
            if (await client.get(path)).json()["status"] != "awaiting_approval":
                break
            await asyncio.sleep(0.2)
        late = await client.post("/v1/agent", json={"prompt": "yes", **talk})
    assert (late.status_code, NOTHING in late.text) == (409, True)


async def test_where_nothing_was_asked_the_word_is_a_message(serve: Serve, rooms: Path) -> None:
    async with serve(MODEL, rooms_dir=rooms) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
        said = [{"role": "user", "content": "translate"}, {"role": "assistant", "content": "Which word?"}]
        said.append({"role": "user", "content": "approve"})
        answer = await client.post("/v1/chat/completions", json={"model": "careful", "messages": said})
    assert answer.is_success, answer.text


def test_the_command_line_says_that_nothing_waits(tmp_path: Path, rooms: Path) -> None:
    talk = ("ask", "--room", "careful", "--conversation", "c1")
    asked = stepgate(tmp_path, *talk, "What is 6*7?", rooms_dir=str(rooms))
    first = stepgate(tmp_path, *talk, "approve", rooms_dir=str(rooms))
    second = stepgate(tmp_path, *talk, "approve", rooms_dir=str(rooms))
    assert "runs approve" in asked[1]
    assert first[0] == 0, first
    assert (second[0], NOTHING in second[1]) == (1, True), second
