"""Conversations that outlive their messages and the gateway: from what is kept they go on, and say so."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from agent.storage.ttl_store import LocalTtlStore
from gateway.features.pipeline_builder.engine.messages import MessageLog, list_chat_history
from tests.contract.journal_stores import Clock
from tests.integration.conftest import Serve
from tests.support.redis_server import URL, forget, keys, own_prefix
from tests.support.script import Call, Script, says, script
from tests.support.scripted_server import ScriptedServer
from tests.support.talks import API, Talk, frames, papers, read_answer, talk

INDEX = "Help me index these research papers"
DAY = 86_400.0


@contextlib.asynccontextmanager
async def client_of(serve: Serve, model: Script | None = None, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(model, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def analysed(client: httpx.AsyncClient, model_server: ScriptedServer, folder: Path) -> Talk:
    """A conversation that knows its source and has a pipeline."""
    mine = await talk(client, folder)
    final = says(json.dumps({"summary": "Papers on kelp."}), to="subagent", times=1)
    asks = says(to="skill", times=1, calls=(Call("spawn_source_analyzer", {"source_id": mine.source_id}),))
    builds = says(to="skill", times=1, calls=(Call("build_pipeline", {"template": "reports"}),))
    model_server.load(script(final, asks, builds, says("Shall I validate it?", to="skill", times=1)))
    await mine.say(INDEX)
    return mine


async def goes_on(client: httpx.AsyncClient, model_server: ScriptedServer, mine: Talk) -> None:
    """The next message is answered with what is kept in its prompt, and the trace says that messages have expired."""
    assert (await mine.look())["messages"] == []
    model_server.load(script(says("We were at the reports template.", to="skill")))
    found = await mine.say("Where were we?")
    told = "We were at the reports template.\n\nThe proposed pipeline was not validated yet."
    assert read_answer(found) == told
    prompt = json.dumps(model_server.requests()[-1]["body"]["messages"])
    for known in ("have expired", INDEX, "Papers on kelp.", "6 files", "liteparse"):
        assert known in prompt, known
    run = (await client.get(f"/v1/runs/{found[-1]['run_id']}")).json()
    assert "have expired" in json.dumps(run["response"]["steps"])
    model_server.load(script(says("Yes.", to="skill")))
    again = await mine.say("Sure?")
    run = (await client.get(f"/v1/runs/{again[-1]['run_id']}")).json()
    assert "have expired" not in json.dumps(run["response"]["steps"]), "there is a history again"


@pytest.mark.row("S000-17")
async def test_it_goes_on_when_redis_has_forgotten_the_messages(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data")
    with own_prefix() as prefix:
        async with client_of(serve, Script(), redis_url=URL, redis_prefix=prefix) as client:
            mine = await analysed(client, model_server, folder)
            assert f"{prefix}:agent:conversation:{mine.id}:messages" in keys(prefix)
            assert f"{prefix}:agent:conversation:{mine.id}:lock" not in keys(prefix), "it is given back"
            assert (await client.get("/ready")).json()["components"]["redis"]["ok"]
            assert forget(prefix, ":messages") >= 1
            await goes_on(client, model_server, mine)


@pytest.mark.row("S000-16", "S000-17")
async def test_messages_in_redis_outlive_the_gateway(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data")
    with own_prefix() as prefix:
        async with client_of(serve, Script(), redis_url=URL, redis_prefix=prefix) as client:
            mine = await analysed(client, model_server, folder)
            key = f"{prefix}:agent:conversation:{mine.id}:messages"
            with redis.Redis.from_url(URL) as server:
                server.expire(key, 100)
                model_server.load(script(says("Yes.", to="skill")))
                await mine.say("Sure?")
                assert DAY - 60 < int(str(server.ttl(key))) <= DAY, "24 hours after the last activity"
            before = (await mine.look())["messages"]
        async with client_of(serve, Script(), redis_url=URL, redis_prefix=prefix) as client:
            assert (await Talk(client, mine.id, mine.source_id).look())["messages"] == before


@pytest.mark.row("S000-17")
async def test_it_goes_on_after_a_restart_without_redis(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data")
    async with client_of(serve, Script()) as client:
        mine = await analysed(client, model_server, folder)
    async with client_of(serve, Script()) as client:
        await goes_on(client, model_server, Talk(client, mine.id, mine.source_id))


async def test_an_answer_that_a_restart_interrupts_is_given_afterwards(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve, Script(), drain_seconds=0) as client:
        mine = await talk(client, folder)
        model_server.load(script(says("Never heard.", to="skill", delay_s=30.0)))
        async with client.stream("POST", f"{API}/{mine.id}/messages", json={"message": INDEX}) as response:
            async for line in response.aiter_lines():
                if "get_pipeline_state" in line and "done" in line:
                    break
            assert (await mine.look())["run_id"] == response.headers["x-stepgate-run-id"]
    async with client_of(serve, script(says("Here I am again.", to="skill"))) as client:
        mine = Talk(client, mine.id, mine.source_id)
        run_id = response.headers["x-stepgate-run-id"]
        async with asyncio.timeout(30):
            await client.get(f"/v1/runs/{run_id}/events")
        known = await mine.look()
        assert known["run_id"] is None
        spoken = [one["content"] for one in known["messages"] if one["role"] in ("user", "assistant")]
        assert spoken == [INDEX, "Here I am again."]


async def test_redis_that_is_gone_refuses_messages_and_hides_nothing_else(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve, Script(), redis_url="redis://127.0.0.1:1/0") as client:
        mine = await talk(client, folder)
        refused = await mine.ask("hello")
        assert (refused.status_code, "AGENT_REDIS_URL" in refused.text) == (503, True)
        known = await mine.look()
        assert (known["messages"], "cannot be used" in known["messages_note"]) == ([], True)
        ready = await client.get("/ready")
        assert (ready.status_code, ready.json()["ready"], ready.json()["degraded"]) == (200, True, ["redis"])


async def test_applying_at_the_door_withdraws_the_question_in_the_conversation(
    serve: Serve, model_server: ScriptedServer, tmp_path: Path
) -> None:
    folder = papers(tmp_path / "data")
    async with client_of(serve, Script()) as client:
        mine = await analysed(client, model_server, folder)
        applies = says(to="skill", times=1, calls=(Call("apply_pipeline", {"collection_name": "asked"}),))
        model_server.load(script(applies))
        asked = await mine.say("apply it as asked")
        assert "Approval needed" in read_answer(asked)
        applied = await mine.apply("clicked")
        assert applied.status_code == 200, applied.text
        known = await mine.look()
        assert (known["status"], known["collection_id"], known["run_id"]) == ("applied", "clicked", None)
        assert (await client.get("/v1/collections/asked")).status_code == 404


@pytest.mark.row("S000-28", "S000-06")
async def test_another_door_uses_the_conversation_of_its_chat(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data")
    async with client_of(serve, conversations_require_llm=False) as client:
        mine = await talk(client, folder)
        body = {"prompt": INDEX, "room": "pipelines", "conversation_id": mine.id}
        answer = (await client.post("/v1/agent", json=body)).json()
        assert "template 'reports'" in answer["response"], answer["response"]
        assert (await mine.look())["current_pipeline"]["template"] == "reports"
        elsewhere = {"model": "pipelines", "messages": [{"role": "user", "content": "what chunkers exist?"}]}
        reply = (await client.post("/v1/chat/completions", json=elsewhere)).json()
        assert "sentence (chunker)" in reply["choices"][0]["message"]["content"]


@pytest.mark.row("S000-16")
async def test_messages_live_a_day_after_the_last_one() -> None:
    clock = Clock()
    log = MessageLog(LocalTtlStore(clock), DAY, clock)
    await log.add("c", log.make_message("user", "one"), log.make_message("tool", "did it"))
    for _ in range(3):
        clock.now += DAY - 1
        assert len(await log.read("c", active=True)) == 2
    clock.now += DAY - 1
    assert [one.role for one in list_chat_history(await log.read("c"))] == ["user"], "looking alone is no activity"
    clock.now += 2
    assert await log.read("c") == []


async def test_a_stream_is_made_of_data_lines_alone(serve: Serve, tmp_path: Path) -> None:
    folder = papers(tmp_path / "data", 1)
    async with client_of(serve, conversations_require_llm=False) as client:
        mine = await talk(client, folder)
        path, body = f"{API}/{mine.id}/messages", {"message": "which templates exist?"}
        plain = await client.post(path, json=body, headers={"accept": "application/json"})
        assert "reports" in plain.json()["response"]
        streamed = await client.post(path, json=body, headers={"accept": "text/event-stream, application/json"})
        assert frames(streamed.text)[-1]["type"] == "done"
        for wrong in ({}, {"message": ""}, {"message": "x" * 30_000}, {"message": 1}, {"message": "x", "extra": 1}):
            assert (await client.post(path, json=wrong)).status_code == 400, wrong
