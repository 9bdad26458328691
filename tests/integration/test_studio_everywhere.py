"""The same things of the studio by HTTP, in a chat, over MCP and on the command line: every door knows the same."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.support.script import script
from tests.support.studio import intent, routes


@dataclass(frozen=True)
class Question:
    """A tool of the studio, its category, and the address that answers the same. `told` is in every answer."""

    tool: str
    category: str
    path: str
    told: tuple[str, ...]
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """The user's words in the chat."""
        return f"please do {self.tool}"


LINK = "tool:calculator"
QUESTIONS = (
    Question("rooms_list", "room_management", "/v1/rooms", ("desk", "Sums for the desk")),
    Question("room_show", "query", "/v1/rooms/desk", ("name: Desk", "description: Sums for the desk"),
             {"room_id": "desk"}),
    Question("tools_list", "tool_generation", "/v1/studio/tools", ()),
    Question("search_entities", "query", "/v1/studio/entities?query=desk&entity_type=room", ("room:desk",),
             {"query": "desk", "entity_type": "room"}),
    Question("get_entity_details", "query", "/v1/studio/entities/room:desk", ("room:desk", LINK),
             {"entity_id": "room:desk"}),
    Question("explain_relationship", "query", f"/v1/studio/relationship?entity_a=room:desk&entity_b={LINK}",
             ("calculator",), {"entity_a": "room:desk", "entity_b": LINK}),
    Question("prompts_list", "config", "/v1/studio/prompts", ("kind", "How we write")),
    Question("prompt_show", "config", "/v1/studio/prompts/kind", ("Be kind.",), {"name": "kind"}),
    Question("list_secrets", "config", "/v1/studio/secrets", ("AGENT_LLM_API_KEY",)),
)  # fmt: skip


async def ask_chat(client: httpx.AsyncClient, message: str) -> str:
    body = {"model": "studio", "messages": [{"role": "user", "content": message}]}
    response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


def as_text(value: Any) -> str:
    """JSON with the line ends of the texts in it."""
    return json.dumps(value, ensure_ascii=False).replace("\\n", "\n")


@pytest.mark.row(
    "S002-05", "S002-06", "S002-20", "S002-21", "S002-22", "S002-23", "S002-50", "S002-52"
)  # fmt: skip
async def test_every_door_of_the_studio_knows_the_same(serve: Serve, tmp_path: Path) -> None:
    rules = [routes(intent(one.category, one.tool, **one.args), about=one.message) for one in QUESTIONS]
    async with (
        serve(script(*rules)) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
        Client(f"{url}/mcp") as mcp,
    ):
        room = {"name": "Desk", "description": "Sums for the desk", "tools": ["calculator"]}
        assert (await client.post("/v1/rooms", json=room)).status_code == 201
        saved = await client.put("/v1/studio/prompts/kind", json={"text": "Be kind.", "description": "How we write"})
        assert saved.is_success
        for one in QUESTIONS:
            by_http = await client.get(one.path)
            assert by_http.status_code == 200, (one.path, by_http.text)
            by_mcp = await mcp.call_tool(one.tool, dict(one.args))
            assert not by_mcp.is_error, (one.tool, by_mcp.content)
            words = [f"{name}={value}" for name, value in one.args.items()]
            code, by_command = await asyncio.to_thread(stepgate, tmp_path, "tools", "call", one.tool, *words)
            assert code == 0, (one.tool, by_command)
            answers = {
                "http": as_text(by_http.json()),
                "chat": await ask_chat(client, one.message),
                "mcp": as_text(by_mcp.structured_content),
                "command": by_command,
            }
            for door, answer in answers.items():
                missing = [word for word in one.told if word not in answer]
                assert missing == [], (one.tool, door, answer)
        unknown = await client.get("/v1/studio/entities/room:dessk")
        assert (unknown.status_code, "did you mean room:desk?" in unknown.text) == (404, True), unknown.text
        for name in ("entity_type", "type"):
            rooms = (await client.get("/v1/studio/entities", params={name: "room"})).json()["data"]
            assert {one["type"] for one in rooms} == {"room"}, name
        none = (await client.get("/v1/studio/relationship?a=room:desk&b=prompt:kind")).json()
        assert (none["related"], none["path"]) == (False, [])
        half = await client.get("/v1/studio/relationship?entity_a=room:desk")
        assert (half.status_code, "'entity_b'" in half.text) == (400, True), half.text
