"""Foreign MCP servers that break the protocol's form: one bad piece costs that piece, and nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ToolError
from agent.core.models import JsonObject
from agent.tools import ToolContext, ToolRegistry, ToolResult
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.hub import McpHub, McpServer
from tests.support.engine import engine_bench
from tests.support.mcp_client import until
from tests.support.mcp_raw_program import ABSENT, ECHO
from tests.support.mcp_server_raw import RawHttpServer, raw_program

CONTEXT = ToolContext(run_id="run_1", owner="local", idempotency_key="k")
TRANSPORTS = ["stdio", "json", "sse"]
TEXT = {"type": "text", "text": "kept"}
PNG = "iVBORw0KGgo="


@asynccontextmanager
async def entry_of(folder: Path, transport: str, script: dict[str, Any]) -> AsyncIterator[McpServerConfig]:
    """The configuration of a server that answers by the script."""
    if transport == "stdio":
        yield McpServerConfig.model_validate({**raw_program(folder, script), "timeout": 5})
        return
    server = RawHttpServer(script, is_streaming=transport == "sse")
    async with server.serve():
        yield McpServerConfig.model_validate({"url": server.url, "timeout": 5})


@asynccontextmanager
async def server_of(
    folder: Path, transport: str, script: dict[str, Any]
) -> AsyncIterator[tuple[McpServer, ToolRegistry]]:
    registry = ToolRegistry()
    async with entry_of(folder, transport, script) as config:
        hub = McpHub({"srv": config}, registry, folder / "mcp", None)
        await hub.start()
        try:
            await until(lambda: hub.servers["srv"].status != "connecting")
            yield hub.servers["srv"], registry
        finally:
            await hub.aclose()


@asynccontextmanager
async def raw_server_of(folder: Path, script: dict[str, Any]) -> AsyncIterator[tuple[RawHttpServer, ToolRegistry]]:
    """The program of a server over HTTP itself, and its tools."""
    raw, registry = RawHttpServer(script), ToolRegistry()
    async with raw.serve():
        hub = McpHub({"srv": McpServerConfig.model_validate({"url": raw.url, "timeout": 5})}, registry, folder, None)
        await hub.start()
        try:
            await until(lambda: hub.servers["srv"].status != "connecting")
            yield raw, registry
        finally:
            await hub.aclose()


def listed(*tools: Any, **more: Any) -> dict[str, Any]:
    return {"tools/list": {"result": {"tools": list(tools), **more}}}


async def call(folder: Path, reply: Any, transport: str = "stdio", **script: Any) -> ToolResult:
    async with server_of(folder, transport, {"tools/call": reply, **script}) as (_, registry):
        return await registry.get("srv__echo").call({}, CONTEXT)


BAD_TOOLS: list[tuple[Any, str]] = [
    ("not an object", "tool 2 of its list: left out"),
    (None, "tool 2 of its list: left out"),
    ({"inputSchema": {"type": "object"}}, "tool 2 of its list: left out"),
    ({"name": 7, "inputSchema": {"type": "object"}}, "tool 2 of its list: left out"),
    ({"name": "bare"}, "bare: its input schema is missing, so it takes any arguments"),
    ({"name": "bare", "inputSchema": {}}, "bare: its input schema is missing"),
    ({"name": "bare", "inputSchema": "{}"}, "bare: its input schema is missing"),
    ({**ECHO, "name": "bare", "description": ["a", "b"]}, "bare: used without its description"),
    ({**ECHO, "name": "bare", "annotations": {"readOnlyHint": "maybe"}}, "bare: used without its annotations"),
    ({**ECHO, "name": "bare", "outputSchema": True}, "bare: its output schema is not an object"),
    ({**ECHO, "name": "bare", "icons": "x", "_meta": 3}, "bare: used without its icons"),
]


@pytest.mark.parametrize(("tool", "told"), BAD_TOOLS)
async def test_a_bad_tool_costs_no_other_and_is_told(tmp_path: Path, tool: Any, told: str) -> None:
    async with server_of(tmp_path, "stdio", listed(ECHO, tool, {**ECHO, "name": "last"})) as (server, registry):
        assert server.status == "ready"
        assert told in server.status_line
        assert {"srv__echo", "srv__last"} <= {one.spec.name for one in registry}
        assert ("srv__bare" in registry) is ("left out" not in told)
        if "srv__bare" in registry:
            assert (await registry.get("srv__bare").call({"any": 1}, CONTEXT)).text == "done"


SCHEMAS: list[JsonObject] = [
    {"properties": {"x": {"type": "string"}}},
    {"type": "object", "properties": {"x": {"type": "string", "pattern": r"^\p{L}+$"}}},
    {"type": "object", "properties": {"x": {"type": "string", "pattern": r"^(?<year>\d{4})\/[^]*$"}}},
    {"type": "object", "properties": {"x": {"type": "string", "pattern": r"(?<=a+)b\cA\u{1F600}"}}},
    {"type": "object", "properties": {"x": {"type": "number", "minimum": 1, "exclusiveMinimum": True}}},
    {"type": "object", "properties": {"x": {"type": "string", "required": True}}, "id": "http://x.test/s"},
    {"type": "object", "properties": {"x": {"type": "any"}}, "required": None},
    {"type": "object", "properties": {"x": {"type": "array", "items": [{"type": "string"}]}}, "additionalItems": False},
    {"type": "object", "properties": None, "required": "x"},
    {"type": "object", "dependencies": {"x": ["y"], "z": {"required": ["x"]}}},
    {"type": ["object", "null"], "properties": {"x": True}},
    {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {"x": None}},
    {"type": "object", "properties": {"x": {"type": "string", "enum": []}}},
    {
        "$recursiveAnchor": True,
        "type": "object",
        "properties": {"x": {"type": "array", "items": {"$recursiveRef": "#"}}},
    },
]


@pytest.mark.parametrize("transport", ["stdio", "json"])
async def test_schemas_of_older_drafts_and_other_regular_expressions_cost_no_tool(
    tmp_path: Path, transport: str
) -> None:
    tools = [{"name": f"t{number}", "inputSchema": schema} for number, schema in enumerate(SCHEMAS)]
    async with server_of(tmp_path, transport, listed(*tools)) as (server, registry):
        assert server.status_line == f"ready, {len(SCHEMAS)} tools"
        for number in range(len(SCHEMAS)):
            assert registry.get(f"srv__t{number}").spec.input_schema["type"] == "object"
        bounds = registry.get("srv__t4").spec.input_schema["properties"]
        assert bounds == {"x": {"type": "number", "exclusiveMinimum": 1}}
        assert registry.get("srv__t5").spec.input_schema["required"] == ["x"]


async def test_a_tool_with_such_a_pattern_is_called_with_checked_arguments(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None) as bench:
        script = listed(*({"name": f"t{n}", "inputSchema": SCHEMAS[n]} for n in (1, 3, 4)))
        async with entry_of(tmp_path, "stdio", script) as config:
            hub = McpHub({"srv": config}, bench.engine.registry, tmp_path / "mcp", None)
            await hub.start()
            await until(lambda: "srv__t4" in bench.engine.registry)
            for name, value, fits in (("t1", "Ärger", True), ("t1", "7", False), ("t3", "b", True), ("t4", 1, False)):
                asked = {"tool_calls": [{"tool": f"srv__{name}", "args": {"x": value}}]}
                answered = await bench.run("", metadata=asked)
                assert (answered.metadata["status"] == "complete") is fits, (name, value, answered.response)
            await hub.aclose()


SECOND = {**ECHO, "name": "b"}
PAGES: list[tuple[list[Any], int, str]] = [
    ([{"tools": [ECHO], "nextCursor": "0"}], 1, "repeats a page"),
    (
        [{"tools": [ECHO], "nextCursor": "1"}, {"tools": [SECOND], "nextCursor": "1"}],
        2,
        "repeats a page",
    ),
    ([{"tools": [ECHO], "nextCursor": 1}, {"tools": [SECOND], "nextCursor": None}], 2, ""),
    ([{"tools": [ECHO], "nextCursor": "1"}, None], 1, "the next page failed"),
    ([{"tools": [ECHO], "nextCursor": "1"}, {"tools": "b"}], 1, "its list of tools is not a list"),
]


@pytest.mark.parametrize(("pages", "count", "told"), PAGES)
async def test_a_list_that_breaks_off_or_repeats_keeps_what_came(
    tmp_path: Path, pages: list[Any], count: int, told: str
) -> None:
    replies = [{"error": {"code": -32603, "message": "no"}} if page is None else {"result": page} for page in pages]
    async with server_of(tmp_path, "stdio", {"tools/list": replies}) as (server, _):
        assert server.status == "ready"
        assert len({tool.name for tool in server.tools}) == count
        assert told in server.status_line


INITIALIZATIONS: list[dict[str, Any]] = [
    {"serverInfo": None},
    {"serverInfo": {"name": 3}},
    {"capabilities": None},
    {"capabilities": {"tools": True, "resources": []}},
    {"instructions": {"a": 1}},
    {"protocolVersion": None},
    {"protocolVersion": "1.0"},
    {"protocolVersion": "2024-10-07"},
]


@pytest.mark.parametrize("said", INITIALIZATIONS)
async def test_a_server_that_introduces_itself_wrongly_is_used(tmp_path: Path, said: dict[str, Any]) -> None:
    async with server_of(tmp_path, "json", {"initialize": said}) as (server, registry):
        assert server.status == "ready", server.reason
        assert (await registry.get("srv__echo").call({}, CONTEXT)).text == "done"


PICTURE = "[image, image/png, 8 bytes: not shown, because it is not text]"
RESULTS: list[tuple[Any, Any, str]] = [
    (None, None, ""),
    ("deleted", "deleted", "deleted"),
    ([TEXT], "kept", "kept"),
    (42, {"result": 42}, '{"result": 42}'),
    ({}, None, ""),
    ({"content": []}, None, ""),
    ({"content": None}, None, ""),
    ({"content": "kept"}, "kept", "kept"),
    ({"content": TEXT}, "kept", "kept"),
    ({"content": [TEXT], "isError": None}, "kept", "kept"),
    ({"content": [TEXT], "isError": "false"}, "kept", "kept"),
    ({"content": [TEXT, None, {"type": "chart", "points": [1]}]}, ..., 'kept\n{"type": "chart", "points": [1]}'),
    ({"content": [{"type": "note", "text": "kept"}]}, "kept", "kept"),
    ({"content": [{"text": "kept"}]}, "kept", "kept"),
    ({"content": [{"type": "text", "text": 7}]}, "7", "7"),
    ({"content": [{**TEXT, "annotations": "none"}]}, "kept", "kept"),
    (
        {"content": [{"type": "image", "data": PNG}]},
        ...,
        "[image, image/png, 8 bytes: not shown, because it is not text]",
    ),
    ({"content": [{"type": "resource", "resource": {"text": "kept"}}]}, ..., "kept"),
    ({"content": [{"type": "resource_link", "uri": "x://y"}]}, ..., "[x://y](x://y)"),
    ({"content": [{"type": "image", "data": f"data:image/png;base64,{PNG}"}]}, ..., PICTURE),
    (
        {"content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]},
        ...,
        PICTURE,
    ),
    (
        {"content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, TEXT]},
        ...,
        f"{PICTURE}\nkept",
    ),
    (
        {"content": [{"type": "video", "data": PNG, "mimeType": "video/mp4"}]},
        ...,
        "[unknown:resource, video/mp4, 8 bytes: not shown, because it is not text]",
    ),
    (
        {"content": [{"type": "table", "data": "kept", "mimeType": "text/csv"}]},
        ...,
        '{"type": "table", "data": "kept", "mimeType": "text/csv"}',
    ),
    ({"structuredContent": {"id": 7}}, {"id": 7}, '{"id": 7}'),
    ({"structuredContent": [1, 2], "isError": None}, {"result": [1, 2]}, '{"result": [1, 2]}'),
    ({"content": [TEXT], "_meta": [], "resultType": "done", "ttlMs": "x"}, "kept", "kept"),
]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_result_is_read_as_far_as_it_goes(tmp_path: Path, transport: str) -> None:
    tools = [{**ECHO, "name": f"t{number}"} for number in range(len(RESULTS))]
    replies: dict[str, Any] = {
        f"tools/call t{number}": {"result": result} for number, (result, _, _) in enumerate(RESULTS)
    }
    async with server_of(tmp_path, transport, {**listed(*tools), **replies}) as (_, registry):
        for number, (sent, value, text) in enumerate(RESULTS):
            result = await registry.get(f"srv__t{number}").call({}, CONTEXT)
            assert result.text == text, sent
            assert value is ... or result.value == value, sent


async def test_a_result_that_breaks_the_tools_own_promise_is_no_failure(tmp_path: Path) -> None:
    promise = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    replies: Any = ({"content": [TEXT]}, {"content": [], "structuredContent": {"id": "seven"}}, {"content": []})
    tools = [{**ECHO, "name": f"t{number}", "outputSchema": promise} for number in range(len(replies))]
    script = {**listed(*tools), **{f"tools/call t{n}": {"result": reply} for n, reply in enumerate(replies)}}
    async with engine_bench(tmp_path / "data", None) as bench, entry_of(tmp_path, "json", script) as config:
        hub = McpHub({"srv": config}, bench.engine.registry, tmp_path / "mcp", None)
        await hub.start()
        await until(lambda: "srv__t2" in bench.engine.registry)
        assert bench.engine.registry.get("srv__t0").spec.output_schema == promise
        for number, text in enumerate(("kept", '{"id": "seven"}', "srv__t2 ran and returned nothing.")):
            answered = await bench.run("", metadata={"tool_calls": [{"tool": f"srv__t{number}", "args": {}}]})
            assert (answered.metadata["status"], answered.response) == ("complete", text)
        await hub.aclose()


ERRORS: list[tuple[Any, str]] = [
    ({"result": {"isError": True, "content": [{"type": "text", "text": "no such note"}]}}, "no such note"),
    ({"result": {"isError": True, "structuredContent": {"error": {"message": "no such note"}}}}, "no such note"),
    ({"result": {"isError": "true", "content": "no such note"}}, "no such note"),
    ({"result": {"isError": 1, "structuredContent": "no such note"}}, "no such note"),
    ({"error": "no such note"}, "no such note"),
    ({"error": {"message": "no such note"}}, "no such note"),
    ({"error": {"code": "E7", "message": "no such note"}}, "no such note"),
    ({"error": {"code": -32000, "message": "the account is closed"}}, "the account is closed"),
    ({"error": {"code": 7, "message": "", "data": {"detail": "no such note"}}}, "no such note"),
    ({"error": {"code": -32603, "message": "Internal error", "data": {"detail": "no such note"}}}, "no such note"),
    ({"error": {"code": 7, "message": None, "data": "x"}, "jsonrpc": ABSENT}, "code"),
]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_error_reaches_the_caller_in_the_servers_words(tmp_path: Path, transport: str) -> None:
    tools = [{**ECHO, "name": f"t{number}"} for number in range(len(ERRORS))]
    replies = {f"tools/call t{number}": reply for number, (reply, _) in enumerate(ERRORS)}
    async with server_of(tmp_path, transport, {**listed(*tools), **replies}) as (_, registry):
        for number, (reply, words) in enumerate(ERRORS):
            with pytest.raises(ToolError) as raised:
                await registry.get(f"srv__t{number}").call({}, CONTEXT)
            assert words in raised.value.message, reply
            assert "not known whether" not in raised.value.message


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_answer_without_a_version_is_read(tmp_path: Path, transport: str) -> None:
    reply = {"jsonrpc": ABSENT, "result": {"content": [TEXT]}}
    assert (await call(tmp_path, reply, transport)).text == "kept"


@pytest.mark.parametrize("result", [{"uri": "a://1", "text": "kept"}, {"content": [{"uri": "a://1", "text": "kept"}]}])
async def test_a_resource_that_stands_elsewhere_in_the_result_is_read(tmp_path: Path, result: dict[str, Any]) -> None:
    script = {
        "capabilities": {"resources": {}, "tools": {}},
        "resources/list": {"result": {"resources": [{"uri": "a://1", "name": "one"}]}},
        "resources/read": {"result": result},
    }
    async with server_of(tmp_path, "json", script) as (_, registry):
        assert (await registry.get("srv__read_resource").call({"uri": "a://1"}, CONTEXT)).text == "kept"


async def test_bad_resources_cost_no_other(tmp_path: Path) -> None:
    script = {
        "capabilities": {"resources": {}, "tools": {}},
        "resources/list": {"result": {"resources": [{"uri": "a://1", "name": "one"}, {"name": "no address"}, 3]}},
        "resources/read": {"result": {"contents": [{"text": "kept", "mimeType": 7}]}},
    }
    async with server_of(tmp_path, "json", script) as (server, registry):
        assert "no address: left out" in server.status_line
        listed_text = (await registry.get("srv__list_resources").call({}, CONTEXT)).text
        assert listed_text == "- a://1: one"
        assert (await registry.get("srv__read_resource").call({"uri": "a://1"}, CONTEXT)).text == "kept"
