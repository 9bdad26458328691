"""Hooks of the feature `recipes`."""

from agent.run_context.extensions import Extension
from agent.tools import Tool
from gateway.feature_host import FeatureHost
from gateway.features.recipes.engine import RecipeStore
from gateway.features.recipes.engine.recipe_hooks import RecipeHooks
from gateway.features.recipes.engine.recipe_maker import RecipeMaker
from gateway.features.recipes.parts import get_recipes
from gateway.features.recipes.tools import make_recipe_tools


def build_recipes(host: FeatureHost) -> RecipeMaker:
    """The maker of recipes with their store."""

    def list_taken_names(owner: str) -> list[str]:
        skills = (skill.name for skill in host.rooms.skills)
        return [*skills, *host.registry.list_visible_names(owner)]

    store = RecipeStore(host.statements, host.context.store.clock)
    return RecipeMaker(store, lambda: host.get_gateway().service, list_taken_names)


def list_tools(host: FeatureHost) -> list[Tool]:
    """The tools that make and keep recipes."""
    return [*make_recipe_tools(get_recipes(host))]


def list_extensions(host: FeatureHost) -> tuple[Extension, ...]:
    """The recipes in runs."""
    return (Extension("recipes", hooks=(RecipeHooks(get_recipes(host).store),)),)
