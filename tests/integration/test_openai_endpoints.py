"""`/v1/embeddings`, `/v1/completions`, and OpenAI's endpoints that Stepgate lacks, through the official SDK."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest
from aiohttp import web
from openai.types import Completion

from tests.integration.conftest import Serve
from tests.integration.test_openai_door import sdk
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer


@asynccontextmanager
async def embedding_endpoint(status: int = 200) -> AsyncIterator[str]:
    """An embeddings endpoint whose vectors tell the length of each text."""

    async def embed(request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        data = [{"index": index, "embedding": [float(len(text)), 0.5]} for index, text in enumerate(texts)]
        return web.json_response({"data": data, "model": "tiny"}, status=status)

    app = web.Application()
    app.router.add_post("/v1/embeddings", embed)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def test_vectors_as_base64_and_as_numbers(serve: Serve) -> None:
    async with (
        embedding_endpoint() as endpoint,
        serve(embedder_url=endpoint, embedder_model="tiny") as url,
        sdk(url) as client,
    ):
        coded = await client.embeddings.create(model="tiny", input=["one", "three"])
        plain = await client.embeddings.create(model="default", input="one", encoding_format="float", dimensions=2)
        with pytest.raises(openai.BadRequestError) as shorter:
            await client.embeddings.create(model="tiny", input="one", dimensions=1)
        with pytest.raises(openai.NotFoundError) as other:
            await client.embeddings.create(model="text-embedding-3-small", input="one")
    assert [list(item.embedding) for item in coded.data] == [[3.0, 0.5], [5.0, 0.5]]
    assert [item.index for item in coded.data] == [0, 1]
    assert plain.data[0].embedding == [3.0, 0.5]
    assert plain.model == "tiny"
    assert plain.usage.prompt_tokens == 1
    assert shorter.value.param == "dimensions"
    assert other.value.code == "model_not_found"
    assert "tiny" in other.value.message


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"input": "x"}, "model", "missing_required_parameter"),
        ({"model": "tiny"}, "input", "missing_required_parameter"),
        ({"model": "tiny", "input": []}, "input", "invalid_value"),
        ({"model": "tiny", "input": ""}, "input", "invalid_value"),
        ({"model": "tiny", "input": ["x", ""]}, "input[1]", "invalid_value"),
        ({"model": "tiny", "input": [1, 2]}, "input", "unsupported_parameter"),
        ({"model": "tiny", "input": [[1], [2]]}, "input", "unsupported_parameter"),
        ({"model": "tiny", "input": {"a": 1}}, "input", "invalid_type"),
        ({"model": "tiny", "input": ["x"] * 3_000}, "input", "invalid_value"),
        ({"model": "tiny", "input": "x" * 9_000}, "input", "context_length_exceeded"),
        ({"model": "tiny", "input": "x", "encoding_format": "int8"}, "encoding_format", "invalid_value"),
        ({"model": "tiny", "input": "x", "truncate": True}, "truncate", "unknown_parameter"),
    ],
)
async def test_bad_embedding_requests_are_told(serve: Serve, body: dict[str, Any], param: str, code: str) -> None:
    async with (
        embedding_endpoint() as endpoint,
        serve(embedder_url=endpoint, embedder_model="tiny") as url,
        httpx.AsyncClient(timeout=30) as client,
    ):
        response = await client.post(f"{url}/v1/embeddings", json=body)
    assert response.status_code == 400, response.text
    assert (response.json()["error"]["param"], response.json()["error"]["code"]) == (param, code)


async def test_an_embedder_that_is_missing_or_fails_is_told(serve: Serve) -> None:
    async with serve() as url, sdk(url) as client:
        with pytest.raises(openai.BadRequestError) as missing:
            await client.embeddings.create(model="tiny", input="x")
    assert "AGENT_EMBEDDER_URL" in missing.value.message
    async with (
        embedding_endpoint(401) as endpoint,
        serve(embedder_url=endpoint, embedder_model="tiny") as url,
        sdk(url) as client,
    ):
        with pytest.raises(openai.InternalServerError) as failed:
            await client.embeddings.create(model="tiny", input="x")
    assert failed.value.status_code == 502
    assert endpoint not in failed.value.message


async def test_an_older_client_completes_a_prompt(serve: Serve, model_server: ScriptedServer) -> None:
    model = script(says("once there was a gate.", to="completion", finish_reason="length"))
    async with serve(model) as url, sdk(url) as client:
        whole = await client.completions.create(model="chat", prompt="Upon a time", max_tokens=7, stop=["END"])
        stream = await client.completions.create(
            model="chat", prompt=["Upon a time"], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert whole.choices[0].text == "once there was a gate."
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage is not None
    assert whole.usage.total_tokens == 15
    Completion.model_validate(whole.to_dict())
    sent = model_server.requests()[0]["body"]
    assert sent["messages"] == [{"role": "user", "content": "Upon a time"}]
    assert (sent["max_tokens"], sent["stop"]) == (7, ["END"])
    assert len(chunks) > 3
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == "once there was a gate."
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].usage is not None


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"model": "stepgate", "prompt": "x"}, "model", "unsupported_parameter"),
        ({"model": "chat"}, "prompt", "missing_required_parameter"),
        ({"model": "chat", "prompt": " "}, "prompt", "invalid_value"),
        ({"model": "chat", "prompt": {"a": 1}}, "prompt", "invalid_type"),
        ({"model": "chat", "prompt": [1, 2]}, "prompt", "unsupported_parameter"),
        ({"model": "chat", "prompt": ["a", "b"]}, "prompt", "unsupported_parameter"),
        ({"model": "chat", "prompt": "x", "n": 2}, "n", "unsupported_parameter"),
        ({"model": "chat", "prompt": "x", "best_of": 2}, "best_of", "unsupported_parameter"),
        ({"model": "chat", "prompt": "x", "echo": True}, "echo", "unsupported_parameter"),
        ({"model": "chat", "prompt": "x", "logprobs": 0}, "logprobs", "unsupported_parameter"),
        ({"model": "chat", "prompt": "x", "suffix": "y"}, "suffix", "unsupported_parameter"),
        ({"model": "chat", "prompt": "x", "temperature": 9}, "temperature", "invalid_value"),
    ],
)
async def test_bad_completion_requests_are_told(serve: Serve, body: dict[str, Any], param: str, code: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=30) as client:
        response = await client.post(f"{url}/v1/completions", json=body)
    assert response.status_code == 400, response.text
    assert (response.json()["error"]["param"], response.json()["error"]["code"]) == (param, code)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_completion_without_its_model_is_a_status(serve: Serve, stream: bool) -> None:
    async with serve(script(says(to="completion", fault="status_500"))) as url, sdk(url) as client:
        with pytest.raises(openai.InternalServerError):
            await client.completions.create(model="chat", prompt="x", stream=stream)


@pytest.mark.parametrize(
    ("method", "path", "near"),
    [
        ("POST", "/v1/audio/transcriptions", "/v1/documents"),
        ("POST", "/v1/images/generations", "/v1/chat/completions"),
        ("GET", "/v1/files", "/v1/documents"),
        ("POST", "/v1/batches", "/tasks"),
        ("POST", "/v1/rerank", "/v1/search"),
        ("POST", "/v1/moderations", "guardrails"),
        ("POST", "/v1/assistants", "/v1/responses"),
        ("POST", "/v1/threads/t/runs", "/v1/responses"),
        ("GET", "/v1/vector_stores/x/files", "/v1/collections"),
        ("POST", "/v1/fine_tuning/jobs", "/v1/models"),
    ],
)
async def test_an_endpoint_that_is_missing_names_the_nearest(serve: Serve, method: str, path: str, near: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=30) as client:
        response = await client.request(method, f"{url}{path}", json={} if method == "POST" else None)
    assert response.status_code == 404
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == "not_found"
    assert near in error["message"]
