"""`/v1/conversations/{id}/state`: a conversation as its next run finds it, over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from gateway.doors.sessions import ConversationState
from tests.integration.conftest import Serve
from tests.support.script import plans, says, script
from tests.support.talks import API


@contextlib.asynccontextmanager
async def client_of(serve: Serve, *rules: Any, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serve(script(*rules) if rules else None, **options) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        yield client


async def state(client: httpx.AsyncClient, name: str) -> ConversationState:
    """The state; written as JSON and read again it is the same."""
    response = await client.get(f"/v1/conversations/{name}/state")
    assert response.status_code == 200, response.text
    found = ConversationState.model_validate_json(response.content)
    assert ConversationState.model_validate_json(found.model_dump_json()) == found
    assert set(response.json()) == {
        "session_id", "history", "current_plan", "accumulated_context", "user_preferences"
    }  # fmt: skip
    return found


async def ask(client: httpx.AsyncClient, prompt: str, name: str, **more: Any) -> str:
    response = await client.post("/v1/agent", json={"prompt": prompt, "session_id": name, **more})
    assert response.status_code == 200, response.text
    answer: str = response.json()["response"]
    return answer


@pytest.mark.row("S003-36", "S003-37", "S003-38")
async def test_a_turn_adds_two_messages_and_leaves_no_context(serve: Serve) -> None:
    async with client_of(serve) as client:
        assert (await client.get("/v1/conversations/s/state")).status_code == 404
        await ask(client, "remember that I like short answers", "other")
        assert await ask(client, "What is 2+3?", "s") == "2+3 = 5"
        first = await state(client, "s")
        assert [(one.role, one.content) for one in first.history] == [
            ("user", "What is 2+3?"),
            ("assistant", "2+3 = 5"),
        ]
        assert first.current_plan is not None
        calls = [(step.tool_call, step.status) for step in first.current_plan]
        assert calls == [("calculator(expression='2+3')", "completed")]
        assert first.accumulated_context == ()
        assert list(first.user_preferences.values()) == ["I like short answers"]
        await ask(client, "What is 4+4?", "s")
        assert len((await state(client, "s")).history) == len(first.history) + 2


@pytest.mark.row("S003-36")
async def test_a_question_has_the_time_it_was_asked_at_and_an_answer_the_time_it_was_given_at(serve: Serve) -> None:
    async with client_of(serve, says("It is five.", to="completion", delay_s=0.6)) as client:
        before = datetime.now(UTC)
        await ask(client, "How much is two and three?", "s")
        asked, answered = (await state(client, "s")).history
    assert before - timedelta(seconds=0.01) <= asked.timestamp
    assert answered.timestamp - asked.timestamp >= timedelta(seconds=0.5)


@pytest.mark.row("S003-36", "S003-37")
async def test_a_run_under_way_shows_what_it_has_gathered(serve: Serve) -> None:
    plan = plans({"tool": "calculator", "inputs": {"expression": "2+3"}}, {"tool": "completion", "depends_on": ["s1"]})
    slow = says("It is five.", to="completion", delay_s=1.0)
    async with client_of(serve, plan, slow) as client:
        asking = asyncio.create_task(ask(client, "Search my files, then add 2+3", "s"))
        async with asyncio.timeout(10):
            while True:
                response = await client.get("/v1/conversations/s/state")
                if response.status_code == 200 and response.json()["accumulated_context"]:
                    break
                await asyncio.sleep(0.05)
        (gathered,) = response.json()["accumulated_context"]
        assert (gathered["step_id"], gathered["tool"], gathered["content"]) == ("s1", "calculator", "2+3 = 5")
        assert response.json()["history"] == []
        assert (await client.delete("/v1/conversations/s/state")).status_code == 409
        await asking
        assert (await state(client, "s")).accumulated_context == ()


@pytest.mark.row("S003-37")
async def test_a_cleared_conversation_begins_anew(serve: Serve, model_server: Any) -> None:
    async with client_of(serve, says("Noted.")) as client:
        await ask(client, "My name is Ada", "a/b")
        assert (await client.delete("/v1/conversations/a/b/state")).status_code == 204
        assert (await client.get("/v1/conversations/a/b/state")).status_code == 404
        assert (await client.delete("/v1/conversations/a/b/state")).status_code == 404
        await ask(client, "Who am I?", "a/b")
        assert "Ada" not in str(model_server.requests()[-1]["body"]["messages"])
        assert len((await state(client, "a/b")).history) == 2
        assert len((await client.get("/v1/runs")).json()["data"]) == 2, "the runs stay"


async def test_a_chat_about_a_pipeline_has_a_state_too(serve: Serve) -> None:
    async with client_of(serve, conversations_require_llm=False) as client:
        chat = {"model": "pipelines", "messages": [{"role": "user", "content": "status"}]}
        await client.post("/v1/chat/completions", json=chat, headers={"X-OpenWebUI-Chat-Id": "c"})
        assert [one.role for one in (await state(client, "c")).history] == ["user", "assistant"]
        assert (await client.get(f"{API}/c")).json()["messages"][0]["role"] == "user"
        assert (await client.delete("/v1/conversations/c/state")).status_code == 204
        assert (await client.get(f"{API}/c")).json()["messages"] == []


@pytest.mark.row("S003-36")
async def test_a_session_of_the_query_door_has_a_state_under_its_own_id(serve: Serve) -> None:
    async with client_of(serve) as client:
        for user, question in (("ann", "What is 2+3?"), ("ann", "What is 4+4?")):
            body = {"user_message": question, "session_id": "s1", "user_id": user, "room": "stepgate"}
            assert (await client.post("/query", json=body)).status_code == 200
        found = await state(client, "s1")
        assert [one.content for one in found.history] == ["What is 2+3?", "2+3 = 5", "What is 4+4?", "4+4 = 8"]
        of_ann = await client.get("/v1/conversations/s1/state?user_id=ann")
        assert ConversationState.model_validate_json(of_ann.content) == found
        assert (await client.get("/v1/conversations/s1/state?user_id=bob")).status_code == 404
        assert (await client.get("/v1/conversations/1/state")).status_code == 404, "part of a name is no name"

        body = {"user_message": "What is 1+1?", "session_id": "s1", "user_id": "bob", "room": "stepgate"}
        await client.post("/query", json=body)
        refused = await client.get("/v1/conversations/s1/state")
        assert refused.status_code == 409
        assert "user_id" in refused.json()["error"]["message"]
        assert (await client.delete("/v1/conversations/s1/state?user_id=bob")).status_code == 204
        assert (await client.get("/v1/conversations/s1/state?user_id=bob")).status_code == 404
        assert (await state(client, "s1")).history == found.history, "the other user's session stays"


async def test_a_session_whose_name_holds_a_slash_is_not_another_users(serve: Serve) -> None:
    async with client_of(serve) as client:
        body = {"user_message": "What is 2+3?", "user_id": "acme/ann", "session_id": "s", "room": "stepgate"}
        asked = await client.post("/query", json=body)
        assert asked.status_code == 200, asked.text
        assert (await client.get("/v1/conversations/s/state?user_id=acme/ann")).status_code == 200
        assert (await client.get("/v1/conversations/ann/s/state?user_id=acme")).status_code == 404
