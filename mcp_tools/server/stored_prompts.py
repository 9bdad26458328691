"""Prompts of the MCP server beside the skills: features offer what owners have stored."""

from collections.abc import Collection, Mapping
from typing import Protocol

import mcp_types as types

from agent.runs.trace_details import shorten

MAX_DESCRIPTION = 1024


def make_prompt(name: str, description: str, *arguments: types.PromptArgument) -> types.Prompt:
    """A prompt as it is listed."""
    return types.Prompt(name=name, description=shorten(description, MAX_DESCRIPTION), arguments=[*arguments])


def make_task_argument(hint: str | None = None) -> types.PromptArgument:
    """The argument that says what to do with a prompt."""
    return types.PromptArgument(name="task", description=hint or "what to do", required=False)


def make_prompt_result(description: str, text: str) -> types.GetPromptResult:
    """A prompt of one message of the user."""
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=shorten(description, MAX_DESCRIPTION), messages=[message])


class StoredPrompts(Protocol):
    """The prompts that one feature offers. Each method serves the caller of the current request."""

    comes_first: bool
    """Whether its prompts stand before the skills of the same name; they are then skills too, and a view that chooses
    its skills shows none of them."""

    async def list_prompts(self, exclude: Collection[str]) -> list[types.Prompt]:
        """The prompts but those with the names in `exclude`. Raises `StoreError`."""
        ...

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult | None:
        """The prompt, or None if the caller has none of this name. Raises `StoreError`."""
        ...
