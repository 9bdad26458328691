"""`mcp_servers_list`, `mcp_server_add`, `mcp_server_test`, `mcp_server_remove`: the MCP servers of rooms, by talking.

Only callers who administer may call them. Adding a server always asks a person: it may start a program, and its tools
are used from then on. New tools are pinned, and reviewed where `AGENT_MCP_PIN` says so.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Protocol

from pydantic import Field

from agent.core.errors import ConflictError, ToolError, ToolInputError
from agent.core.models import DeferredModel, JsonObject
from agent.tools import READ_ONLY, READ_ONLY_WEB, Tool, ToolAnnotations, ToolContext, ToolRegistry, declare_roles
from agent.tools.stored_things import DESTROYS, Arguments
from agent.tools.tool import In, Out
from gateway.features.studio.engine.room_editor import RoomEditor
from gateway.features.studio.engine.room_view import Editor, allow_asked
from gateway.features.studio.server_forms import (
    ADD_ROLES,
    ServerAddInput,
    ServerInput,
    ServerLine,
    ServerOutput,
    to_line,
    to_shared_line,
)
from gateway.features.studio.tools.rooms import AuthorizeEditor, RoomTool
from mcp_tools.client.room_servers import make_server_name

if TYPE_CHECKING:
    from mcp_tools.client.hub import McpServer

CONNECT_SECONDS = 61.0
"""How long a call waits for a server to connect: a little longer than the start of a program may take."""
_POLL_SECONDS = 0.05
_NEW = "new"
"""The state of a server that has not been connected to."""
_ADDS = ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=True)
_KEYWORDS = ("mcp", "server", "servers", "connect", "tools", "studio")


class ServerConnections(Protocol):
    """The servers of this process. `gateway.foreign_servers.ForeignServers` implements it."""

    @property
    def servers(self) -> Mapping[str, "McpServer"]:
        """The servers by name; those of rooms are `NAME@ROOM`."""
        ...

    async def refresh(self) -> None:
        """Connects to what the rooms name now. Raises `StoreError`."""
        ...


class ServerTool(RoomTool[In, Out]):
    """The base class of the tools over the servers of rooms. `connections` is None where servers are left out."""

    keywords: ClassVar[tuple[str, ...]] = _KEYWORDS

    def __init__(
        self,
        editor: RoomEditor,
        authorize: AuthorizeEditor,
        registry: ToolRegistry,
        connections: ServerConnections | None,
    ) -> None:
        super().__init__(editor, authorize)
        self._registry, self._connections = registry, connections

    async def _authorize_connecting(self, context: ToolContext) -> Editor:
        """The editor of a call about whose server a person is asked, with its command, credential and address."""
        editor = await self._authorize(context)
        return replace(
            editor, may_connect=True, programs=allow_asked(editor.programs), pairings=allow_asked(editor.pairings)
        )

    async def describe_server(self, room_id: str, name: str) -> ServerOutput:
        """A server once it has connected or failed. Raises `ToolInputError`."""
        if self._connections is None:
            raise ToolError("this process connects to no MCP servers", agent_id=self.name)
        full = make_server_name(room_id, name)
        await self._connections.refresh()
        await _wait_until_settled(self._connections, full)
        server = self._connections.servers.get(full)
        if server is None:
            raise ToolInputError(
                f"the room {room_id!r} has no MCP server {name!r}; mcp_servers_list lists what there is"
            )
        return ServerOutput(
            room_id=room_id,
            name=name,
            state=server.status_line,
            is_ready=server.status in ("ready", "idle"),
            tools=[spec.name for spec in self._registry.list_specs() if spec.origin == server.origin],
            quarantined=dict(server.quarantined),
        )


class ServersListInput(Arguments):
    """Arguments of `mcp_servers_list`."""

    room_id: str = Field(default="", max_length=200, description="only the servers of this room; empty: all")


class ServersListOutput(DeferredModel):
    """The servers, in order of name."""

    servers: list[ServerLine]


class ServersListTool(ServerTool[ServersListInput, ServersListOutput]):
    name = "mcp_servers_list"
    description = "List the MCP servers: those of every room, and those of rooms, with their state."
    annotations = READ_ONLY

    async def run(self, args: ServersListInput, context: ToolContext) -> ServersListOutput:
        """Lists them, those that are not connected yet too."""
        editor = await self._authorize(context)
        views = await self._editor.list_rooms(editor)
        if args.room_id and args.room_id not in {view.room_id for view in views}:
            await self._editor.get_room(args.room_id, editor)  # raises: the room is unknown
        live = dict(self._connections.servers) if self._connections is not None else {}
        lines = [
            to_line(
                view.room_id,
                name,
                server,
                state=live[full].status_line if (full := make_server_name(view.room_id, name)) in live else _NEW,
            )
            for view in views
            if view.room is not None and args.room_id in ("", view.room_id)
            for name, server in view.room.mcp_servers.items()
        ]
        lines += [
            to_shared_line(name, one.config, state=one.status_line)
            for name, one in live.items()
            if one.config.room is None and not args.room_id
        ]
        return ServersListOutput(servers=sorted(lines, key=lambda line: (line.room_id, line.name)))

    def format_text(self, output: ServersListOutput) -> str:
        lines = [
            f"- {one.name} ({f'room {one.room_id}' if one.room_id else 'every room'}, {one.transport}): {one.state}"
            for one in output.servers
        ]
        return "\n".join(lines) or "There are no MCP servers."

    def is_tainted(self, output: ServersListOutput) -> bool:
        """Whether a state is shown that may hold a server's words: the reason of a failure, the name of a tool."""
        return any(one.state != _NEW for one in output.servers)


class _ServerTextTool:
    """Shows a server to people and models."""

    def format_text(self, output: ServerOutput) -> str:
        tools = f" Tools: {', '.join(output.tools)}." if output.tools else ""
        full = make_server_name(output.room_id, output.name)
        review = f" Review: `stepgate mcp-servers review {full}`." if output.quarantined else ""
        return f"MCP server {output.name} of the room {output.room_id}: {output.state}.{tools}{review}"

    def is_tainted(self, output: ServerOutput) -> bool:
        """Always True: the names of tools and the reasons of failures are a server's words."""
        return True


class ServerAddTool(_ServerTextTool, ServerTool[ServerAddInput, ServerOutput]):
    name = "mcp_server_add"
    description = "Connect a room to an MCP server of its own, whose tools only this room can use. Asks a person."
    annotations = _ADDS
    argument_roles = ADD_ROLES
    keywords = (*_KEYWORDS, "add")
    timeout_s = CONNECT_SECONDS + 30.0
    requires_approval = True

    async def check(self, args: ServerAddInput, context: ToolContext) -> None:
        await self._rehearse(args, await self._authorize_connecting(context))

    async def run(self, args: ServerAddInput, context: ToolContext) -> ServerOutput:
        """Writes it into the room and connects."""
        editor = await self._authorize_connecting(context)
        version = await self._rehearse(args, editor)
        changes: JsonObject = {"mcp_servers": {args.name: args.to_fields()}}
        await self._editor.edit_room(args.room_id, changes, editor, version=version)
        return await self.describe_server(args.room_id, args.name)

    async def _rehearse(self, args: ServerAddInput, editor: Editor) -> str:
        """The version of the room that would be changed. Raises what the change would raise."""
        view = await self._editor.get_room(args.room_id, editor)
        if view.room is not None and args.name in view.room.mcp_servers:
            message = f"the room {args.room_id!r} has an MCP server {args.name!r} already; remove it first"
            raise ConflictError(message, stage="identifier")
        await self._editor.check_edit(args.room_id, {"mcp_servers": {args.name: args.to_fields()}}, editor)
        return view.version


class ServerTestTool(_ServerTextTool, ServerTool[ServerInput, ServerOutput]):
    name = "mcp_server_test"
    description = "Say whether a room's MCP server answers, which tools it offers, and which wait for a review."
    annotations = READ_ONLY_WEB
    keywords = (*_KEYWORDS, "test", "check", "works")
    timeout_s = CONNECT_SECONDS + 30.0

    async def run(self, args: ServerInput, context: ToolContext) -> ServerOutput:
        """Waits until it has connected or failed."""
        await self._editor.get_room(args.room_id, await self._authorize(context))
        return await self.describe_server(args.room_id, args.name)


class ServerRemoveOutput(DeferredModel):
    """The server that was removed."""

    room_id: str
    removed: str


class ServerRemoveTool(ServerTool[ServerInput, ServerRemoveOutput]):
    name = "mcp_server_remove"
    description = "Remove an MCP server from its room. Its tools are gone at once."
    annotations = DESTROYS
    argument_roles = declare_roles(room_id="id", name="id")
    keywords = (*_KEYWORDS, "remove", "delete", "disconnect")

    async def check(self, args: ServerInput, context: ToolContext) -> None:
        editor = await self._authorize_connecting(context)
        _, changes = await self._build_removal(args, editor)
        await self._editor.check_edit(args.room_id, changes, editor)

    async def run(self, args: ServerInput, context: ToolContext) -> ServerRemoveOutput:
        """Removes it from the room's text and closes its connection."""
        editor = await self._authorize_connecting(context)
        version, changes = await self._build_removal(args, editor)
        await self._editor.edit_room(args.room_id, changes, editor, version=version)
        if self._connections is not None:
            await self._connections.refresh()
        return ServerRemoveOutput(room_id=args.room_id, removed=args.name)

    async def _build_removal(self, args: ServerInput, editor: Editor) -> tuple[str, JsonObject]:
        """The room's version and the change that removes the server. Raises `ToolInputError`."""
        view = await self._editor.get_room(args.room_id, editor)
        if view.room is None or args.name not in view.room.mcp_servers:
            server_names = ", ".join(view.room.mcp_servers if view.room is not None else ()) or "none"
            raise ToolInputError(f"the room {args.room_id!r} has no MCP server {args.name!r}; it has {server_names}")
        only = len(view.room.mcp_servers) == 1
        return view.version, {"mcp_servers": None if only else {args.name: None}}

    def format_text(self, output: ServerRemoveOutput) -> str:
        return f"Removed the MCP server {output.removed} from the room {output.room_id}."


def make_server_tools(
    editor: RoomEditor, registry: ToolRegistry, authorize: AuthorizeEditor, connections: ServerConnections | None
) -> tuple[Tool, ...]:
    """The tools over the MCP servers of rooms."""
    return (
        ServersListTool(editor, authorize, registry, connections),
        ServerAddTool(editor, authorize, registry, connections),
        ServerTestTool(editor, authorize, registry, connections),
        ServerRemoveTool(editor, authorize, registry, connections),
    )


async def _wait_until_settled(connections: ServerConnections, name: str) -> None:
    deadline = asyncio.get_running_loop().time() + CONNECT_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        server = connections.servers.get(name)
        if server is None or server.status != "connecting":
            return
        await asyncio.sleep(_POLL_SECONDS)
