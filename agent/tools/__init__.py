"""Tools: the `Tool` protocol, its description (`ToolSpec`), and the registry that rooms and skills select from."""

from agent.tools.flat_schema import build_flat_schema
from agent.tools.registry import ToolRegistry, WithheldTool
from agent.tools.spec import (
    READ_ONLY,
    READ_ONLY_WEB,
    ConversationUse,
    PlanHints,
    ToolAnnotations,
    ToolSpec,
    UserSource,
    declare_roles,
)
from agent.tools.tool import (
    CallOtherTool,
    CompleteMessages,
    ExplainingTool,
    PreflightTool,
    PreviewingTool,
    RefiningTool,
    SubAgentSpawner,
    Tool,
    ToolContext,
    ToolModel,
    ToolResult,
    TypedTool,
    is_shown_call_by_call,
)

__all__ = [
    "ConversationUse",
    "READ_ONLY",
    "READ_ONLY_WEB",
    "CallOtherTool",
    "ToolModel",
    "CompleteMessages",
    "PlanHints",
    "ExplainingTool",
    "PreflightTool",
    "PreviewingTool",
    "RefiningTool",
    "SubAgentSpawner",
    "Tool",
    "ToolAnnotations",
    "ToolContext",
    "ToolRegistry",
    "ToolResult",
    "ToolSpec",
    "TypedTool",
    "UserSource",
    "WithheldTool",
    "build_flat_schema",
    "declare_roles",
    "is_shown_call_by_call",
]
