"""Paths and methods as people guess them, and what the gateway says of itself."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve


async def test_the_root_says_where_the_doors_are(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        root = await client.get(f"{url}/")
        doors = root.json()["doors"]
        found = {name: (await client.request("OPTIONS", f"{url}{path}")).status_code for name, path in doors.items()}
    assert root.json()["name"] == "Stepgate"
    assert root.json()["version"]
    assert {"openai", "agent", "runs", "mcp", "health", "ready", "openapi"} <= set(doors)
    assert 404 not in found.values(), found


@pytest.mark.parametrize("path", ["/", "/health", "/healthz", "/ready", "/readyz"])
async def test_probes_may_ask_for_the_head_only(serve: Serve, path: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        head = await client.head(f"{url}{path}")
        whole = await client.get(f"{url}{path}")
    assert (head.status_code, head.content) == (200, b"")
    assert whole.status_code == 200


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
async def test_no_page_needs_the_net(serve: Serve, path: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        assert (await client.get(f"{url}{path}")).status_code == 404


async def test_the_openapi_document_promises_the_errors_that_are_sent(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        document = await client.get(f"{url}/openapi.json")
    assert "HTTPValidationError" not in document.text
    operations = [operation for methods in document.json()["paths"].values() for operation in methods.values()]
    refusing = [operation["summary"] for operation in operations if "422" in operation["responses"]]
    assert refusing == ["Create Task", "Check Guardrails"], "elsewhere a field at fault is a 400"
    assert {"400", "413", "415"} <= set(document.json()["paths"]["/v1/agent"]["post"]["responses"])
    assert "403" in document.json()["paths"]["/metrics"]["get"]["responses"]
    assert {"200", "201"} <= set(document.json()["paths"]["/v1/documents"]["post"]["responses"])


@pytest.mark.parametrize("path", ["/v1/agent", "/v1/chat/completions", "/v1/runs/run_1/cancel", "/mcp"])
async def test_a_slash_at_the_end_is_told_and_not_redirected(serve: Serve, path: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.post(f"{url}{path}/", json={"prompt": "2+2"})
    assert response.status_code == 404
    assert f"did you mean {path} (without the slash" in response.json()["error"]["message"]


async def test_a_path_without_its_version_is_told_the_right_one(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.post(f"{url}/chat/completions", json={})
        other = await client.get(f"{url}/something/else")
    assert "did you mean /v1/chat/completions?" in response.json()["error"]["message"]
    assert "did you mean" not in other.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/agent", "POST"),
        ("PUT", "/v1/runs/run_1/cancel", "POST"),
        ("POST", "/health", "GET, HEAD"),
        ("DELETE", "/v1/chat/completions", "POST"),
        ("POST", "/v1/models/chat", "GET"),
    ],
)
async def test_a_method_that_does_not_fit_is_405_with_those_that_do(
    serve: Serve, method: str, path: str, allowed: str
) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        response = await client.request(method, f"{url}{path}")
    error = response.json()["error"]
    assert response.status_code == 405
    assert response.headers["allow"] == allowed
    assert error["message"] == f"{method} is not allowed at {path}; use {allowed}"
    assert (error.get("error_code") or error.get("code")) in ("ERR_METHOD", "method_not_supported")


@pytest.mark.parametrize(("header", "value", "status", "named", "setting"), [
    ("host", "gateway.example:8080", 421, "gateway.example", {"allowed_hosts": ("gateway.example",)}),
    ("origin", "https://gateway.example", 403, "https://gateway.example", {"cors_origins": ("https://gateway.example",)}),
])  # fmt: skip
async def test_mcp_names_the_setting_that_allows_a_host(
    serve: Serve, header: str, value: str, status: int, named: str, setting: dict[str, Any]
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"accept": "application/json, text/event-stream", header: value}
    async with serve() as url, httpx.AsyncClient(timeout=15) as client:
        refused = await client.post(f"{url}/mcp", json=body, headers=headers)
    async with serve(**setting) as url, httpx.AsyncClient(timeout=15) as client:
        allowed = await client.post(f"{url}/mcp", json=body, headers=headers)
    assert refused.status_code == status
    assert refused.json()["jsonrpc"] == "2.0"
    assert f"'{named}'" in refused.json()["error"]["message"]
    assert f"AGENT_{next(iter(setting)).upper()}" in refused.json()["error"]["message"]
    assert allowed.status_code not in (403, 421)


async def test_a_model_server_that_is_not_there_is_told_in_words(serve: Serve) -> None:
    where = "http://127.0.0.1:1/v1"
    told = f"{where} cannot be reached: connection refused; is the model server running? (AGENT_LLM_BASE_URL)"
    async with (
        serve(llm_base_url=where, model_fast="m") as url,
        httpx.AsyncClient(timeout=30) as client,
    ):
        ready = (await client.get(f"{url}/ready")).json()
        body = {"model": "chat", "messages": [{"role": "user", "content": "What is the capital of France?"}]}
        failed = await client.post(f"{url}/v1/chat/completions", json=body)
    assert told in ready["components"]["models"]["detail"]
    assert failed.status_code == 502
    assert failed.json()["error"]["message"] == told


async def test_a_name_that_is_not_known_and_a_server_without_tls_are_told_apart(serve: Serve) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        async with serve(llm_base_url="http://no-such-host.invalid/v1", model_fast="m") as url:
            nameless = (await client.get(f"{url}/ready")).json()["components"]["models"]["detail"]
        plain = await asyncio.start_server(_answer_in_plain, "127.0.0.1", 0)
        async with (
            plain,
            serve(llm_base_url=f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}/v1", model_fast="m") as url,
        ):
            untls = (await client.get(f"{url}/ready")).json()["components"]["models"]["detail"]
    assert "its name is not known" in nameless
    assert "ssl:default" not in nameless
    assert "it does not speak TLS" in untls


async def _answer_in_plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


async def test_a_query_parameter_that_a_door_does_not_take_is_refused_by_its_name(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(base_url=url, timeout=15) as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
        reads = {path: methods["get"]["tags"] for path, methods in paths.items() if "get" in methods}
        answers = {
            path: await client.get(path.replace("{", "").replace("}", ""), params={"tpye": "x"}) for path in reads
        }
        misspelt = await client.get("/v1/studio/entities", params={"tpye": "room"})
    lenient = {path for path, answer in answers.items() if "Unknown query parameter" not in answer.text}
    assert {tag for path in lenient for tag in reads[path]} == {"OpenAI", "gateway"}, "other people's clients, probes"
    assert lenient.isdisjoint({"/v1/tools", "/v1/skills"})
    assert misspelt.status_code == 400
    assert misspelt.json()["error"]["message"] == "Unknown query parameter: 'tpye'. Did you mean 'type'?"
