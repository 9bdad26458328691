"""A request that is sent again under the same `Idempotency-Key` is answered again, and carried out once."""

import asyncio

import httpx

from tests.integration.conftest import Serve

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
