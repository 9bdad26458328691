"""What HTTP, JSON-RPC and MCP allow and few clients use: HEAD, answers as JSON only, odd ids of requests."""

import json
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.integration.conftest import Serve

MODERN = {"mcp-protocol-version": "2026-07-28"}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
JSON_ONLY = {"accept": "application/json"}
BOTH = {"accept": "application/json, text/event-stream"}


def request(method: str, number: Any, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def read(answer: httpx.Response) -> dict[str, Any]:
    """The message of an answer, as JSON or as the last event."""
    if answer.headers["content-type"].startswith("application/json"):
        return dict(answer.json())
    lines = [line for line in answer.text.splitlines() if line.startswith("data:") and line[5:].strip()]
    return dict(json.loads(lines[-1][5:]))


async def open_session(http: httpx.AsyncClient, url: str) -> dict[str, str]:
    opened = await http.post(f"{url}/mcp", json=request("initialize", 1, **HELLO), headers=BOTH)
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
    await http.post(
        f"{url}/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers={**BOTH, **session}
    )
    return session


async def test_head_is_answered_as_get_without_a_body(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=20) as http:
        for path in ("/health", "/ready", "/v1/models", "/v1/tools", "/v1/runs", "/metrics", "/openapi.json", "/"):
            got, head = await http.get(url + path), await http.head(url + path)
            assert head.status_code == got.status_code, path
            assert head.headers.get("content-type") == got.headers.get("content-type"), path
            assert head.content == b""
        assert (await http.head(f"{url}/v1/runs/none")).status_code == 404
        assert (await http.head(f"{url}/v1/chat/completions")).status_code == 405
        assert (await http.head(f"{url}/mcp")).status_code in (400, 405, 406)
        run = (await http.post(f"{url}/v1/agent", json={"prompt": "What is 6*7?"})).json()["metadata"]["run_id"]
        assert (await http.head(f"{url}/v1/runs/{run}/events")).status_code == 200


async def test_a_client_that_accepts_json_only_gets_json(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=20) as http:
        opened = await http.post(f"{url}/mcp", json=request("initialize", 1, **HELLO), headers=JSON_ONLY)
        assert (opened.status_code, opened.headers["content-type"]) == (200, "application/json")
        assert opened.json()["result"]["serverInfo"]
        session = {"mcp-session-id": opened.headers["mcp-session-id"], **JSON_ONLY}
        started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await http.post(f"{url}/mcp", json=started, headers=session)).status_code == 202
        listed = await http.post(f"{url}/mcp", json=request("tools/list", 2), headers=session)
        assert listed.headers["content-type"] == "application/json"
        assert listed.json()["result"]["tools"]
        asked = request("tools/call", 3, name="calculator", arguments={"expression": "6*7"})
        called = await http.post(f"{url}/mcp/all", json=request("initialize", 1, **HELLO), headers=JSON_ONLY)
        everything = {**session, "mcp-session-id": called.headers["mcp-session-id"]}
        await http.post(f"{url}/mcp/all", json=started, headers=everything)
        answered = await http.post(f"{url}/mcp/all", json=asked, headers=everything)
        assert "42" in json.dumps(answered.json()["result"])
        refused = await http.post(f"{url}/mcp", json=request("tools/list", 2), headers={"accept": "text/html"})
        assert refused.status_code in (400, 406)


@pytest.mark.parametrize("number", [None, 1.5, -0.25, 10**20, "x", True])
@pytest.mark.parametrize("accept", [JSON_ONLY, BOTH])
async def test_a_request_is_answered_under_its_own_id(serve: Serve, number: Any, accept: dict[str, str]) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=20) as http:
        session = await open_session(http, url)
        listed = await http.post(f"{url}/mcp", json=request("tools/list", number), headers={**accept, **session})
        message = read(listed)
        assert message["id"] == number
        assert message["result"]["tools"]
        unknown = await http.post(f"{url}/mcp", json=request("no/such", number), headers={**accept, **session})
        assert read(unknown)["id"] == number
        assert read(unknown)["error"]["code"] == -32601


@pytest.mark.parametrize("number", ["1e400", "12345678901234567890.123456789", "1.50"])
async def test_an_id_that_no_float_holds_comes_back_as_json(serve: Serve, number: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=20) as http:
        headers = {**JSON_ONLY, **await open_session(http, url), "content-type": "application/json"}
        body = json.dumps(request("ping", "ID")).replace('"ID"', number)
        answer = await http.post(f"{url}/mcp", content=body, headers=headers)
        exact = json.loads(answer.text, parse_float=Decimal, parse_constant=pytest.fail)
        assert exact["id"] == Decimal(number)


@pytest.mark.parametrize("accept", ["", "application/*", "application/*, text/html;q=0.5"])
async def test_a_client_that_says_nothing_or_any_application_type_gets_json(serve: Serve, accept: str) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=20) as http:
        answer = await http.post(f"{url}/mcp", json=request("initialize", 1, **HELLO), headers={"accept": accept})
        assert answer.json()["result"]["serverInfo"]


async def test_what_is_no_request_is_refused_for_what_it_is(serve: Serve) -> None:
    async with serve() as url, httpx.AsyncClient(timeout=20) as http:
        headers = {**JSON_ONLY, **await open_session(http, url), "content-type": "application/json"}
        reply = {"jsonrpc": "2.0", "id": 7, "result": {}}
        assert (await http.post(f"{url}/mcp", json=reply, headers=headers)).status_code == 202
        cut = await http.post(f"{url}/mcp", content='{"jsonrpc": "2.0", "id"', headers=headers)
        assert cut.json()["error"]["code"] == -32700
