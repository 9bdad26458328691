"""Saved prompts of the caller as prompts of the MCP server. A skill of the same name comes first.

A prompt becomes a message of the user there, so one that was saved after external text was read is attached to it.
"""

from collections.abc import Collection, Mapping

import mcp_types as types

from agent.core.errors import NotFoundError
from agent.policy.guardrails import attach_untrusted
from agent.tools.stored_things import OUTSIDE_TEXT
from gateway.feature_host import FeatureHost
from gateway.features.studio.engine.prompt import Prompt
from gateway.features.studio.engine.prompt_library import PromptLibrary
from gateway.features.studio.parts import get_studio
from mcp_tools.server.current_principal import get_current_owner, get_current_principal
from mcp_tools.server.stored_prompts import make_prompt, make_prompt_result, make_task_argument


def list_mcp_prompts(host: FeatureHost) -> "tuple[SavedPrompts, ...]":
    """The prompts that owners saved."""
    return (SavedPrompts(get_studio(host).prompts),)


class SavedPrompts:
    """Implements `StoredPrompts`."""

    comes_first = False

    def __init__(self, library: PromptLibrary) -> None:
        self._library = library

    async def list_prompts(self, exclude: Collection[str]) -> list[types.Prompt]:
        """The newest version of each prompt; none for a key whose tools do not include `prompts_list`."""
        if not get_current_principal().may_call("prompts_list"):
            return []
        stored = await self._library.list_prompts(get_current_owner())
        return [
            make_prompt(one.name, _describe(one), make_task_argument()) for one in stored if one.name not in exclude
        ]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult | None:
        """The newest version with the task after it; None for a key whose tools lack `prompt_show`."""
        if not get_current_principal().may_call("prompt_show"):
            return None
        try:
            prompt = await self._library.get_prompt(get_current_owner(), name)
        except NotFoundError:
            return None
        task = arguments.get("task", "")
        text = attach_untrusted(prompt.text, f"the saved prompt {name}") if prompt.from_outside else prompt.text
        return make_prompt_result(_describe(prompt), f"{text}\n\nTask: {task}" if task else text)


def _describe(prompt: Prompt) -> str:
    return OUTSIDE_TEXT if prompt.from_outside else prompt.description
