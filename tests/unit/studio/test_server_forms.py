"""A field of a room's MCP server is in its forms, and reaches the client by its name."""

from typing import Any

import pytest

from agent.core.models import Room, RoomServer, ToolOverrides
from gateway.features.studio.server_forms import ADD_ROLES, ServerAddInput, ServerInput, to_line, to_shared_line
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.room_servers import collect_room_servers

NOT_OF_THE_TOOL = {"env", "secret_env", "timeout", "deny", "approve", "tools"}
"""Fields that are written into the room's file."""
MERGED = {"allow", "deny", "approve"}
"""Fields that the client has as `tools`."""
WHERE = {"room_id": "desk", "name": "orders"}


def test_each_form_has_the_fields() -> None:
    added = set(ServerAddInput.model_fields) - set(ServerInput.model_fields)
    assert added == set(RoomServer.model_fields) - NOT_OF_THE_TOOL
    assert set(ADD_ROLES) == set(ServerAddInput.model_fields)
    assert set(McpServerConfig.model_fields) >= set(RoomServer.model_fields) - MERGED


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"url": "https://a.example"}, {"url": "https://a.example"}),
        (
            {
                "url": "https://a.example",
                "transport": "http",
                "command": "",
                "args": [],
                "credential": "",
                "allow": None,
            },
            {"url": "https://a.example"},
        ),
        ({"url": "https://a.example", "transport": "sse", "allow": []}, None),
        ({"command": "orders", "args": ["--stdio"], "credential": "token", "allow": ["list"]}, None),
    ],
)
def test_what_equals_its_default_is_not_written_into_the_room(
    given: dict[str, Any], fields: dict[str, Any] | None
) -> None:
    assert ServerAddInput.model_validate({**WHERE, **given}).to_fields() == (given if fields is None else fields)


def test_the_client_gets_each_field() -> None:
    given: dict[str, Any] = {
        "url": "https://a.example/mcp", "transport": "sse", "credential": "anna/token", "timeout": 5, "deny": ["drop"],
    }  # fmt: skip
    room = Room(id="desk", owner="anna", mcp_servers={"orders": RoomServer.model_validate(given)})
    assert collect_room_servers([room]) == {
        "orders@desk": McpServerConfig(
            transport="sse",
            url="https://a.example/mcp",
            credential="anna/token",
            timeout=5,
            tools=ToolOverrides(deny=("drop",)),
            room="desk",
            owner="anna",
            public_only=True,
        )
    }


def test_a_server_is_listed_with_its_address_only_where_a_room_has_it() -> None:
    program = RoomServer(command="orders", args=("--stdio",))
    line = to_line("desk", "orders", program, state="ready")
    assert (line.room_id, line.transport, line.where, line.state) == ("desk", "stdio", "orders --stdio", "ready")
    assert to_line("desk", "orders", RoomServer(url="https://a.example"), state="new").where == "https://a.example"
    config = McpServerConfig(transport="http", url="https://secret.example")
    shared = to_shared_line("orders", config, state="ready")
    assert (shared.room_id, shared.transport, shared.where) == ("", "http", "")
