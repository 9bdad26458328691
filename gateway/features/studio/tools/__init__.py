"""The tools over rooms, prompts, generated tools, MCP servers, secrets and the graph, and what doors take of them."""

from gateway.features.studio.tools.entity_graph import (
    EntityDetailsOutput,
    EntityItem,
    ExplainRelationshipOutput,
    LinkItem,
    describe_entity,
    explain_relationship,
    make_graph_tools,
    require_entity,
)
from gateway.features.studio.tools.generated_tools import AuthorizeToolMaker, make_generated_tool_tools
from gateway.features.studio.tools.mcp_servers import make_server_tools
from gateway.features.studio.tools.prompts import make_prompt_tools
from gateway.features.studio.tools.room_programs import ROOM_PROGRAMS_TOOL, WITHHELD_CHANGE, RoomProgramsTool
from gateway.features.studio.tools.rooms import AuthorizeEditor, make_room_tools
from gateway.features.studio.tools.secrets import ListSecretsTool, SecretItem, to_secret_item

__all__ = [
    "AuthorizeEditor",
    "AuthorizeToolMaker",
    "EntityDetailsOutput",
    "EntityItem",
    "ExplainRelationshipOutput",
    "LinkItem",
    "ListSecretsTool",
    "ROOM_PROGRAMS_TOOL",
    "RoomProgramsTool",
    "SecretItem",
    "WITHHELD_CHANGE",
    "describe_entity",
    "explain_relationship",
    "make_generated_tool_tools",
    "make_graph_tools",
    "make_prompt_tools",
    "make_room_tools",
    "make_server_tools",
    "require_entity",
    "to_secret_item",
]
