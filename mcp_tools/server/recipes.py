"""Recipes for MCP clients: as prompts, whose text calls the recipe through `agent_run`."""

import json
from collections.abc import Mapping

import mcp_types as types

from agent.core.trace import shorten
from agent.recipes import Recipe, RecipeSet


def list_recipe_prompts(recipes: RecipeSet) -> list[types.Prompt]:
    """Returns the recipes of a caller as prompts with their parameters as arguments."""
    return [
        types.Prompt(
            name=recipe.name,
            description=shorten(recipe.description, 1024),
            arguments=[
                types.PromptArgument(name=one.name, description=one.description or one.type, required=one.required)
                for one in recipe.parameters
            ],
        )
        for recipe in recipes
    ]


def get_recipe_prompt(recipe: Recipe, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Returns a message that has the client's model call the recipe."""
    known = [one.name for one in recipe.parameters if one.name in arguments]
    values = " ".join(f"{name}={_quote(arguments[name])}" for name in known)
    call = f"/{recipe.name} {values}".strip()
    text = f"Call the tool agent_run with exactly this prompt, and give me its answer:\n\n{call}"
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=shorten(recipe.description, 1024), messages=[message])


def _quote(value: str) -> str:
    """Returns a value as one word of a call."""
    return value if value.isalnum() else json.dumps(value, ensure_ascii=False)
