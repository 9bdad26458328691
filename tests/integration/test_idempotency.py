"""A request that is sent again under the same `Idempotency-Key` is answered again, and carried out once."""

import asyncio
import base64
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from agent.storage.api_keys import KeyStore
from agent.storage.journal_sqlite import open_sqlite
from agent.storage.sql import SqliteClient
from gateway.access.authentication import CACHE_SECONDS, Caller
from gateway.access.idempotency import IdempotencyMiddleware
from gateway.access.idempotency_store import IdempotencyStore
from tests.integration.conftest import Serve
from tests.support.script import says, script

KEY = {"idempotency-key": "k-1"}
SUM = {"prompt": "2+2"}


async def test_the_second_answer_is_the_first(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        first = await client.post("/v1/agent", json=SUM, headers=KEY)
        again = await client.post("/v1/agent", json=SUM, headers=KEY)
        other = await client.post("/v1/agent", json=SUM, headers={"idempotency-key": "k-2"})
        runs = (await client.get("/v1/runs")).json()["data"]
    assert first.status_code == again.status_code == 200
    assert again.content == first.content
    assert again.headers["x-stepgate-run-id"] == first.headers["x-stepgate-run-id"]
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert other.headers["x-stepgate-run-id"] != first.headers["x-stepgate-run-id"]
    assert len(runs) == 2


async def test_the_answer_outlives_the_process(serve: Serve) -> None:
    bodies = []
    for _ in range(2):
        async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
            bodies.append((await client.post("/v1/agent", json=SUM, headers=KEY)).content)
    assert bodies[0] == bodies[1]


async def test_a_response_with_a_secret_is_neither_stored_nor_repeated(serve: Serve, tmp_path: Path) -> None:
    new = {"owner": "local", "name": "n", "scopes": ["agent"]}
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        made = await client.post("/v1/admin/keys", json=new, headers=KEY)
        again = await client.post("/v1/admin/keys", json=new, headers=KEY)
        keys = (await client.get("/v1/admin/keys")).json()["data"]
    text = made.json()["text"]
    assert (made.status_code, again.status_code) == (201, 409)
    assert keys[0]["id"] in again.json()["error"]["message"]
    assert (len(keys), text in again.text) == (1, False)
    for file in (tmp_path / "data").glob("stepgate.db*"):
        data = file.read_bytes()
        assert text.encode() not in data
        assert base64.b64encode(made.content)[:40] not in data


async def test_another_body_under_the_same_key_is_refused(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        await client.post("/v1/agent", json=SUM, headers=KEY)
        refused = await client.post("/v1/agent", json={"prompt": "3+3"}, headers=KEY)
        chat = {"model": "stepgate", "messages": [{"role": "user", "content": "2+2"}]}
        shaped = await client.post("/v1/chat/completions", json=chat, headers=KEY)
    assert (refused.status_code, refused.json()["error"]["error_code"]) == (422, "ERR_IDEMPOTENCY")
    assert refused.headers["x-should-retry"] == "false"
    assert shaped.json()["error"]["type"] == "idempotency_error"


async def test_of_many_at_once_one_is_carried_out(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        answers = await asyncio.gather(*(client.post("/v1/agent", json=SUM, headers=KEY) for _ in range(8)))
        runs = (await client.get("/v1/runs")).json()["data"]
    assert len(runs) == 1
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert any(answer.status_code == 200 for answer in answers)


async def test_what_was_turned_away_may_be_tried_again(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        unknown = {"prompt": "2+2", "room": "nope"}
        assert [(await client.post("/v1/agent", json=unknown, headers=KEY)).status_code for _ in range(2)] == [404, 404]
        assert (await client.post("/v1/agent", json=SUM, headers=KEY)).status_code == 200


async def test_a_request_that_was_wrong_may_be_corrected_under_its_key(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        for path, wrong, right in (
            ("/v1/agent", {"prompt": 7}, SUM),
            ("/v1/chat/completions", {"model": "stepgate"}, {"messages": [{"role": "user", "content": "2+2"}]}),
            ("/tasks", {"prompt": ""}, {"prompt": "P1 incident"}),
        ):
            headers = {"idempotency-key": f"k{path}"}
            refused = await client.post(path, json=wrong, headers=headers)
            assert refused.status_code in (400, 422), path
            body = {"model": "stepgate", **right} if "chat" in path else right
            done = await client.post(path, json=body, headers=headers)
            assert done.is_success, path


async def test_however_a_key_is_sent_its_request_is_carried_out_once(serve: Serve, tmp_path: Path) -> None:
    async with serve(require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        store = await open_sqlite(tmp_path / "data" / "stepgate.db")
        keys = KeyStore(SqliteClient(store.database), time.time)
        _, text = await keys.create("anna", "x", ["agent"])
        _, other = await keys.create("anna", "y", ["agent"])
        ways = ({"authorization": f"Bearer {text}"}, {"x-api-key": text}, {"authorization": f"bearer  {text}"})
        answers = [await client.post("/v1/agent", json=SUM, headers={**KEY, **way}) for way in ways]
        elsewhere = await client.post("/v1/agent", json=SUM, headers={**KEY, "x-api-key": other})
        runs = (await client.get("/v1/runs", headers=ways[0])).json()["data"]
        await store.close()
    assert len({answer.headers["x-stepgate-run-id"] for answer in answers}) == 1
    assert elsewhere.status_code == 200
    assert "idempotent-replayed" not in elsewhere.headers, "another key is another sender"
    assert len(runs) == 2


async def test_a_stream_is_not_repeated_and_its_run_is_named(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        first = await client.post("/v1/agent", json={**SUM, "stream": True}, headers=KEY)
        again = await client.post("/v1/agent", json={**SUM, "stream": True}, headers=KEY)
        runs = (await client.get("/v1/runs")).json()["data"]
    assert first.status_code == 200
    assert again.status_code == 409
    assert first.headers["x-stepgate-run-id"] in again.json()["error"]["message"]
    assert len(runs) == 1


async def test_a_key_that_is_none_is_refused(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        refused = await client.post("/v1/agent", json=SUM, headers={"idempotency-key": "x" * 300})
    assert refused.status_code == 400


async def test_a_run_that_began_is_not_begun_again_though_its_answer_was_429(serve: Serve) -> None:
    model = script(says("", to="completion", fault="status_429", retry_after=90))
    question = {"prompt": "What is the capital of France?"}
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        first = await client.post("/v1/agent", json=question, headers=KEY)
        again = await client.post("/v1/agent", json=question, headers=KEY)
        runs = (await client.get("/v1/runs")).json()["data"]
    assert first.status_code == again.status_code == 429
    assert first.headers["x-stepgate-run-id"] == again.headers["x-stepgate-run-id"] == runs[0]["id"]
    assert len(runs) == 1
    assert first.headers["retry-after"] == "90", "as long as the provider asked for"


async def test_a_revoked_key_reads_nothing_that_was_kept_for_it(serve: Serve, tmp_path: Path) -> None:
    async with serve(require_key="always") as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        store = await open_sqlite(tmp_path / "data" / "stepgate.db")
        keys = KeyStore(SqliteClient(store.database), time.time)
        key, text = await keys.create("anna", "x", ["agent"])
        headers = {**KEY, "authorization": f"Bearer {text}"}
        first = await client.post("/v1/agent", json=SUM, headers=headers)
        again = await client.post("/v1/agent", json=SUM, headers=headers)
        await keys.revoke(key.id)
        async with asyncio.timeout(CACHE_SECONDS + 10):
            while (refused := await client.post("/v1/agent", json=SUM, headers=headers)).status_code == 200:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        nobody = await client.post("/v1/agent", json=SUM, headers=KEY)
        await store.close()
    assert (first.status_code, again.headers["idempotent-replayed"]) == (200, "true")
    assert (refused.status_code, nobody.status_code) == (401, 401)


async def test_a_run_of_a_task_has_the_id_that_was_noted_before_it_began(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noted after, it would be lost where the process dies in between, and the task carried out again."""
    noted: list[str] = []

    async def note(_: IdempotencyStore, __: str, ___: str, run_id: str) -> None:
        noted.append(run_id)

    monkeypatch.setattr(IdempotencyStore, "record_run", note)
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        task_id = (await client.post("/tasks", json={"prompt": "2+2"})).json()["task_id"]
        first = await client.post(f"/tasks/{task_id}/run", headers=KEY)
        again = await client.post(f"/tasks/{task_id}/run", headers=KEY)
        runs = (await client.get(f"/tasks/{task_id}/runs")).json()["data"]
    assert (first.status_code, first.json()["status"]) == (200, "completed")
    assert again.content == first.content
    assert [run["run_id"] for run in runs] == [first.headers["x-stepgate-run-id"]]
    assert noted == []


async def test_a_request_that_met_a_defect_may_be_sent_again(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path / "stepgate.db")
    idempotency = IdempotencyStore(SqliteClient(store.database))
    answers: list[Callable[[], None]] = [lambda: None, _fail]

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        answers.pop()()
        await JSONResponse({"done": True})(scope, receive, send)

    async def authenticate(_: Headers) -> Caller:
        return Caller()

    app = IdempotencyMiddleware(door, lambda: idempotency, authenticate)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        codes = [(await client.post("/v1/agent", json=SUM, headers=KEY)).status_code for _ in range(3)]
    await store.close()
    assert codes == [500, 200, 200]


def _fail() -> None:
    raise KeyError("a defect")
