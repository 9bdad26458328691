"""`LoopDoor`: where a framework's process reaches the model and a world's tools. It counts both.

Tools are called over the MCP door of the world's gateway, so that they are the same ones with the same descriptions,
checks and errors. Where the gateway asks before a call, the simulated user answers as the task says.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import ClientError, ClientSession, ClientTimeout, web
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from agent.core.models import Usage
from agent.llm.replies import read_usage
from gateway.features.evaluation.conversation import TURN_SECONDS, ToolUse
from gateway.features.evaluation.task_files import WorldSpec
from tests.bench.endpoint import Endpoint

TOOLSETS = ("files", "web", "tables", "python", "memory", "basics", "external")
"""What the default room plans with: the gateway's plain tools and those of the world's servers."""
SEARCH = "search"
FINDERS = frozenset({"tools_find", "tools_call"})
"""They find tools that are not listed. Here all are."""
MAX_BODY_BYTES = 50_000_000


def choose_toolsets(world: WorldSpec) -> tuple[str, ...]:
    """The toolsets of a world. Without documents the gateway offers no search either."""
    return (*TOOLSETS, SEARCH) if world.collection else TOOLSETS


@dataclass
class LoopDoor:
    """The door of one task. `reply` is what the user answers to every question of the gateway."""

    endpoint: Endpoint
    tools: Client
    session: ClientSession
    uses: list[ToolUse] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    url: str = ""

    def build_app(self) -> web.Application:
        """The routes: the model's completions, and the tools' calls."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/call", self._call)
        return app

    async def list_tools(self) -> list[dict[str, Any]]:
        """All tools with their names, descriptions and schemas."""
        listed, cursor = [], None
        while True:
            page = await self.tools.list_tools(cursor=cursor)
            listed += [tool for tool in page.tools if tool.name not in FINDERS]
            cursor = page.next_cursor
            if cursor is None:
                return [
                    {"name": tool.name, "description": tool.description or "", "schema": tool.input_schema}
                    for tool in listed
                ]

    async def _complete(self, request: web.Request) -> web.Response:
        headers = {"Authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {}
        body = await request.json()
        try:
            async with self.session.post(
                f"{self.endpoint.url}/chat/completions", json=body, headers=headers
            ) as response:
                data = await response.read()
        except (ClientError, TimeoutError) as error:
            return web.json_response({"error": {"message": repr(error)}}, status=502)
        if response.ok:
            reply = json.loads(data)
            self.usage += read_usage(reply.get("usage"), reply.get("timings"))
        return web.Response(body=data, status=response.status, content_type=response.content_type)

    async def _call(self, request: web.Request) -> web.Response:
        body = await request.json()
        try:
            result = await self.tools.call_tool(body["name"], body["arguments"], read_timeout_seconds=TURN_SECONDS)
            text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
            failed = bool(result.is_error)
        except MCPError as error:
            text, failed = str(error), True
        self.uses.append(ToolUse(tool=body["name"], ok=not failed))
        return web.json_response({"text": f"Error: {text}" if failed else text})


@dataclass
class SimulatedUser:
    """Answers the questions of the gateway before calls, and counts them."""

    reply: Literal["approve", "reject"]
    questions: int = 0

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """The decision, in the gateway's form."""
        self.questions += 1
        return ElicitResult(action="accept", content={"decision": self.reply})


@asynccontextmanager
async def open_door(
    gateway_url: str, toolsets: tuple[str, ...], endpoint: Endpoint, user: SimulatedUser
) -> AsyncIterator[LoopDoor]:
    """Yields a door that listens on this machine."""
    address = f"{gateway_url}/mcp?toolsets={','.join(toolsets)}"
    timeout = ClientTimeout(total=TURN_SECONDS)
    async with Client(address, elicitation_callback=user) as tools, ClientSession(timeout=timeout) as session:
        door = LoopDoor(endpoint, tools, session)
        runner = web.AppRunner(door.build_app(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            door.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield door
        finally:
            await runner.cleanup()
