"""Recipes and saved prompts of the caller, as prompts of the MCP server. A skill of the same name comes first."""

import json
from collections.abc import Collection, Mapping

import mcp_types as types

from agent.core.errors import NotFoundError
from agent.core.trace import shorten
from gateway.features.recipes.engine import Recipe, RecipeSet
from gateway.features.studio.engine.prompt_library import PromptLibrary
from mcp_tools.server.current_principal import get_current_owner, get_current_principal

MAX_DESCRIPTION = 1024


def make_prompt(name: str, description: str, *arguments: types.PromptArgument) -> types.Prompt:
    """Returns a prompt as it is listed."""
    return types.Prompt(name=name, description=shorten(description, MAX_DESCRIPTION), arguments=[*arguments])


def make_task_argument(hint: str | None = None) -> types.PromptArgument:
    """Returns the argument for what is to be done by a prompt."""
    return types.PromptArgument(name="task", description=hint or "what to do", required=False)


def make_prompt_result(description: str, text: str) -> types.GetPromptResult:
    """Returns a prompt of one message of the user."""
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=shorten(description, MAX_DESCRIPTION), messages=[message])


def list_recipe_prompts(recipes: RecipeSet) -> list[types.Prompt]:
    """Returns the recipes of a caller as prompts with their parameters as arguments."""
    return [
        make_prompt(
            recipe.name,
            recipe.description,
            *(
                types.PromptArgument(name=one.name, description=one.description or one.type, required=one.required)
                for one in recipe.parameters
            ),
        )
        for recipe in recipes
    ]


def get_recipe_prompt(recipe: Recipe, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Returns a message that has the client's model call the recipe through `agent_run`."""
    known = [one.name for one in recipe.parameters if one.name in arguments]
    values = " ".join(f"{name}={_quote(arguments[name])}" for name in known)
    call = f"/{recipe.name} {values}".strip()
    text = f"Call the tool agent_run with exactly this prompt, and give me its answer:\n\n{call}"
    return make_prompt_result(recipe.description, text)


async def list_saved_prompts(library: PromptLibrary, exclude: Collection[str]) -> list[types.Prompt]:
    """Returns the newest version of each prompt, but those with the names in `exclude`; none for a key whose tools do
    not include `prompts_list`. Raises `StoreError`.
    """
    if not get_current_principal().may_call("prompts_list"):
        return []
    stored = await library.list_prompts(get_current_owner())
    return [make_prompt(one.name, one.description, make_task_argument()) for one in stored if one.name not in exclude]


async def get_saved_prompt(library: PromptLibrary, name: str, task: str) -> types.GetPromptResult | None:
    """Returns the newest version with the task after it; None if the caller has no such prompt, or a key whose tools do
    not include `prompt_show`.
    """
    if not get_current_principal().may_call("prompt_show"):
        return None
    try:
        found = await library.get_prompt(get_current_owner(), name)
    except NotFoundError:
        return None
    return make_prompt_result(found.description, f"{found.text}\n\nTask: {task}" if task else found.text)


def _quote(value: str) -> str:
    """Returns a value as one word of a call."""
    return value if value.isalnum() else json.dumps(value, ensure_ascii=False)
