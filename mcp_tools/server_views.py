"""The tools a view lists, and the two by which a client finds and calls those it does not: hundreds of foreign tools
need not be hundreds of listings in everybody's context."""

from collections.abc import Sequence
from typing import Any

import mcp_types as types
from pydantic import BaseModel, Field, JsonValue, ValidationError

from agent.core.models import JsonObject
from agent.core.service import AgentService
from agent.execution.run import Run
from agent.planning.catalogue import Catalogue
from agent.tools import READ_ONLY, ToolAnnotations, ToolRegistry, ToolSpec, flat_schema
from mcp_tools.agent_tools import AGENT_TOOLS
from mcp_tools.server_approval import Person
from mcp_tools.server_content import shown
from mcp_tools.server_curated import CALL, FIND, View
from mcp_tools.server_extras import CallResult
from mcp_tools.server_pages import PAGE
from mcp_tools.server_tools import (
    agent_tool,
    annotations_of,
    call_registered,
    failed,
    fault_of,
    registered_tool,
)

_ANY_EFFECT = ToolAnnotations()


class FindInput(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, max_length=500, description="what the tool should do, in words; or its name")
    limit: int = Field(default=8, ge=1, le=50, description="how many tools at most")


class FoundTool(BaseModel):
    """A tool that was found, with all that is needed to call it."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]
    effect: str


class Found(BaseModel):
    """Tools, the likeliest first."""

    tools: list[FoundTool]
    of: int = Field(description="how many tools there are in all")


class CallInput(BaseModel):
    """Which tool, with what."""

    name: str = Field(min_length=1, max_length=64, description="a name that tools_find returned")
    args: dict[str, JsonValue] = Field(default={}, description="its arguments, as its input_schema says")


def listed(specs: Sequence[ToolSpec], view: View) -> list[types.Tool]:
    """The tools of a view, what matters first: the agent's, ours in order of name, finding and calling what is not
    listed, other servers' in order of name. The same bytes every time."""
    agents = [agent_tool(tool) for tool in AGENT_TOOLS.values() if view.permits(tool.name)]
    own = [registered_tool(spec) for spec in specs if not is_foreign(spec)]
    foreign = [registered_tool(spec) for spec in specs if is_foreign(spec)]
    hidden = bool(foreign) and view.tools is None
    # Whoever takes the first page only has to find the others.
    cut = len(agents) + len(own) + len(foreign) > PAGE
    finders = [tool for tool in _FINDERS if view.named(tool.name) or hidden or (cut and view.permits(tool.name))]
    return [*agents, *own, *finders, *([] if hidden else foreign)]


def is_foreign(spec: ToolSpec) -> bool:
    """Whether a tool is another server's."""
    return spec.origin != "builtin"


def schema_of(name: str) -> JsonObject | None:
    """The arguments of `tools_find` and `tools_call`; None for any other name."""
    return {FIND: flat_schema(FindInput), CALL: flat_schema(CallInput)}.get(name)


async def find_or_call(
    service: AgentService[Run],
    registry: ToolRegistry,
    specs: Sequence[ToolSpec],
    name: str,
    arguments: dict[str, Any],
    person: Person,
    room: str | None = None,
) -> CallResult:
    """Carry out `tools_find` or `tools_call`. `specs` are those of the registry that may be called, in `room`."""
    foreign = [spec for spec in specs if is_foreign(spec)]
    try:
        if name == FIND:
            found = _find(foreign, FindInput.model_validate(arguments))
            return types.CallToolResult(content=[shown(_lines(found))], structured_content=found.model_dump())
        wanted = CallInput.model_validate(arguments)
    except ValidationError as error:
        return failed(f"{name}: {fault_of(error)}")
    if wanted.name not in {spec.name for spec in foreign}:
        return failed(f"there is no such tool to call: {wanted.name[:64]!r}; look for it with {FIND}")
    return await call_registered(service, registry.get(wanted.name), wanted.args, person, room)


def _find(foreign: list[ToolSpec], wanted: FindInput) -> Found:
    scores = Catalogue(tools=tuple(foreign)).scores(wanted.query)
    for spec in foreign:  # a name, or a part of one, is the best description
        scores[spec.name] += 100.0 if wanted.query.lower() in spec.name else 0.0
    likely = [spec for spec in sorted(foreign, key=lambda spec: (-scores[spec.name], spec.name)) if scores[spec.name]]
    return Found(
        tools=[
            FoundTool(name=spec.name, description=spec.description, input_schema=spec.input_schema, effect=spec.effect)
            for spec in likely[: wanted.limit]
        ],
        of=len(foreign),
    )


def _lines(found: Found) -> str:
    if not found.tools:
        return f"None of the {found.of} tools has to do with that; try other words."
    return "\n".join(f"- {tool.name}: {' '.join(tool.description.split())[:200]}" for tool in found.tools)


_FINDERS = (
    types.Tool(
        name=FIND,
        description="Find tools of the MCP servers behind Stepgate by what they do. Call them with tools_call.",
        input_schema=flat_schema(FindInput),
        output_schema=flat_schema(Found),
        annotations=annotations_of(READ_ONLY),
    ),
    types.Tool(
        name=CALL,
        description="Call a tool that tools_find found, by its name, with arguments as its input_schema says.",
        input_schema=flat_schema(CallInput),
        annotations=annotations_of(_ANY_EFFECT),
    ),
)
