"""MCP servers of rooms as configurations of the client: usable in their room only, at public addresses only."""

import logging
from collections.abc import Iterable

from pydantic import ValidationError

from agent.core.models import Room, RoomServer
from agent.core.value_faults import describe_first_fault
from mcp_tools.client.config import McpServerConfig
from mcp_tools.client.room_server_rules import find_server_problems

log = logging.getLogger(__name__)


def make_server_name(room_id: str, name: str) -> str:
    """The name of a room's server: `orders@support`. No server of the operator's file has an `@`."""
    return f"{name}@{room_id}"


def collect_room_servers(rooms: Iterable[Room]) -> dict[str, McpServerConfig]:
    """The servers of all rooms by name. A room whose servers break a rule, which a file edited by hand may do,
    has none.
    """
    room_servers: dict[str, McpServerConfig] = {}
    for room in rooms:
        if not room.mcp_servers:
            continue
        if problem := next(find_server_problems(room), None):
            log.debug("the servers of the room %s are not used: %s", room.id, problem)
            continue
        for name, server in room.mcp_servers.items():
            try:
                room_servers[make_server_name(room.id, name)] = _make_config(room, server)
            except ValidationError as error:
                fault = describe_first_fault(error, quote=False)
                log.warning("the server %s of the room %s is not used: %s", name, room.id, fault)
    return room_servers


def _make_config(room: Room, server: RoomServer) -> McpServerConfig:
    """The configuration: each field that both have under one name, and what follows from the room."""
    shared = {name: value for name, value in server if name in McpServerConfig.model_fields}
    own = {"transport": server.transport if server.url else "stdio", "tools": server.tool_overrides}
    return McpServerConfig.model_validate({**shared, **own, "room": room.id, "owner": room.owner, "public_only": True})
