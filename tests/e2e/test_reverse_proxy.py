"""A gateway behind a reverse proxy that serves it below a path: the page, streams, MCP, AG-UI and addresses."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.e2e.test_web_page import ask
from tests.integration.conftest import Serve, model_server, serve
from tests.integration.test_ag_ui import turn
from tests.support.browser import NEEDS_CHROMIUM, open_page, running_chromium
from tests.support.keys import bearer, created_key
from tests.support.reverse_proxy import PREFIX, find_free_port, reverse_proxy
from tests.support.script import plans, says, script

__all__ = ["model_server", "serve"]  # fixtures

PARTS, PAUSE_S = 12, 0.15
SLOW = script(
    says("word " * PARTS, to="completion", chunk=5, pause_s=PAUSE_S), says("word " * PARTS, chunk=5, pause_s=PAUSE_S)
)
PLANNED = script(
    plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
    says("It is 42.", to="completion"),
)


@pytest.fixture
async def public(serve: Serve, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The address of a gateway below a path of a proxy; the model's script is the parameter."""
    port = find_free_port()
    address = f"http://127.0.0.1:{port}{PREFIX}"
    async with (
        serve(request.param, public_url=address) as url,
        reverse_proxy(port, url.removeprefix("http://")),
    ):
        yield address


@pytest.mark.parametrize("public", [PLANNED], indirect=True)
async def test_addresses_lead_through_the_proxy(public: str) -> None:
    origin = public.removesuffix(PREFIX)
    async with httpx.AsyncClient(timeout=30) as client:
        for at in (f"{origin}/.well-known/agent-card.json", f"{public}/.well-known/agent-card.json"):
            card = (await client.get(at)).json()
            assert {card["url"], *(one["url"] for one in card["supportedInterfaces"])} == {f"{public}/a2a"}
        described = (await client.get(f"{public}/openapi.json")).json()
        assert [one["url"] for one in described["servers"]] == [public]
        body = {"prompt": "What is 2*21?", "background": True}
        asked = httpx.URL(f"{public}/v1/agent")
        started = (await client.post(asked, json=body)).json()
        run = asked.join(started["url"])
        assert str(run) == f"{public}/v1/runs/{started['run_id']}"
        events = (await client.get(f"{run}/events")).text
        assert "event: run.succeeded" in events
        listed = (await client.get(f"{public}/v1/runs?limit=1")).json()
        assert listed["next"] == started["run_id"], "a place in the list, no address"
        missing = await client.get(f"{public}/v1/nothing")
        assert (missing.status_code, missing.json()["error"]["error_code"]) == (404, "ERR_NOT_FOUND")


@pytest.mark.parametrize("public", [SLOW], indirect=True)
async def test_streams_are_not_held_back(public: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "/v1/chat/completions": {"model": "chat", "stream": True, "messages": [{"role": "user", "content": "Say it"}]},
        "/v1/responses": {"model": "chat", "stream": True, "input": "Say it"},
        "/v1/agent": {"prompt": "Say it", "room": "chat", "stream": True},
        "/v1/ag-ui": turn("Say it", forwardedProps={"room": "chat"}),
    }
    async with httpx.AsyncClient(timeout=30) as client:
        for path, body in bodies.items():
            async with client.stream("POST", f"{public}{path}", json=body) as response:
                assert response.status_code == 200, path
                seen = [monotonic() async for line in response.aiter_lines() if "word" in line]
            assert seen[-1] - seen[0] > PARTS * PAUSE_S / 3, f"{path} came at once"


@pytest.mark.parametrize("public", [SLOW], indirect=True)
async def test_a_client_that_goes_away_is_noticed_through_the_proxy(public: str) -> None:
    body = {"model": "chat", "stream": True, "messages": [{"role": "user", "content": "Say it"}]}
    async with httpx.AsyncClient(timeout=30) as client:
        sent = {"x-openwebui-chat-id": "chat-1"}  # its stop button ends the run; the runs of others go on
        async with client.stream("POST", f"{public}/v1/chat/completions", json=body, headers=sent) as response:
            run = response.headers["x-stepgate-run-id"]
            async for line in response.aiter_lines():
                if "word" in line:
                    break
        async with asyncio.timeout(20):
            status = "running"
            while status == "running":
                await asyncio.sleep(0.05)
                status = (await client.get(f"{public}/v1/runs/{run}")).json()["status"]
        assert status == "cancelled"


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
@pytest.mark.parametrize("public", [PLANNED], indirect=True)
async def test_mcp_clients_are_served_through_the_proxy(public: str, mode: Any) -> None:
    async with Client(f"{public}/mcp/all", mode=mode) as client:
        assert "calculator" in {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("calculator", {"expression": "2*21"})
        assert "42" in json.dumps([block.model_dump(mode="json") for block in result.content])


async def test_a_public_address_needs_a_key_and_mcp_answers_to_its_host(serve: Serve, tmp_path: Path) -> None:
    key = await created_key(tmp_path / "data", "laptop")
    async with (
        serve(public_url="https://gate.example.org/stepgate") as url,
        httpx.AsyncClient(base_url=url, timeout=30, headers={"host": "gate.example.org"}) as client,
    ):
        assert (await client.get("/v1/runs")).status_code == 401
        assert (await client.get("/v1/runs", headers=bearer(key))).status_code == 200
        hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accepts = {"accept": "application/json, text/event-stream", "origin": "https://gate.example.org"}
        asked = [
            await client.post("/mcp", json=hello, headers=accepts | sent)
            for sent in ({**bearer(key)}, {**bearer(key), "host": "other.example.org"}, {"host": "other.example.org"})
        ]
        assert [response.status_code == 421 for response in asked] == [False, False, True]
    async with serve(public_url="http://localhost:9000") as url, httpx.AsyncClient(base_url=url) as client:
        assert (await client.get("/v1/runs")).status_code == 200, "only this machine can call"


@pytest.mark.browser
@NEEDS_CHROMIUM
@pytest.mark.parametrize("public", [PLANNED], indirect=True)
async def test_the_page_works_below_a_path(public: str) -> None:
    with running_chromium() as devtools:
        async with open_page(devtools, f"{public}/") as page:
            await page.until("document.getElementById('state').innerText.trim() === 'small'")
            await ask(page, "stepgate", "What is 2*21?")
            await page.until("document.querySelector('.answer[aria-busy=false]')?.innerText.includes('42')")
            await page.evaluate("location.hash = '#/studio/rooms'")
            await page.until("document.querySelector('.studio .item')")
            assert page.faults == []
