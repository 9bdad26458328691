"""The prompts that a caller has saved, as prompts of the MCP server. A skill of the same name comes first."""

from collections.abc import Collection

import mcp_types as types

from agent.core.errors import NotFoundError
from agent.core.trace import shorten
from agent.studio.prompt_library import PromptLibrary
from mcp_tools.server.current_principal import get_current_owner


class SavedPrompts:
    """The prompt library as the current caller sees it; without a library there are none."""

    def __init__(self, library: PromptLibrary | None) -> None:
        self._library = library

    async def list_prompts(self, exclude: Collection[str]) -> list[types.Prompt]:
        """Returns the newest version of each prompt, but those with the names in `exclude`. Raises `StoreError`."""
        stored = await self._library.list_prompts(get_current_owner()) if self._library is not None else []
        task = types.PromptArgument(name="task", description="what to do", required=False)
        return [
            types.Prompt(name=one.name, description=shorten(one.description, 1024), arguments=[task])
            for one in stored
            if one.name not in exclude
        ]

    async def get_prompt(self, name: str, task: str) -> types.GetPromptResult | None:
        """Returns the newest version with the task after it; None if the caller has no such prompt."""
        if self._library is None:
            return None
        try:
            found = await self._library.get_prompt(get_current_owner(), name)
        except NotFoundError:
            return None
        text = f"{found.text}\n\nTask: {task}" if task else found.text
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=shorten(found.description, 1024), messages=[message])
