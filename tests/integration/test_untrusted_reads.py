"""Reads of a server that is not trusted: asked about as reads, once for the server in a conversation, over HTTP."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.integration.conftest import Serve
from tests.support.approvals import ids_of
from tests.support.keys import bearer, created_key
from tests.support.mcp_client import until_async, until_listed
from tests.support.mcp_server_raw import raw_program
from tests.support.script import Rule, plans, says, script

SECRET = "The harbour code is zanzibar 48213."
FIRST, SECOND, ORDER, OTHER = "search the shop for tea", "look up the cup", "order the kettle", "note it at the desk"
COMPLETE = {"id": "end", "tool": "completion"}


def step(tool: str, text: str, **more: Any) -> dict[str, Any]:
    return {"tool": tool, "inputs": {"text": text}, **more}


RULES = (
    plans(step("desk__search", "it"), COMPLETE, about=OTHER),
    plans(step("shop__order", "kettle"), COMPLETE, about=ORDER),
    plans(step("shop__look", "cup"), COMPLETE, about=SECOND),
    plans(step("shop__search", "tea"), COMPLETE, about=FIRST),
)
DONE = says("It is done.", to="completion")


class Shop:
    """A gateway with two foreign servers that nobody trusts, and what the first was sent."""

    def __init__(self, client: httpx.AsyncClient, log: Path) -> None:
        self.client, self._log = client, log

    @property
    def calls(self) -> list[list[str]]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        messages = [json.loads(line.partition(" ")[2]) for line in lines]
        made = [one["params"] for one in messages if one.get("method") == "tools/call"]
        return [[one["name"], one["arguments"]["text"]] for one in made]

    async def ask(self, prompt: str, **body: Any) -> dict[str, Any]:
        answer: dict[str, Any] = (await self.client.post("/v1/agent", json={"prompt": prompt, **body})).json()
        assert "metadata" in answer, answer
        return answer

    async def approve(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The run once it has ended or asks again."""
        run = f"/v1/runs/{asked['metadata']['run_id'] if 'metadata' in asked else asked['id']}"
        await self.client.post(f"{run}/approve", json={"approvals": ids_of(asked)})

        async def is_at_rest() -> bool:
            return (await self.client.get(run)).json()["status"] not in ("queued", "running")

        await until_async(is_at_rest)
        stopped: dict[str, Any] = (await self.client.get(run)).json()
        return stopped


@asynccontextmanager
async def shop(serve: Serve, folder: Path, *rules: Rule, headers: dict[str, str] | None = None) -> AsyncIterator[Shop]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    hints = {"search": {"readOnlyHint": True}, "look": {"readOnlyHint": True}, "order": {}}
    tools = [{"name": name, "inputSchema": schema, "annotations": hint} for name, hint in hints.items()]
    servers: dict[str, Any] = {}
    for name in ("shop", "desk"):
        (folder / name).mkdir()
        servers[name] = raw_program(folder / name, {"tools/list": {"result": {"tools": tools}}})
    (folder / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    files = folder / "files"
    files.mkdir()
    (files / "notes.md").write_text(SECRET)
    (folder / "rooms").mkdir()
    room = {"name": "careful", "approval": "side_effects", "supervision": "checks", "memory": False}
    (folder / "rooms" / "careful.yaml").write_text(yaml.safe_dump(room))
    options = {"rooms_dir": folder / "rooms", "mcp_servers": folder / "servers.json", "file_roots": (files,)}
    async with (
        serve(script(*rules, DONE), **options) as url,
        httpx.AsyncClient(base_url=url, timeout=60, headers=headers or {}) as client,
    ):
        for name in servers:
            await until_listed(client, f"{name}__search")
        yield Shop(client, folder / "shop" / "script.log")


@pytest.mark.parametrize(
    ("conversation", "has_key", "asked"), [("made", False, False), ("c1", False, True), ("c1", True, False)]
)
async def test_a_yes_to_a_read_covers_the_servers_further_reads_in_its_conversation(
    serve: Serve, tmp_path: Path, conversation: str, has_key: bool, asked: bool
) -> None:
    headers = bearer(await created_key(tmp_path / "data", "anna", owner="anna")) if has_key else {}
    async with shop(serve, tmp_path, *RULES, headers=headers) as it:
        if conversation == "made":
            conversation = (await it.client.post("/v1/conversations", json={})).json()["id"]
        talk = {"room": "careful", "conversation_id": conversation}
        first = await it.ask(FIRST, **talk)
        assert "this reads from the MCP server 'shop', which is not trusted" in first["response"]
        assert "changes something" not in first["response"]
        assert (await it.approve(first))["status"] == "succeeded"
        second = await it.ask(SECOND, **talk)
        assert (second["metadata"]["status"] == "awaiting_approval") == asked, second["response"]
        assert it.calls == [["search", "tea"], *([] if asked else [["look", "cup"]])]
        if not asked:
            order = await it.ask(ORDER, **talk)
            assert "changes something" in order["response"], "a yes to reads is none to a change"
            assert (await it.approve(order))["status"] == "succeeded"
            other = await it.ask(OTHER, **talk)
            assert "'desk', which is not trusted" in other["response"], "nor to another server"


async def test_private_words_from_elsewhere_ask_and_the_servers_own_do_not(serve: Serve, tmp_path: Path) -> None:
    rules = plans(
        {"id": "s1", "tool": "shop__search", "inputs": {"text": "tea"}},
        {"id": "s2", "tool": "shop__look", "inputs": {"text": "$s1"}, "depends_on": ["s1"]},
        {"id": "s3", "tool": "read_file", "inputs": {"path": "notes.md"}, "depends_on": ["s5"]},
        {"id": "s5", "tool": "shop__look", "inputs": {"text": "$s2"}, "depends_on": ["s2"]},
        {"id": "s4", "tool": "shop__look", "inputs": {"text": "$s3"}, "depends_on": ["s3"]},
        COMPLETE,
    )
    async with shop(serve, tmp_path, rules) as it:
        asked = await it.ask("find tea in the shop and look it up with my notes")
        assert "reads from shop, which is not trusted" in asked["response"]
        assert it.calls == [["search", "tea"]]
        stopped = await it.approve(asked)
        assert stopped["status"] == "awaiting_approval", stopped
        assert [name for name, _ in it.calls] == ["search", "look", "look"], "the shop has its own words back, unasked"
        assert "zanzibar" in json.dumps(stopped["response"])
        assert "goes to a server outside" in json.dumps(stopped["response"])
        assert (await it.approve(stopped))["status"] == "succeeded"
        assert SECRET in it.calls[-1][1]
