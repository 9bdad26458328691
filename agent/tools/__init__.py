"""Tools: the `Tool` protocol, its description (`ToolSpec`), and the registry that rooms and skills select from."""

from agent.tools.flat_schema import build_flat_schema
from agent.tools.registry import (
    READ_ONLY,
    READ_ONLY_WEB,
    CallOtherTool,
    CompleteMessages,
    ExplainingTool,
    PlanHints,
    PreflightTool,
    RefiningTool,
    SubAgentSpawner,
    Tool,
    ToolAnnotations,
    ToolContext,
    ToolModel,
    ToolRegistry,
    ToolResult,
    ToolSpec,
    TypedTool,
)

__all__ = [
    "READ_ONLY",
    "READ_ONLY_WEB",
    "CallOtherTool",
    "ToolModel",
    "CompleteMessages",
    "PlanHints",
    "ExplainingTool",
    "PreflightTool",
    "RefiningTool",
    "SubAgentSpawner",
    "Tool",
    "ToolAnnotations",
    "ToolContext",
    "ToolRegistry",
    "ToolResult",
    "ToolSpec",
    "TypedTool",
    "build_flat_schema",
]
