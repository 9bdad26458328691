"""The seam for tools, prompts and resources that are neither the agent's nor the registry's.

The conformance suite's fixtures come in through it; the product itself adds nothing here."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import mcp_types as types
from mcp.server.subscriptions import ServerEvent

from agent.core.models import JsonObject
from mcp_tools.server_sessions import Context
from mcp_tools.server_tasks import TaskSource

Publish = Callable[[ServerEvent], Awaitable[None]]
"""Tells every listening client that something changed."""


CallResult = types.CallToolResult | types.InputRequiredResult | JsonObject
"""What a call gives: its result, questions for the client, or (as it goes over the wire) a task it became."""
CallTool = Callable[[Context, types.CallToolRequestParams], Awaitable[CallResult]]
"""Carries out one call of an extra tool; raises `MCPError` for errors of the protocol."""
GetPrompt = Callable[
    [Context, types.GetPromptRequestParams], Awaitable[types.GetPromptResult | types.InputRequiredResult]
]
"""Fills in an extra prompt."""
ReadExtra = Callable[[str], types.ReadResourceResult | None]
"""The resource at a URI, or None when it is not one of these."""


def _reads_nothing(_: str) -> types.ReadResourceResult | None:
    return None


@dataclass(frozen=True, slots=True)
class Extras:
    """What is added to the server. Tools and prompts are listed in the order given, after our own."""

    tools: tuple[tuple[types.Tool, CallTool], ...] = ()
    prompts: tuple[tuple[types.Prompt, GetPrompt], ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    read: ReadExtra = field(default=_reads_nothing)
    tasks: tuple[TaskSource, ...] = ()

    def tool(self, name: str) -> CallTool | None:
        """The work of the extra tool of this name."""
        return next((call for tool, call in self.tools if tool.name == name), None)

    def prompt(self, name: str) -> GetPrompt | None:
        """The work of the extra prompt of this name."""
        return next((get for prompt, get in self.prompts if prompt.name == name), None)


ExtrasOf = Callable[[Publish], Extras]


def no_extras(_: Publish) -> Extras:
    """The product's own: nothing."""
    return Extras()
