"""Generated tools for connected MCP clients: both eras are told when one appears, changes and goes, without asking."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_tools.server import subscriptions
from tests.integration.conftest import Serve
from tests.integration.test_generated_tools import REQUEST, client_of
from tests.support.sandboxes import requires_sandbox
from tests.support.script import script
from tests.support.tool_scripts import CODE, ToolScript

pytestmark = [
    requires_sandbox,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
NAME = "convert_part_number"
API = f"/v1/studio/tools/{NAME}"
LOWER = CODE.replace("digits + letter.upper()", "digits + letter.upper() + ''")


class Listeners:
    """Two real clients of the gateway, one of each era, and what they were told."""

    def __init__(self) -> None:
        self.told = {"2025": 0, "2026": 0}
        self.changed = asyncio.Condition()

    async def hear(self, era: str) -> None:
        async with self.changed:
            self.told[era] += 1
            self.changed.notify_all()

    async def connect(self, stack: AsyncExitStack, url: str) -> Client:
        async def hear_message(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                await self.hear("2025")

        client = Client(f"{url}/mcp/all", mode="legacy", message_handler=hear_message)
        old = await stack.enter_async_context(client)
        new = await stack.enter_async_context(Client(f"{url}/mcp/all", mode="2026-07-28"))
        events = await stack.enter_async_context(new.listen(tools_list_changed=True))

        async def follow() -> None:
            async for _ in events:
                await self.hear("2026")

        task = asyncio.ensure_future(follow())
        stack.callback(task.cancel)
        return old

    async def wait_for(self, count: int) -> None:
        """Waits until both were told so many times."""
        enough: Callable[[], bool] = lambda: min(self.told.values()) >= count  # noqa: E731 - a condition
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(enough)


async def describe(client: Client) -> tuple[Any, Any] | None:
    """The version and checksum under which the tool is listed; None if it is not."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    meta = (tools[NAME].meta or {}) if NAME in tools else None
    return None if meta is None else (meta["version"], meta["sha256"])


async def change(client: httpx.AsyncClient, what: str, **body: Any) -> dict[str, Any]:
    response = await client.post(f"{API}/{what}", json=body)
    assert response.is_success, response.text
    changed: dict[str, Any] = response.json()
    return changed


@pytest.mark.row("S002-18")
async def test_clients_are_told_of_tools_that_appear_change_and_go(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "WATCH_SECONDS", 0.02)
    listeners = Listeners()
    model = script(*ToolScript(codes=(CODE, LOWER)).rules())
    async with serve(model) as url, client_of(url) as http, AsyncExitStack() as stack:
        client = await listeners.connect(stack, url)
        first = (await http.post("/v1/studio/tools", json=REQUEST)).json()
        await asyncio.sleep(0.2)
        assert (listeners.told, await describe(client)) == ({"2025": 0, "2026": 0}, None), "what is staged is nobody's"
        await change(http, "apply", version=1, sha256=first["sha256"])
        await listeners.wait_for(1)
        assert await describe(client) == (1, first["sha256"])
        called = await client.call_tool(NAME, {"number": "A-12"})
        assert called.structured_content == {"converted": "12A", "error": None}
        second = await change(http, "refine", change="say it otherwise")
        assert second["sha256"] != first["sha256"]
        await change(http, "apply", version=2, sha256=second["sha256"])
        await listeners.wait_for(2)
        assert await describe(client) == (2, second["sha256"])
        await change(http, "restore", version=1)
        await listeners.wait_for(3)
        assert await describe(client) == (1, first["sha256"])
        assert (await http.delete(API)).status_code == 204
        await listeners.wait_for(4)
        assert await describe(client) is None
        with pytest.raises(MCPError, match=NAME):
            await client.call_tool(NAME, {"number": "A-12"})
    assert listeners.told == {"2025": 4, "2026": 4}, json.dumps(listeners.told)
