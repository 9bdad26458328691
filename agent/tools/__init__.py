"""Tools: the `Tool` protocol, its description (`ToolSpec`), and the registry that rooms and skills select from."""

from agent.tools.registry import (
    READ_ONLY,
    READ_ONLY_WEB,
    CompleteMessages,
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
    build_flat_schema,
)

__all__ = [
    "READ_ONLY",
    "READ_ONLY_WEB",
    "ToolModel",
    "CompleteMessages",
    "PlanHints",
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
