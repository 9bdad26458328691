"""The forms of an MCP server of a room: as it is listed, as it is shown once it has connected, and as it is added.

A field of such a server is defined in `RoomServer` (`agent/core/models/room.py`), which rooms hold; the client takes it
by its name where `McpServerConfig` has it (`mcp_tools/client/config.py`). It is added here to each form that has it.
"""

from typing import Literal

from pydantic import Field

from agent.core.models import DeferredModel, JsonObject, RoomServer
from agent.tools import declare_roles
from agent.tools.stored_things import Arguments
from mcp_tools.client.config import McpServerConfig

ADD_ROLES = declare_roles(
    room_id="where",
    name="id",
    url="where",
    transport="other",
    command="where",
    args="where",
    credential="where",
    allow="other",
)
"""The roles of `ServerAddInput`."""


class ServerLine(DeferredModel):
    """A server as it is listed. `room_id` is empty for a server of every room."""

    room_id: str
    name: str
    transport: Literal["http", "sse", "stdio"]
    where: str
    state: str


class ServerOutput(DeferredModel):
    """A room's server: its state in words, its tools, and those that wait for a review with the reason."""

    room_id: str
    name: str
    state: str
    is_ready: bool
    tools: list[str]
    quarantined: dict[str, str]


class ServerInput(Arguments):
    """Arguments of `mcp_server_test` and `mcp_server_remove`."""

    room_id: str = Field(max_length=200, description="the room whose server it is")
    name: str = Field(max_length=200, description="the server's name")


class ServerAddInput(ServerInput):
    """Arguments of `mcp_server_add`: either `url` or `command`."""

    url: str = Field(default="", max_length=2_000, description="its address, https://...")
    transport: Literal["http", "sse"] = Field(default="http", description="how its address is spoken to")
    command: str = Field(default="", max_length=2_000, description="the program to start instead; shared rooms only")
    args: list[str] = Field(default_factory=list, max_length=100, description="the program's arguments")
    credential: str = Field(
        default="", max_length=200, description="the name of a bearer credential (list_secrets), never a token"
    )
    allow: list[str] | None = Field(default=None, max_length=100, description="only these of its tools; unset: all")

    def to_fields(self) -> JsonObject:
        """The fields that differ from their defaults: what a person would write. Models send "" for what they leave
        out.
        """
        given = self.model_dump(mode="json", exclude={"room_id", "name"})
        defaults = RoomServer().model_dump(mode="json")
        return {name: value for name, value in given.items() if value not in ("", None) and value != defaults[name]}


def to_line(room_id: str, name: str, server: RoomServer, *, state: str) -> ServerLine:
    """A server of a room as it is listed."""
    transport: Literal["http", "sse", "stdio"] = server.transport if server.url else "stdio"
    where = server.url or " ".join((server.command, *server.args))
    return ServerLine(room_id=room_id, name=name, transport=transport, where=where, state=state)


def to_shared_line(name: str, config: McpServerConfig, *, state: str) -> ServerLine:
    """A server of every room as it is listed, without its address: that is the operator's."""
    return ServerLine(room_id="", name=name, transport=config.transport, where="", state=state)
