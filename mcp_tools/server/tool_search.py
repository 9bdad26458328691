"""The tools a view lists, and `tools_find` and `tools_call`, which find and call tools that it does not list.

So hundreds of tools do not fill every client's context.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mcp_types as types
from pydantic import BaseModel, Field, JsonValue, ValidationError

from agent.core.models import JsonObject
from agent.core.record_item import RecordItem
from agent.runs.run_intake import RunIntake
from agent.tools import READ_ONLY, ToolAnnotations, ToolRegistry, ToolSpec, build_flat_schema
from agent.tools.catalogue import CatalogueIndex, is_foreign
from mcp_tools.server.agent_tools import AGENT_TOOLS
from mcp_tools.server.call_conversations import add_argument
from mcp_tools.server.client_call import CallResult, ClientCall
from mcp_tools.server.content import make_text_content
from mcp_tools.server.pagination import PAGE_SIZE
from mcp_tools.server.tools import (
    call_registered_tool,
    describe_agent_tool,
    describe_registered_tool,
    format_validation_error,
    make_error_result,
    to_mcp_annotations,
)
from mcp_tools.server.toolsets import Toolsets
from mcp_tools.server.views import CALL_TOOL, FIND_TOOL, View

_ANY_EFFECT = ToolAnnotations()


class FindInput(BaseModel):
    """Arguments of `tools_find`."""

    query: str = Field(min_length=1, max_length=500, description="what the tool should do, in words; or its name")
    limit: int = Field(default=8, ge=1, le=50, description="how many tools at most")


class FoundTool(RecordItem):
    """A tool that was found, with everything needed to call it."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]
    effect: str


class FoundTools(BaseModel):
    """Tools in order of relevance."""

    tools: list[FoundTool]
    of: int = Field(description="how many tools there are in all")


class CallInput(BaseModel):
    """Arguments of `tools_call`."""

    name: str = Field(min_length=1, max_length=64, description="a name that tools_find returned")
    args: dict[str, JsonValue] = Field(default={}, description="its arguments, as its input_schema says")


def list_view_tools(specs: Sequence[ToolSpec], view: View, toolsets: Toolsets) -> list[types.Tool]:
    """The tools of a view in a fixed order: the agent's, ours by name, `tools_find` and `tools_call`,
    external ones by name."""
    listed = [spec for spec in specs if is_listed(spec, view, toolsets)]
    agents = [
        describe_agent_tool(tool)
        for tool in AGENT_TOOLS.values()
        if view.permits_tool(tool.name) and view.lists_toolset(toolsets.find_named(tool.name))
    ]
    own = [describe_registered_tool(spec) for spec in listed if not is_foreign(spec)]
    foreign = [describe_registered_tool(spec) for spec in listed if is_foreign(spec)]
    # A client that reads only the first page finds the other tools by searching.
    is_cut = len(agents) + len(listed) > PAGE_SIZE
    finders = [
        tool
        for tool in _SEARCH_TOOLS
        if view.names_tool(tool.name) or len(listed) < len(specs) or (is_cut and view.permits_tool(tool.name))
    ]
    tools = [*agents, *own, *finders, *foreign]
    return tools if view.toolsets is None else [_shorten_listing(tool) for tool in tools]


def is_listed(spec: ToolSpec, view: View, toolsets: Toolsets) -> bool:
    """Whether the view lists a tool that it permits. A view without choices does not list external tools."""
    if view.toolsets is not None:
        return view.lists_toolset(toolsets.get_toolset(spec))
    return view.tools is not None or not is_foreign(spec)


def _shorten_listing(tool: types.Tool) -> types.Tool:
    """The tool without what no model chooses by: the schema of results and the title of the arguments.

    They are half of a list that clients put into every prompt.
    """
    arguments = {key: value for key, value in tool.input_schema.items() if key != "description"}
    return tool.model_copy(update={"input_schema": arguments, "output_schema": None})


def get_search_tool_schema(name: str) -> JsonObject | None:
    """The argument schema of `tools_find` or `tools_call`; None for any other name."""
    return {FIND_TOOL: build_flat_schema(FindInput), CALL_TOOL: build_flat_schema(CallInput)}.get(name)


async def call_search_tool(
    intake: RunIntake,
    registry: ToolRegistry,
    specs: Sequence[ToolSpec],
    name: str,
    arguments: dict[str, Any],
    call: ClientCall,
    view: View,
    toolsets: Toolsets,
) -> CallResult:
    """Executes `tools_find` or `tools_call`. `specs` are the registered tools that may be called in the view."""
    try:
        if name == FIND_TOOL:
            # A list that is cut into pages may have been read to its first page only.
            unlisted = [spec for spec in specs if not is_listed(spec, view, toolsets)] or [*filter(is_foreign, specs)]
            tools = _find_tools(unlisted, FindInput.model_validate(arguments))
            return types.CallToolResult(
                content=[make_text_content(_format_found_tools(tools))], structured_content=tools.model_dump()
            )
        wanted = CallInput.model_validate(arguments)
    except ValidationError as error:
        return make_error_result(f"{name}: {format_validation_error(error)}")
    if wanted.name not in {spec.name for spec in specs}:
        return make_error_result(f"there is no tool {wanted.name[:64]!r} to call; find it with {FIND_TOOL}")
    return await call_registered_tool(intake, registry.get(wanted.name), wanted.args, call, view.room)


def _find_tools(specs: list[ToolSpec], wanted: FindInput) -> FoundTools:
    scores = CatalogueIndex(specs).compute_scores(wanted.query)
    for spec in specs:  # a matching name counts more than a matching description
        scores[spec.name] += 100.0 if wanted.query.lower() in spec.name else 0.0
    ranked = [spec for spec in sorted(specs, key=lambda spec: (-scores[spec.name], spec.name)) if scores[spec.name]]
    chosen = [replace(spec, input_schema=add_argument(spec)) for spec in ranked[: wanted.limit]]
    return FoundTools(tools=FoundTool.from_records(chosen), of=len(specs))


def _format_found_tools(found: FoundTools) -> str:
    if not found.tools:
        return f"None of the {found.of} tools matches; try other words."
    return "\n".join(f"- {tool.name}: {' '.join(tool.description.split())[:200]}" for tool in found.tools)


_SEARCH_TOOLS = (
    types.Tool(
        name=FIND_TOOL,
        description="Find more tools by what they do, when none of this list fits: arithmetic, dates, documents and "
        "answers with citations, incidents, schedules, recipes, rooms, prompts, pipelines, and those of connected MCP "
        "servers. Returns each with its input_schema. Call it with tools_call.",
        input_schema=build_flat_schema(FindInput),
        output_schema=build_flat_schema(FoundTools),
        annotations=to_mcp_annotations(READ_ONLY),
    ),
    types.Tool(
        name=CALL_TOOL,
        description="Call a tool that tools_find found, by its name, with arguments as its input_schema says.",
        input_schema=build_flat_schema(CallInput),
        annotations=to_mcp_annotations(_ANY_EFFECT),
    ),
)
