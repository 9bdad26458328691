"""The tools' part of the composition root: the registry with our own tools, those of packages, and foreign servers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.run_context.memory import MemoryStore
from agent.runs.rooms import Rooms
from agent.tools import ToolRegistry
from gateway.bootstrap_context import BuildContext
from gateway.foreign_servers import ForeignServers, build_foreign_servers
from mcp_tools.builtin import Builtins, make_builtin_tools

if TYPE_CHECKING:
    from mcp_tools.client.hub import McpServer


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of the gateway. Features add theirs to the registry later."""

    registry: ToolRegistry
    builtins: Builtins
    foreign: ForeignServers | None
    """Foreign MCP servers, not yet started; None if they are left out."""

    def list_instructions(self) -> Mapping[str, str]:
        """The instructions of the foreign servers, by name."""
        servers: Mapping[str, McpServer] = self.foreign.servers if self.foreign is not None else {}
        return {name: server.instructions for name, server in servers.items()}


def build_tools(context: BuildContext, rooms: Rooms, memory: MemoryStore, *, with_foreign: bool) -> Tools:
    """The plain tools; features register theirs later."""
    builtins = make_builtin_tools(context.settings, memory)
    context.stack.push_async_callback(builtins.aclose)
    registry = ToolRegistry()
    registry.register(*builtins.tools)
    return Tools(registry, builtins, _build_foreign_servers(context, registry, rooms) if with_foreign else None)


def _build_foreign_servers(context: BuildContext, registry: ToolRegistry, rooms: Rooms) -> ForeignServers:
    servers = build_foreign_servers(
        context.settings, registry, context.statements, context.store.clock, context.audit, rooms, context.client
    )
    context.stack.push_async_callback(servers.aclose)
    return servers
