"""A foreign tool as ours: what its results and errors are made of."""

import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from agent.core.errors import ToolError
from agent.core.models import JsonObject
from agent.tools import ToolContext, ToolRegistry, ToolSpec
from agent.tools.catalogue import CatalogueIndex
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.remote_tool import McpTool, RemoteCall, find_tool_problem, make_local_tool_name
from mcp_tools.client.tool_registration import ToolRegistration

CONTEXT = ToolContext(run_id="run_1", owner="local", idempotency_key="k")


class Server:
    """A server whose every call gives this result."""

    name = origin = "srv"
    config = McpServerConfig.model_validate({"command": "x"})

    def __init__(self, result: types.CallToolResult) -> None:
        self._result = result

    async def call(self, call: RemoteCall) -> types.CallToolResult:
        return self._result


def tool_with(result: types.CallToolResult, **fields: Any) -> McpTool:
    return McpTool(Server(result), types.Tool(name="t", input_schema={"type": "object"}, **fields))


async def test_an_error_has_nothing_that_a_terminal_would_obey() -> None:
    text = "cannot do\x1b[31m it\x1b]0;title\x07 now\u202e"
    failed = types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
    with pytest.raises(ToolError) as raised:
        await tool_with(failed).call({}, CONTEXT)
    assert raised.value.message == "cannot do it now"


@pytest.mark.parametrize(
    ("value", "schema", "text"),
    [
        ({"result": ""}, {"type": "string"}, ""),
        ({"result": None}, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ""),
        ({"result": None}, {"type": "null"}, '{"result": null}'),
        ({"result": 0}, {"type": "integer"}, '{"result": 0}'),
        ({"result": "", "more": 1}, {"type": "string"}, '{"result": "", "more": 1}'),
    ],
)
async def test_a_wrapped_nothing_is_an_empty_text(value: Any, schema: JsonObject, text: str) -> None:
    result = types.CallToolResult(content=[], structured_content=value)
    output = {"type": "object", "properties": {"result": schema}}
    assert (await tool_with(result, output_schema=output).call({}, CONTEXT)).text == text


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (types.ImageContent(type="image", data="aGVsbG8=", mime_type="image/png"), "[image, image/png, 5 bytes: "),
        (types.AudioContent(type="audio", data="aGVsbG8h", mime_type="audio/wav"), "[audio, audio/wav, 6 bytes: "),
        (
            types.EmbeddedResource(
                type="resource", resource=types.BlobResourceContents(uri="demo://x.gz", blob="aGVsbG8=")
            ),
            "[demo://x.gz, of unknown type, 5 bytes: ",
        ),
        (
            types.EmbeddedResource(
                type="resource",
                resource=types.BlobResourceContents(uri="demo://x.png", blob="aGVsbG8=", mime_type="image/png"),
            ),
            "[demo://x.png, image/png, 5 bytes: ",
        ),
        (types.ResourceLink(type="resource_link", name="a", uri="demo://a"), "[a](demo://a)"),
    ],
)
async def test_what_is_no_text_is_named_with_its_kind_and_size(block: types.ContentBlock, text: str) -> None:
    result = await tool_with(types.CallToolResult(content=[block])).call({}, CONTEXT)
    assert result.text.startswith(text)


@pytest.mark.parametrize("kind", ["text/plain; charset=utf-8", "application/json", "application/geo+json"])
async def test_a_text_that_came_as_bytes_is_read(kind: str) -> None:
    held = types.BlobResourceContents(uri="demo://x", blob="aGVsbG8=", mime_type=kind)
    block = types.EmbeddedResource(type="resource", resource=held)
    result = await tool_with(types.CallToolResult(content=[block])).call({}, CONTEXT)
    assert result.text == "hello"
    assert result.content[0]["resource"] == {"uri": "demo://x", "mimeType": kind, "text": "hello"}


@pytest.mark.parametrize(
    ("text", "structured", "is_added"),
    [
        ("Done", {"days": 9}, True),
        ("Done", {"is_free": False}, True),
        ("Done in 19 days", {"days": 9}, True),
        ("It is 4 degrees", {"degrees": -4}, True),
        ("Nine days for Birch: 9", {"days": 9, "tenant": "Birch", "note": None}, False),
        ('{"days": 9, "note": "a\\nb"}', {"days": 9, "note": "a\nb"}, False),
        ("9.5", {"result": 9.5}, False),
        ("4,104 bytes", {"size": 4104}, False),
        ("It is 21°C", {"degrees": 21.0}, False),
        ("It costs 9.50", {"price": 9.5}, False),
        ("Version 1.10", {"version": "1.1"}, True),
    ],
)
async def test_a_text_holds_the_structured_values(text: str, structured: JsonObject, is_added: bool) -> None:
    returned = types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=structured)
    result = await tool_with(returned).call({}, CONTEXT)
    assert result.text == (f"{text}\n{json.dumps(structured)}" if is_added else text)


def test_a_tool_that_runs_only_as_a_task_is_left_out() -> None:
    for support, usable in (("required", False), ("optional", True), ("forbidden", True)):
        tool = types.Tool.model_validate(
            {"name": "t", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}
        )
        assert (find_tool_problem(tool) is None) is usable


async def test_a_tool_whose_name_here_is_taken_is_left_out_and_reported(tmp_path: Path) -> None:
    # Long names are cut and end in 24 bits of a hash: a few thousand of them are enough for two that meet.
    seen: dict[str, str] = {}
    for number in range(100_000):
        name = f"{'x' * 60}{number}"
        other = seen.setdefault(make_local_tool_name("srv", name), name)
        if other != name:
            break
    registration = ToolRegistration(
        Server(types.CallToolResult(content=[])), registry := ToolRegistry(), tmp_path / "tools.json", None
    )
    offers = [types.Tool(name=one, input_schema={"type": "object"}) for one in (other, name, "t")]
    await registration.update_offers(offers)
    assert [tool.name for tool in registration.tools] == [other, "t"]
    assert sorted(spec.name for spec in registry.list_specs()) == sorted([make_local_tool_name("srv", name), "srv__t"])
    assert f"{name}: its name here" in registration.problems
    await registration.update_offers(offers[1:])
    assert [tool.name for tool in registration.tools] == [name, "t"]
    assert registration.problems == ""


def spec_with(hints: types.ToolAnnotations | None, properties: JsonObject, **tools: Any) -> ToolSpec:
    server = Server(types.CallToolResult(content=[]))
    server.config = McpServerConfig.model_validate({"command": "x", "trusted": True, "tools": tools})
    tool = types.Tool(name="t", input_schema={"type": "object", "properties": properties}, annotations=hints)
    return McpTool(server, tool).spec


URI: JsonObject = {"page": {"type": "string", "format": "uri"}}
NESTED: JsonObject = {"pages": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"format": "url"}]}}}


@pytest.mark.parametrize(
    ("hint", "properties", "tools", "open_world", "where"),
    [
        (None, {}, {}, False, ()),  # a missing hint is no hint
        (False, {}, {}, False, ()),
        (True, {}, {}, True, ()),
        (None, {"x": {}}, {"open_world": True}, True, ()),
        (None, {"x": {}}, {"open_world": ["t"]}, True, ()),
        (None, {"x": {}}, {"open_world": ["other"]}, False, ()),
        (True, {"x": {}}, {"open_world": False}, False, ()),
        (None, URI, {}, False, ("page",)),
        (None, NESTED, {}, False, ("pages",)),
        (None, {"x": {}}, {"arguments": {"t.x": "where"}}, False, ("x",)),
        (None, {"x": {}}, {"arguments": {"other.x": "where"}}, False, ()),
    ],
)
def test_a_read_reaches_others_where_somebody_says_so(
    hint: bool | None, properties: JsonObject, tools: JsonObject, open_world: bool, where: tuple[str, ...]
) -> None:
    hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=hint)
    spec = spec_with(hints, properties, **tools)
    assert (spec.is_open_world, spec.where_args) == (open_world, where)
    assert spec.reads_over_network is (open_world or bool(where))


def test_a_tool_without_hints_is_an_effect_that_asks_as_such() -> None:
    assert not spec_with(None, URI).reads_over_network


def test_roles_of_unknown_arguments_are_reported() -> None:
    config = McpServerConfig.model_validate({"command": "x", "tools": {"arguments": {"t.y": "where"}}})
    (message,) = config.tools.list_ignored_settings({"t": {"x"}})
    assert "'t.y'" in message


@pytest.mark.parametrize("name", ["searchMessages", "search_messages", "searchSMSMessages", "x1"])
def test_a_tool_is_ranked_by_the_words_of_its_own_name_and_title(name: str) -> None:
    server = Server(types.CallToolResult(content=[]))
    schema: JsonObject = {"type": "object"}
    title = "Search messages" if name == "x1" else None
    tools = [
        McpTool(server, types.Tool(name=one, title=label, description="Does it.", input_schema=schema)).spec
        for one, label in ((name, title), ("listFolders", None))
    ]
    scores = CatalogueIndex(tools).compute_scores("Which messages did Ada write?")
    assert scores[tools[0].name] > 0
    assert scores[tools[1].name] == 0
