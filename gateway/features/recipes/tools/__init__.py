"""The tools over recipes."""

from gateway.features.recipes.tools.recipes import make_recipe_tools

__all__ = [
    "make_recipe_tools",
]
