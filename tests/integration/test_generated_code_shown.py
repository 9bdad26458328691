"""Generated code stands in the answer as it was staged, at every door, even if the model that answers leaves it out."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.integration.conftest import Serve
from tests.integration.test_ag_ui import read as read_ag_ui
from tests.integration.test_studio_compound import decide, send
from tests.integration.test_studio_routing import ask
from tests.support.script import Rule, plans, says, script
from tests.support.studio import acts, concludes, intent, routes
from tests.support.tool_scripts import CODE, ToolScript

WISH = "Convert our part numbers: A-12 becomes 12A."
ASKED = "write a tool that converts our part numbers"
PLANNED = (
    plans({"tool": "tool_generate", "inputs": {"description": WISH}}, {"tool": "tools_list"}),
    says("Your tool is ready.", to="completion"),
)
BY_SUB_AGENT = (
    routes(intent("tool_generation", "generate", description=WISH)),
    acts("tool_generate", {"description": WISH}, times=1),
    concludes("Your tool is ready."),
)


MAKER = {"name": "Maker", "tools": ["tool_generate", "tools_list"], "approval": "never"}
"""A room whose planner makes tools itself, without the sub-agents of the studio."""


@asynccontextmanager
async def open_maker(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        made = await client.post("/v1/rooms", json=MAKER)
        assert made.status_code == 201, made.text
        yield client


def holds_code(answer: str) -> bool:
    return answer.count(CODE.strip()) == 1 and "Your tool is ready." in answer


@pytest.mark.row("S002-11")
@pytest.mark.parametrize("room", ["maker", "studio"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_shows_the_code_that_its_model_leaves_out(serve: Serve, room: str, stream: bool) -> None:
    rules = BY_SUB_AGENT if room == "studio" else PLANNED
    async with serve(script(*rules, *ToolScript().rules()), model_profile="capable") as url:
        body = {"model": room, "messages": [{"role": "user", "content": ASKED}], "stream": stream}
        async with open_maker(url) as client:
            response = await client.post("/v1/chat/completions", json=body)
        assert response.status_code == 200, response.text
        assert holds_code(read_chat(response, stream=stream)), response.text


def read_chat(response: httpx.Response, *, stream: bool) -> str:
    if not stream:
        return str(response.json()["choices"][0]["message"]["content"])
    pieces = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    return "".join(one["choices"][0]["delta"].get("content") or "" for one in pieces if one["choices"])


@pytest.mark.row("S002-11")
async def test_the_json_door_and_a_tool_call_of_the_caller_show_it(serve: Serve) -> None:
    async with serve(script(*PLANNED, *ToolScript().rules()), model_profile="capable") as url:
        async with open_maker(url):
            planned = await ask(url, ASKED, room="maker")
        assert holds_code(planned["response"]), planned["response"]
    named = {"tool_calls": [{"tool": "tool_generate", "args": {"description": WISH, "name": "other_name"}}]}
    other = CODE.replace("convert_part_number", "other_name")
    made = ToolScript(name="other_name", interface=other.split("    letter")[0], codes=(other,))
    tests = tuple(one.replace("convert_part_number", "other_name") for one in ToolScript().tests)
    rules = ToolScript(name=made.name, interface=made.interface, codes=made.codes, tests=tests).rules()
    async with serve(script(*rules), model_profile="capable") as url:
        called = await ask(url, "make it", room="stepgate", metadata=named)
        assert other.strip() in called["response"], called["response"]


@pytest.mark.row("S002-11")
async def test_ag_ui_shows_it(serve: Serve) -> None:
    async with serve(script(*PLANNED, *ToolScript().rules()), model_profile="capable") as url:
        body = {
            "threadId": "t1", "runId": "r1", "state": {}, "tools": [], "context": [],
            "forwardedProps": {"room": "maker"},
            "messages": [{"id": "m1", "role": "user", "content": ASKED}],
        }  # fmt: skip
        async with open_maker(url) as client:
            events = await read_ag_ui(client, body)
        written = "".join(str(one["delta"]) for one in events if one["type"] == "TEXT_MESSAGE_CONTENT")
        assert holds_code(written), written


@pytest.mark.row("S002-11")
async def test_an_mcp_client_that_runs_the_studio_sees_it(serve: Serve) -> None:
    async with serve(script(*BY_SUB_AGENT, *ToolScript().rules())) as url, Client(f"{url}/mcp") as client:
        ran = await client.call_tool("agent_run", {"prompt": "write another tool for part numbers", "room": "studio"})
        said = "\n".join(str(one.model_dump().get("text")) for one in ran.content)
    assert holds_code(said), said


@pytest.mark.row("S002-11")
async def test_a_plan_of_the_studio_shows_it_once(serve: Serve) -> None:
    make = intent("tool_generation", "tool_generate", description=WISH, request=ASKED)
    rooms = intent("query", "rooms_list", request="which rooms there are")
    model = script(routes(make, rooms), *ToolScript().rules())
    async with serve(model) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        asked = await send(client, f"{ASKED} and tell me which rooms there are")
        done = await decide(client, url, asked) if asked["status"] == "awaiting_approval" else asked
    assert done["status"] == "succeeded", done
    assert done["answer"].count(CODE.strip()) == 1, done["answer"]
    assert "knowledge" in done["answer"]


async def test_nothing_is_added_to_json_that_the_caller_asked_for(serve: Serve) -> None:
    rules: tuple[Rule, ...] = (PLANNED[0], says('{"ready": true}', to="completion"))
    form = {"type": "json_object"}
    async with serve(script(*rules, *ToolScript().rules()), model_profile="capable") as url:
        body: dict[str, Any] = {"model": "maker", "messages": [{"role": "user", "content": f"{ASKED}, answer in JSON"}]}
        async with open_maker(url) as client:
            response = await client.post("/v1/chat/completions", json={**body, "response_format": form})
        assert json.loads(response.json()["choices"][0]["message"]["content"]) == {"ready": True}
