"""Recipes of the caller as prompts of the MCP server, which alone loads this module."""

import json
from collections.abc import Collection, Mapping

import mcp_types as types

from agent.tools.stored_things import OUTSIDE_TEXT
from gateway.feature_host import FeatureHost
from gateway.features.recipes.engine import NO_RECIPES, Recipe, RecipeSet, RecipeStore
from gateway.features.recipes.parts import get_recipes
from mcp_tools.server.current_principal import get_current_owner, get_current_principal
from mcp_tools.server.stored_prompts import make_prompt, make_prompt_result


def list_mcp_prompts(host: FeatureHost) -> "tuple[RecipePrompts, ...]":
    """The recipes in use."""
    return (RecipePrompts(get_recipes(host).store),)


class RecipePrompts:
    """Implements `StoredPrompts`."""

    comes_first = True

    def __init__(self, store: RecipeStore) -> None:
        self._store = store

    async def list_prompts(self, exclude: Collection[str]) -> list[types.Prompt]:
        """The recipes of a caller as prompts with their parameters as arguments; none for a key whose tools do not
        include `recipes_list`. Of one that may hold text from outside, only names.
        """
        return [
            make_prompt(
                recipe.name,
                _describe(recipe),
                *(
                    types.PromptArgument(
                        name=one.name,
                        description=("" if recipe.tainted else one.description) or one.type,
                        required=one.required,
                    )
                    for one in recipe.parameters
                ),
            )
            for recipe in await self._list_recipes()
        ]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult | None:
        """A message that has the client's model call the recipe through `agent_run`."""
        recipe = (await self._list_recipes()).get(name)
        return build_call_prompt(recipe, arguments) if recipe is not None else None

    async def _list_recipes(self) -> RecipeSet:
        """What `GET /v1/recipes` would show the caller of those in use."""
        if not get_current_principal().may_call("recipes_list"):
            return NO_RECIPES
        return await self._store.list_applied(get_current_owner())


def build_call_prompt(recipe: Recipe, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """A message that has the client's model call the recipe through `agent_run`."""
    given_names = [one.name for one in recipe.parameters if one.name in arguments]
    values = " ".join(f"{name}={_quote(arguments[name])}" for name in given_names)
    call = f"/{recipe.name} {values}".strip()
    text = f"Call the tool agent_run with exactly this prompt, and give me its answer:\n\n{call}"
    return make_prompt_result(_describe(recipe), text)


def _describe(recipe: Recipe) -> str:
    return OUTSIDE_TEXT if recipe.tainted else recipe.description


def _quote(value: str) -> str:
    """A value as one word of a call."""
    return value if value.isalnum() else json.dumps(value, ensure_ascii=False)
