"""Foreign MCP servers of an older or careless make: their tools stay, and what a call returned is not lost."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ToolError
from agent.core.json_schema import iter_violations
from tests.integration.test_mcp_malformed import CONTEXT, call, listed, server_of
from tests.support.mcp_server_raw import WRITTEN

SCHEMAS: list[tuple[Any, dict[str, Any], str]] = [
    ({"a": {"type": "string", "minLength": "3"}}, {"a": "x"}, "properties/a/minLength"),
    ({"a": "string"}, {"a": "x"}, "properties/a"),
    ([], {"a": 1}, "properties"),
    ({"a": {"type": "string", "title": 3, "format": 7}}, {"a": "x"}, "properties/a/"),
    ({"a": {"type": "number", "multipleOf": 0}}, {"a": 3}, "properties/a/multipleOf"),
    ({"a": {"$ref": "https://example.org/s.json"}}, {"a": 1}, "properties/a/$ref"),
    ({"a": {"anyOf": [{"$ref": "#/$defs/None"}, {"type": "null"}]}}, {"a": 1}, "properties/a/anyOf/0/$ref"),
]


async def test_a_part_that_is_no_json_schema_does_not_cost_the_tool(tmp_path: Path) -> None:
    tools = [
        {"name": f"t{at}", "inputSchema": {"type": "object", "properties": given, "additionalProperties": False}}
        for at, (given, _, _) in enumerate(SCHEMAS)
    ]
    async with server_of(tmp_path, "stdio", listed(*tools)) as (server, registry):
        for at, (given, args, place) in enumerate(SCHEMAS):
            tool = registry.get(f"srv__t{at}")
            assert given == [] or not list(iter_violations(tool.spec.input_schema, args)), given
            assert (await tool.call(args, CONTEXT)).text == "done"
            assert f"t{at}: used without {place}" in server.status_line


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"toolResult": "kept"}, {"result": "kept"}),
        ({"toolResult": {"a": "kept"}}, {"a": "kept"}),
        ({"result": ["kept"]}, "kept"),
        ({"temperature": 21, "place": "kept"}, {"temperature": 21, "place": "kept"}),
        ({"contents": [{"uri": "a:b", "text": "kept"}]}, "kept"),
        ({"structured_content": {"a": "kept"}}, {"a": "kept"}),
        ({"file": "kept", "is_error": True}, {"file": "kept", "is_error": True}),
        ({"content": None, "result": "kept"}, "kept"),
        ({"content": [], "data": {"a": "kept"}}, {"data": {"a": "kept"}}),
        ({"_meta": {"took": 3}}, None),
    ],
)
async def test_a_result_in_fields_of_its_own_is_read(tmp_path: Path, result: Any, value: Any) -> None:
    returned = await call(tmp_path, {"result": result})
    assert returned.value in (value, "kept")
    assert ("kept" in returned.text) is (value is not None)


@pytest.mark.parametrize("stated", [{}, {"isError": False}, {"isError": "no"}])
@pytest.mark.parametrize("failed", [True, "true", 1])
async def test_a_failure_is_one_also_in_snake_case(tmp_path: Path, failed: Any, stated: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="the note is locked"):
        await call(tmp_path, {"result": {"content": "the note is locked", "is_error": failed, **stated}})
    kept = await call(tmp_path, {"result": {"content": [{"type": "text", "text": "kept"}], "is_error": False}})
    assert kept.text == "kept"


@pytest.mark.parametrize(
    "result", [{"content": [], "isError": True, "error": "no quota"}, {"content": [], "error": {"message": "no quota"}}]
)
async def test_an_error_beside_an_empty_content_is_the_failure(tmp_path: Path, result: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match=r"^no quota$"):
        await call(tmp_path, {"result": result})


QUEUED = {"content": [{"type": "text", "text": "queued"}]}


@pytest.mark.parametrize("error", ["disk full", {"message": "disk full"}, {"code": 7, "message": "disk full"}])
@pytest.mark.parametrize("result", [QUEUED, {**QUEUED, "isError": False}, {"structuredContent": {"state": "queued"}}])
async def test_an_error_beside_other_content_is_a_failure_in_its_words(
    tmp_path: Path, result: dict[str, Any], error: Any
) -> None:
    with pytest.raises(ToolError, match="disk full") as raised:
        await call(tmp_path, {"result": {**result, "error": error, "rows": [1, 2]}})
    assert "queued" in raised.value.message
    assert "[1, 2]" in raised.value.message


@pytest.mark.parametrize(
    ("fields", "value", "text"),
    [
        ({"rows": [1, 2]}, 'queued\n{"rows": [1, 2]}', 'queued\n{"rows": [1, 2]}'),
        ({"rows": [1, 2], "error": None}, 'queued\n{"rows": [1, 2]}', 'queued\n{"rows": [1, 2]}'),
        ({"usage": {"tokens": 5}}, 'queued\n{"usage": {"tokens": 5}}', 'queued\n{"usage": {"tokens": 5}}'),
        (
            {"error": {"code": 0, "message": "success"}},
            'queued\n{"error": {"code": 0, "message": "success"}}',
            'queued\n{"error": {"code": 0, "message": "success"}}',
        ),
        ({"number": 7, "error": 0.5}, 'queued\n{"number": 7, "error": 0.5}', 'queued\n{"number": 7, "error": 0.5}'),
        ({"toolResult": "queued"}, "queued", "queued"),
        ({"error": "none", "cursor": ""}, 'queued\n{"error": "none"}', 'queued\n{"error": "none"}'),
        ({"error": {"code": 0, "message": ""}}, "queued", "queued"),
        ({"structuredContent": {"a": 1}, "rows": [2]}, {"rows": [2], "a": 1}, 'queued\n{"rows": [2], "a": 1}'),
    ],
)
async def test_fields_beside_the_content_are_not_lost(
    tmp_path: Path, fields: dict[str, Any], value: Any, text: str
) -> None:
    returned = await call(tmp_path, {"result": {**QUEUED, **fields}})
    assert (returned.value, returned.text) == (value, text)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "metric", "text": "Rooms", "value": 0}, 'Rooms\n{"value": 0}'),
        (
            {"type": "image", "text": "a map", "url": "https://example.org/a.png"},
            'a map\n{"url": "https://example.org/a.png"}',
        ),
        ({"type": "markdown", "text": "# Rooms", "_meta": {"a": 1}}, "# Rooms"),
    ],
)
async def test_fields_beside_the_text_of_an_unknown_block_are_not_lost(
    tmp_path: Path, block: dict[str, Any], text: str
) -> None:
    assert (await call(tmp_path, {"result": {"content": [block]}})).text == text


async def test_an_empty_object_beside_a_text_is_not_its_value(tmp_path: Path) -> None:
    returned = await call(tmp_path, {"result": {**QUEUED, "structuredContent": {}}})
    assert (returned.value, returned.text) == ("queued", "queued")
    assert (await call(tmp_path, {"result": {"content": [], "structuredContent": {}}})).value == {}


async def test_a_second_tool_of_a_name_is_left_out_and_named(tmp_path: Path) -> None:
    first, second = ({"name": "echo", "description": text, "inputSchema": {"type": "object"}} for text in ("a", "b"))
    async with server_of(tmp_path, "stdio", listed(first, second, first)) as (server, registry):
        assert server.status_line == "ready, 1 tool: echo: another tool of its list has this name"
        assert registry.get("srv__echo").spec.description == "a"


async def test_an_object_of_success_alone_is_no_failure(tmp_path: Path) -> None:
    success = {"code": 0, "message": "success"}
    assert (await call(tmp_path, {"result": {"error": success}})).value == {"error": success}


async def test_a_resource_of_which_only_the_address_is_sent_is_named(tmp_path: Path) -> None:
    block = {"type": "resource", "resource": {"uri": "notes://7", "mimeType": "text/plain"}}
    assert "notes://7" in (await call(tmp_path, {"result": {"content": [block]}})).text


@pytest.mark.parametrize("name", ["input_schema", "parameters"])
async def test_a_schema_under_another_name_is_the_tools(tmp_path: Path, name: str) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    async with server_of(tmp_path, "stdio", listed({"name": "echo", name: schema})) as (server, registry):
        assert server.status_line == "ready, 1 tool"
        assert registry.get("srv__echo").spec.input_schema["required"] == ["x"]


async def test_a_mapping_of_parameters_is_no_schema(tmp_path: Path) -> None:
    parameters = {"type": {"type": "string"}, "size": {"type": "integer"}}
    async with server_of(tmp_path, "stdio", listed({"name": "echo", "parameters": parameters})) as (server, registry):
        assert "echo: its input schema is missing, so it takes any arguments" in server.status_line
        assert registry.get("srv__echo").spec.input_schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_half_a_character_does_not_cost_a_result(tmp_path: Path, kind: str) -> None:
    body = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "kept \\ud83d"}]}}'
    sent = body if kind == "application/json" else f"event: message\ndata: {body}\n\n"
    assert (await call(tmp_path, {WRITTEN: (200, kind, sent)}, "json")).text == "kept \ufffd"


@pytest.mark.parametrize("transport", ["stdio", "json", "sse"])
async def test_a_result_of_several_megabytes_arrives(tmp_path: Path, transport: str) -> None:
    reply = {"result": {"content": [{"type": "text", "text": "k" * 3_000_000}]}}
    assert len((await call(tmp_path, reply, transport)).text) == 3_000_000


@pytest.mark.parametrize("transport", ["stdio", "json"])
async def test_a_server_with_resources_alone_is_used(tmp_path: Path, transport: str) -> None:
    script = {
        "capabilities": {"resources": {}},
        "tools/list": {"error": {"code": -32601, "message": "Method not found"}},
        "resources/list": {"result": {"resources": [{"uri": "a://1", "name": "one"}]}},
        "resources/read": {"result": {"contents": [{"uri": "a://1", "text": "kept"}]}},
    }
    async with server_of(tmp_path, transport, script) as (server, registry):
        assert server.status_line == "ready, 2 tools: it offers no tools of its own"
        assert (await registry.get("srv__read_resource").call({"uri": "a://1"}, CONTEXT)).text == "kept"


@pytest.mark.parametrize("name", ["inputSchema", "input_schema", "parameters"])
async def test_a_schema_as_a_json_text_is_read(tmp_path: Path, name: str) -> None:
    schema = '{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}'
    async with server_of(tmp_path, "stdio", listed({"name": "echo", name: schema})) as (server, registry):
        assert server.status_line == "ready, 1 tool"
        assert registry.get("srv__echo").spec.input_schema["required"] == ["x"]


NULLABLE = {
    "a": {"type": "string", "nullable": True},
    "b": {"enum": ["x"], "nullable": True},
    "c": {"$ref": "#/$defs/d", "nullable": True},
}


async def test_a_value_may_be_null_as_openapi_says(tmp_path: Path) -> None:
    tool = {
        "name": "echo",
        "inputSchema": {"type": "object", "properties": NULLABLE, "$defs": {"d": {"type": "object"}}},
    }
    async with server_of(tmp_path, "stdio", listed(tool)) as (server, registry):
        assert server.status_line == "ready, 1 tool"
        schema = registry.get("srv__echo").spec.input_schema
    assert not list(iter_violations(schema, dict.fromkeys(NULLABLE)))
    assert not list(iter_violations(schema, {"a": "y", "b": "x", "c": {}}))
    assert all(list(iter_violations(schema, {name: 7})) for name in NULLABLE)


async def test_a_recursive_schema_of_2019_is_checked_at_every_depth(tmp_path: Path) -> None:
    nested = {"name": {"type": "string"}, "parts": {"type": "array", "items": {"$recursiveRef": "#"}}}
    schema = {"$recursiveAnchor": True, "type": "object", "properties": nested, "required": ["name"]}
    async with server_of(tmp_path, "stdio", listed({"name": "echo", "inputSchema": schema})) as (_, registry):
        read = registry.get("srv__echo").spec.input_schema
    assert not list(iter_violations(read, {"name": "a", "parts": [{"name": "b"}]}))
    assert list(iter_violations(read, {"name": "a", "parts": [{"parts": []}]}))


NAMES = ("getUser", "Get-User", "get-user", "get_user", "getuser", "GetUser")


async def test_tools_that_differ_in_capitals_and_hyphens_only_are_all_used(tmp_path: Path) -> None:
    script = {f"tools/call {name}": {"result": {"content": name}} for name in NAMES}
    by_order: list[dict[str, str]] = []
    for names in (NAMES, NAMES[::-1]):
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        async with server_of(tmp_path, "stdio", {**listed(*tools), **script}) as (server, registry):
            assert server.status_line == f"ready, {len(NAMES)} tools"
            by_order.append({tool.spec.name: (await tool.call({}, CONTEXT)).text for tool in registry})
    assert by_order[0] == by_order[1], "whatever their order is"
    assert sorted(by_order[0].values()) == sorted(NAMES)
    assert (by_order[0]["srv__get_user"], by_order[0]["srv__getuser"]) == ("get_user", "getuser")


async def test_tools_as_an_object_by_name_are_read(tmp_path: Path) -> None:
    tools = {"echo": {"inputSchema": {"type": "object"}}, "other": {"name": "own", "inputSchema": {"type": "object"}}}
    async with server_of(tmp_path, "stdio", {"tools/list": {"result": {"tools": tools}}}) as (server, registry):
        assert server.status_line == "ready, 2 tools"
        assert {"srv__echo", "srv__own"} <= {one.spec.name for one in registry}
