"""A gateway on a real port, with tools, skills and a room of a test's own, asked over HTTP."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from agent.core.settings import Settings
from agent.tools import Tool
from gateway.bootstrap import build_gateway
from tests.support.script import Rule, script
from tests.support.scripted_server import ScriptedServer
from tests.support.serving import serving


@dataclass
class Door:
    """A client of the gateway, and the model behind it."""

    client: httpx.AsyncClient
    model: ScriptedServer

    async def ask(self, prompt: str, **body: Any) -> dict[str, Any]:
        """The answer of `POST /v1/agent`; AssertionError with its text if it is refused."""
        response = await self.client.post("/v1/agent", json={"prompt": prompt, **body})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def call(self, tool: str, args: dict[str, Any], **body: Any) -> Any:
        """The result of one explicit tool call, as `metadata.tool_results` has it."""
        answer = await self.ask("", metadata={"tool_calls": [{"tool": tool, "args": args}]}, **body)
        (result,) = [one for one in answer["metadata"]["tool_results"] if one["tool"] == tool]
        return result

    async def list_events(self, answer: dict[str, Any]) -> list[dict[str, Any]]:
        """The log of the run behind an answer."""
        path = f"/v1/runs/{answer['metadata']['run_id']}/events"
        listed = await self.client.get(path, headers={"accept": "application/json"})
        events: list[dict[str, Any]] = listed.json()["data"]
        return events

    def bodies(self, purpose: str) -> list[dict[str, Any]]:
        """What the model was asked for this purpose, in order."""
        return [one["body"] for one in self.model.requests() if one["purpose"] == purpose]


@asynccontextmanager
async def door_bench(
    folder: Path,
    server: ScriptedServer,
    *rules: Rule,
    tools: Sequence[Tool] = (),
    room: str = "",
    **options: Any,
) -> AsyncIterator[Door]:
    """A gateway that asks the scripted model, or none without rules. `room` is the YAML of its default room."""
    if rules:
        server.load(script(*rules))
        options = {"llm_base_url": server.url, "model_fast": "small", "model_high": "large", **options}
    if room:
        rooms = folder / "rooms"
        rooms.mkdir(parents=True)
        (rooms / "test.yaml").write_text(room)
        options = {"rooms_dir": rooms, "default_room": "test", **options}
    options = {"skills_dirs": (), "drain_seconds": 1, **options}
    settings = Settings(_env_file=None, data_dir=folder / "data", port=0, **options)
    async with build_gateway(settings) as stepgate:
        stepgate.registry.register(*tools)
        async with serving(settings, stepgate) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
            yield Door(client, server)


def list_outcomes(answer: dict[str, Any]) -> list[tuple[str | None, str]]:
    """The verdicts of an answer, by step."""
    return [(one["step_id"], str(one["detail"]["outcome"])) for one in answer["steps"] if one["type"] == "supervision"]
