"""One task through every door is the same run; what is somebody else's is at none; extras of OpenAI's API."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.client import Client

from agent.storage.api_keys import KeyStore
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from tests.integration.conftest import Serve
from tests.support.script import says, script

TASK = "What is 17.5 * 240, and what time is it in Atlantis?"
"""A sum that succeeds, and a place without a time zone: both outcomes are told alike."""

SHOWN = ("plan", "step", "tool", "supervision", "completion")
Door = Callable[[httpx.AsyncClient, str], Awaitable[str]]


async def chat(client: httpx.AsyncClient, url: str) -> str:
    body = {"model": "stepgate", "messages": [{"role": "user", "content": TASK}]}
    return str((await client.post("/v1/chat/completions", json=body)).headers["x-stepgate-run-id"])


async def chat_stream(client: httpx.AsyncClient, url: str) -> str:
    body = {"model": "stepgate", "stream": True, "messages": [{"role": "user", "content": TASK}]}
    return str((await client.post("/v1/chat/completions", json=body)).headers["x-stepgate-run-id"])


async def agent(client: httpx.AsyncClient, url: str) -> str:
    return str((await client.post("/v1/agent", json={"prompt": TASK})).headers["x-stepgate-run-id"])


async def query(client: httpx.AsyncClient, url: str) -> str:
    body = {"user_message": TASK, "session_id": "s", "user_id": "u", "room": "stepgate"}
    return str((await client.post("/query", json=body)).headers["x-stepgate-run-id"])


async def task(client: httpx.AsyncClient, url: str) -> str:
    made = (await client.post("/tasks", json={"prompt": TASK})).json()["task_id"]
    return str((await client.post(f"/tasks/{made}/run")).json()["run_id"])


async def mcp(client: httpx.AsyncClient, url: str) -> str:
    async with Client(f"{url}/mcp", mode="2026-07-28") as session:
        report: Any = (await session.call_tool("agent_run", {"task": TASK})).structured_content
    return str(report["run_id"])


async def came_to(client: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    """The plan and the outcomes of a run, without ids and times."""
    response = (await client.get(f"/v1/runs/{run_id}")).json()["response"]
    metadata = response["metadata"]
    lines = [
        (line["type"], line["title"], line["status"], line["step_id"])
        for line in response["steps"]
        if line["type"] in SHOWN
    ]
    lines.sort(key=lambda line: line[3] or "")  # steps side by side may end in any order
    return {
        "plan": metadata["plan"],
        "status": metadata["status"],
        "tools": [(one["tool"], one.get("output"), one.get("error_code")) for one in metadata["tool_results"]],
        "lines": lines,
        "answer": response["response"],
    }


@pytest.mark.row("S001-45")
async def test_one_task_is_planned_and_carried_out_alike_at_every_door(serve: Serve) -> None:
    # A conversation about a pipeline is a run in a room of its own: what it shares with the others is tested there.
    async with serve(None, task_room="stepgate") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        doors: tuple[Door, ...] = (chat, chat_stream, agent, query, task, mcp)
        found = {door.__name__: await came_to(client, await door(client, url)) for door in doors}
    first = found["agent"]
    assert [step["tool"] for step in first["plan"]["steps"]] == ["calculator", "current_time", "completion"]
    assert first["tools"][0][0] == "calculator"
    assert first["tools"][1][2] is not None, "one of its steps fails"
    for name, other in found.items():
        assert other == first, name


@pytest.mark.row("Scard-10")
async def test_the_answers_of_queries_and_tasks_hold_the_trace_of_the_run(serve: Serve) -> None:
    async with serve(None, task_room="stepgate") as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        body = {"user_message": TASK, "session_id": "s", "user_id": "u", "room": "stepgate"}
        queried = await client.post("/query", json=body)
        made = (await client.post("/tasks", json={"prompt": TASK})).json()["task_id"]
        executed = await client.post(f"/tasks/{made}/run")
        for answer in (queried, executed):
            run = (await client.get(f"/v1/runs/{answer.headers['x-stepgate-run-id']}")).json()["response"]
            lines = [{name: line[name] for name in run["steps"][0]} for line in answer.json()["trace"]]
            assert [line for line in lines if line["type"] in SHOWN] == [
                line for line in run["steps"] if line["type"] in SHOWN
            ]
            assert {line["type"] for line in lines} - {"finalize"} == {line["type"] for line in run["steps"]}


async def test_a_calculated_answer_is_certain_and_one_without_evidence_is_not(serve: Serve) -> None:
    found = {}
    for model, question in ((None, "What is 6*7?"), (script(says("Blue.", to="completion")), "hm?")):
        async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
            body = {"user_message": question, "session_id": "s", "user_id": "u", "room": "stepgate"}
            answer = (await client.post("/query", json=body)).json()["final_response"]
            found[answer["content"]] = answer["confidence_score"]
    assert found == {"6*7 = 42": 1.0, "Blue.": 0.0}


@pytest.mark.row("S001-13")
async def test_extras_of_the_openai_api_are_ignored(serve: Serve) -> None:
    async with serve(None) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        body: dict[str, Any] = {
            "model": "stepgate",
            "messages": [{"role": "user", "content": "What is 6*7?", "annotations": [], "refusal": None, "extra": 1}],
            "logit_bias": {"50256": -100},
            "service_tier": "auto",
            "store": False,
            "stream_options": {"include_usage": True, "include_obfuscation": False},
            "something_new": {"deep": [1, 2]},
        }
        answer = await client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        assert "42" in answer.json()["choices"][0]["message"]["content"]
        streamed = await client.post("/v1/chat/completions", json={**body, "stream": True})
        assert "42" in streamed.text
        assert streamed.text.rstrip().endswith("[DONE]")


@pytest.mark.row("S000-03", "S001-07")
async def test_nothing_of_another_owner_is_at_any_door(serve: Serve, tmp_path: Path) -> None:
    headers = {}
    store = await open_sqlite(tmp_path / "data" / "stepgate.db")
    for owner in ("anna", "bert"):
        keys = KeyStore(SqliteClient(store.database), time.time)
        _, text = await keys.create(owner, "k", ["chat", "agent", "ingest"])
        headers[owner] = {"authorization": f"Bearer {text}"}
    await store.close()
    folder = tmp_path / "data" / "files" / "notes"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("Kelp grows in cold water.")
    async with (
        serve(None, require_key="always") as url,
        httpx.AsyncClient(base_url=url, timeout=60, headers=headers["anna"]) as anna,
        httpx.AsyncClient(base_url=url, timeout=60, headers=headers["bert"]) as bert,
    ):
        await anna.post("/v1/agent", json={"prompt": "remember that I dive", "session_id": "s"})
        memory = (await anna.get("/v1/memories")).json()["data"][0]["id"]
        source = {"source_type": "local", "source_identifier": str(folder)}
        job = (await anna.post("/v1/collections/kelp/ingest", json=source)).json()["id"]
        assert (await anna.get(f"/v1/jobs/{job}", params={"wait_s": 30})).json()["status"] == "done"
        document = (await anna.get("/v1/collections/kelp/documents")).json()["data"][0]["document_id"]
        search = {"query_text": "kelp water", "collection": "kelp"}
        assert (await anna.post("/v1/search", json=search)).status_code == 200
        for path in ("memories", "collections", "jobs", "runs"):
            assert (await anna.get(f"/v1/{path}")).json()["data"], path
            assert (await bert.get(f"/v1/{path}")).json()["data"] == [], path
        assert (await bert.get("/v1/memories", params={"query": "dive"})).json()["data"] == []
        assert (await bert.get("/v1/documents")).json()["data"] == []
        refused = [
            await bert.delete(f"/v1/memories/{memory}"),
            await bert.get("/v1/documents", params={"collection": "kelp"}),
            await bert.get("/v1/collections/kelp"),
            await bert.get("/v1/collections/kelp/documents"),
            await bert.delete("/v1/collections/kelp"),
            await bert.post("/v1/collections/kelp/reindex"),
            await bert.post("/v1/search", json=search),
            await bert.get(f"/v1/documents/{document}"),
            await bert.get(f"/v1/documents/{document}/file"),
            await bert.delete(f"/v1/documents/{document}"),
            await bert.get(f"/v1/jobs/{job}"),
            await bert.get("/v1/conversations/s/state"),
            await bert.delete("/v1/conversations/s/state"),
        ]
        assert [response.status_code for response in refused] == [404] * len(refused), [r.text for r in refused]
        assert (await anna.get(f"/v1/documents/{document}")).status_code == 200, "and nothing was touched"
        assert (await anna.get("/v1/conversations/s/state")).status_code == 200
        assert (await anna.get("/v1/memories")).json()["data"][0]["id"] == memory
