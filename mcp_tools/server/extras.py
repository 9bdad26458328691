"""An extension point for tools, prompts and resources that belong neither to the agent nor to the registry.

The fixtures of the conformance suite use it. The product adds nothing here.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import mcp_types as types
from mcp.server.subscriptions import ServerEvent

from agent.core.models import JsonObject
from mcp_tools.server.sessions import Context
from mcp_tools.server.tasks import TaskSource

PublishEvent = Callable[[ServerEvent], Awaitable[None]]
"""Notifies every listening client of a change."""


CallResult = types.CallToolResult | types.InputRequiredResult | JsonObject
"""The outcome of a call: its result, questions for the client, or (in wire form) the task it became."""
CallTool = Callable[[Context, types.CallToolRequestParams], Awaitable[CallResult]]
"""Executes one call of an extra tool. Raises `MCPError` for protocol errors."""
GetPrompt = Callable[
    [Context, types.GetPromptRequestParams], Awaitable[types.GetPromptResult | types.InputRequiredResult]
]
"""Fills in an extra prompt."""
ReadExtraResource = Callable[[str], types.ReadResourceResult | None]
"""Returns the resource at a URI, or None if it is not one of these."""


def _read_nothing(_: str) -> types.ReadResourceResult | None:
    return None


@dataclass(frozen=True, slots=True)
class Extras:
    """What is added to the server. Tools and prompts are listed in this order, after our own."""

    tools: tuple[tuple[types.Tool, CallTool], ...] = ()
    prompts: tuple[tuple[types.Prompt, GetPrompt], ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    read: ReadExtraResource = field(default=_read_nothing)
    tasks: tuple[TaskSource, ...] = ()

    def find_tool(self, name: str) -> CallTool | None:
        """Returns the implementation of an extra tool, or None."""
        return next((call for tool, call in self.tools if tool.name == name), None)

    def find_prompt(self, name: str) -> GetPrompt | None:
        """Returns the implementation of an extra prompt, or None."""
        return next((get for prompt, get in self.prompts if prompt.name == name), None)


ExtrasFactory = Callable[[PublishEvent], Extras]


def make_no_extras(_: PublishEvent) -> Extras:
    """Returns no extras: the default of the product."""
    return Extras()
