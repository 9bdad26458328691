"""The tools' part of the composition root: the registry with our own tools, those of packages, and foreign servers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.rooms import Rooms
from agent.subagents.registry import SubAgentClass
from agent.subagents.spawn import make_spawn_tools
from agent.tools import ToolRegistry
from gateway.bootstrap_context import BuildContext
from gateway.features.documents.bootstrap_documents import Documents
from gateway.features.documents.engine.subagents.researcher import Researcher
from gateway.features.pipeline_builder.bootstrap_pipeline_builder import build_pipeline_tools
from gateway.features.pipeline_builder.engine.builder import PipelineBuilder
from gateway.features.pipeline_builder.engine.subagents.pipeline_validator import PipelineValidator
from gateway.features.pipeline_builder.engine.subagents.source_analyzer import SourceAnalyzer
from gateway.features.schedules.engine.service import ScheduleService
from gateway.features.schedules.tools.schedules import make_schedule_tools
from gateway.features.studio.engine.subagents.studio import STUDIO_AGENTS
from gateway.foreign_servers import ForeignServers, build_foreign_servers
from mcp_tools.builtin import Builtins, make_builtin_tools

if TYPE_CHECKING:
    from mcp_tools.client.hub import McpServer


SUBAGENTS: tuple[SubAgentClass, ...] = (SourceAnalyzer, PipelineValidator, Researcher, *STUDIO_AGENTS)
"""The sub-agents of all features."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of the gateway. The studio and the recipes add theirs to the registry later."""

    registry: ToolRegistry
    builtins: Builtins
    foreign: ForeignServers | None
    """Foreign MCP servers, not yet started; None if they are left out."""

    def list_instructions(self) -> Mapping[str, str]:
        """Returns what the foreign servers say about their use, by name."""
        servers: Mapping[str, McpServer] = self.foreign.servers if self.foreign is not None else {}
        return {name: server.instructions for name, server in servers.items()}


def build_tools(
    context: BuildContext,
    rooms: Rooms,
    documents: Documents,
    builder: PipelineBuilder,
    get_schedules: Callable[[], ScheduleService],
    *,
    with_foreign: bool,
) -> Tools:
    """Returns the tools. `get_schedules` is called when a tool for schedules is."""
    builtins = make_builtin_tools(context.settings, documents.memory, documents.library)
    context.stack.push_async_callback(builtins.aclose)
    registry = ToolRegistry()
    registry.register(*builtins.tools, *build_pipeline_tools(builder), *make_schedule_tools(get_schedules))
    registry.register(*make_spawn_tools(SUBAGENTS, builder.make_result_keeper))
    context.installed.add_tools(registry)
    return Tools(registry, builtins, _build_foreign_servers(context, registry, rooms) if with_foreign else None)


def _build_foreign_servers(context: BuildContext, registry: ToolRegistry, rooms: Rooms) -> ForeignServers:
    servers = build_foreign_servers(
        context.settings, registry, context.statements, context.store.clock, context.audit, rooms, context.client
    )
    context.stack.push_async_callback(servers.aclose)
    return servers
