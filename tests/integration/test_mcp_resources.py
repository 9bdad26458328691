"""The resources of other people's MCP servers, as tools: links are followed, lists are read, pins hold."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ToolError
from agent.tools import Tool, ToolContext, ToolRegistry
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.hub import McpHub, McpServer
from mcp_tools.client.tool_pin_store import PinSettings
from mcp_tools.client.tool_pins import ToolDefinition
from tests.integration.conftest import Serve
from tests.integration.test_mcp_content import gateway, text
from tests.integration.test_mcp_tool_pins import pins_of
from tests.support import warm
from tests.support.engine import engine_bench
from tests.support.mcp_client import hub_with, offered, until
from tests.support.mcp_server_media import DATA, LINK
from tests.support.script import judges, plans, says, script

CONTEXT = ToolContext(run_id="run_1", owner="local", idempotency_key="k")


@pytest.fixture(params=["stdio", "http"])
def entry(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The server in the file of servers, on a process of its own."""
    with offered("mcp_server_media", request.param) as found:
        yield found


def media(**options: Any) -> McpServerConfig:
    return McpServerConfig.model_validate({**warm.server("tests.support.mcp_server_media", "stdio"), **options})


@asynccontextmanager
async def server_of(folder: Path, **options: Any) -> AsyncIterator[McpServer]:
    async with hub_with(folder, media(**options)) as server:
        await until(lambda: server.status == "ready")
        yield server


def tool(server: McpServer, name: str) -> Tool:
    return server._registration._registry.get(f"srv__{name}")


@pytest.mark.row("Scard-02")
async def test_a_plan_follows_a_link_that_a_result_holds(tmp_path: Path, entry: dict[str, Any]) -> None:
    model = script(
        plans(
            {"tool": "srv__show"},
            {"tool": "srv__read_resource", "inputs": {"uri": LINK}, "depends_on": ["s1"]},
            {"tool": "completion"},
        ),
        judges("SUCCESS"),
        says("It is 4711.", to="completion", about="The draft says 4711."),
    )
    async with engine_bench(tmp_path / "data", model) as bench:
        hub = McpHub({"srv": McpServerConfig.model_validate(entry)}, bench.engine.registry, tmp_path / "mcp", None)
        await hub.start()
        await until(lambda: hub.servers["srv"].status == "ready")
        response = await bench.run("search for what there is to see, then read the draft")
        await hub.aclose()
    assert response.response == "It is 4711."
    shown, read = response.metadata["tool_results"]
    assert f"[a draft]({LINK})" in shown["text"]
    assert (read["text"], read["tainted"]) == ("The draft says 4711.", True)
    effects = [step["effect"] for step in response.metadata["plan"]["steps"]]
    assert effects[:2] == ["effect", "read"], "that it only reads is the protocol's word, not the server's"


async def test_resources_and_templates_are_listed_over_all_pages(tmp_path: Path) -> None:
    async with server_of(tmp_path) as server:
        everything = await tool(server, "list_resources").call({}, CONTEXT)
        few = await tool(server, "list_resources").call({"query": "LOGO"}, CONTEXT)
        none = await tool(server, "list_resources").call({"query": "nothing of the kind"}, CONTEXT)
    assert everything.text.splitlines() == [
        "- notes://readme: readme. How to begin.",
        "- notes://logo: logo, image/png, 4,104 bytes",
        "- notes://page/{number}: a page",
    ]
    assert few.value == {
        "resources": [{"uri": "notes://logo", "name": "logo", "mimeType": "image/png", "size": 4104}],
        "templates": [],
    }
    assert none.text == "No resources."


async def test_a_resource_is_read_over_mcp_within_the_limits(
    tmp_path: Path, serve: Serve, entry: dict[str, Any]
) -> None:
    async with gateway(tmp_path, serve, entry, "2026-07-28") as client:
        logo = await client.call_tool("srv__read_resource", {"uri": "notes://logo"})
        page = await client.call_tool("tools_call", {"name": "srv__read_resource", "args": {"uri": "notes://page/3"}})
        gone = await client.call_tool("srv__read_resource", {"uri": "notes://gone"})
        long = await client.call_tool("srv__read_resource", {"uri": "notes://long/300000"})
        many = await client.call_tool("srv__read_resource", {"uri": "x" * 3_000})
    (picture,) = logo.content
    assert picture.type == "resource"
    assert (picture.resource.uri, getattr(picture.resource, "blob", "")) == ("notes://logo", DATA)
    assert getattr(page.content[0], "resource").text == "Page three."  # noqa: B009 - one of several kinds
    assert gone.is_error
    assert "MCP server 'srv': there is nothing at notes://gone" in text(gone.content[0])
    cut = getattr(long.content[0], "resource").text  # noqa: B009 - as above
    assert cut.startswith("x" * 200_000 + "\n[cut: this text had 300,000 characters")
    assert many.is_error


@pytest.mark.parametrize(
    ("options", "there"),
    [
        ({}, {"list_resources", "read_resource"}),
        ({"tools": {"deny": ["list_resources"]}}, {"read_resource"}),
        ({"tools": {"allow": ["show"]}}, set()),
        ({"tools": {"rename": {"read_resource": "open"}}}, {"list_resources", "open"}),
    ],
)
async def test_the_operator_chooses_them_like_any_tool(tmp_path: Path, options: Any, there: set[str]) -> None:
    async with server_of(tmp_path, **options) as server:
        names = {one.spec.name.removeprefix("srv__") for one in server._registration._registry}
        assert names & {"list_resources", "read_resource", "open"} == there
        assert server.reason == ""


async def test_only_servers_that_have_resources_get_them_and_their_own_tools_come_first(tmp_path: Path) -> None:
    fixture = McpServerConfig.model_validate(warm.server("tests.support.mcp_server_basic", "stdio"))
    async with hub_with(tmp_path, fixture) as server:
        await until(lambda: server.status == "ready")
        assert "srv__read_resource" not in server._registration._registry, "it declares resources, and has none"
    async with hub_with(tmp_path, media(args=[*media().args, "own"])) as server:
        await until(lambda: server.status == "ready")
        assert (await tool(server, "read_resource").call({"uri": "a"}, CONTEXT)).text == "its own tool"
        assert tool(server, "read_resource").spec.effect == "effect", "its hints are not believed"
        assert "No resources" in (await tool(server, "list_resources").call({"query": "no such"}, CONTEXT)).text


async def test_they_are_pinned_like_the_tools_of_their_server(tmp_path: Path) -> None:
    registry = ToolRegistry()
    async with pins_of(tmp_path / "pins") as pinning:
        await pinning.store.record_offers("srv", {"other": ToolDefinition.from_parts({"name": "other"})}, "first_use")
        hub = McpHub({"srv": media()}, registry, tmp_path, PinSettings(pinning.store, "first_use"))
        await hub.start()
        await until(lambda: hub.servers["srv"].status == "ready")
        server = hub.servers["srv"]
        assert server.quarantined["read_resource"] == "is new on this server"
        with pytest.raises(ToolError, match="mcp-servers review"):
            registry.get("srv__read_resource")
        await hub.aclose()


async def test_they_are_there_before_the_server_has_answered(tmp_path: Path) -> None:
    async with server_of(tmp_path):
        pass
    async with hub_with(tmp_path, media()) as server:
        assert tool(server, "read_resource").spec.effect == "read", "from the last good list"
        assert (await tool(server, "read_resource").call({"uri": LINK}, CONTEXT)).text == "The draft says 4711."
