"""Recipes: the plan of a run that went well as a template with parameters, kept for its owner as a skill."""

from gateway.features.recipes.engine.model import (
    NO_RECIPES,
    Recipe,
    RecipeParameter,
    RecipeSet,
    RecipeTrial,
    SaveOptions,
    StoredRecipe,
    check_recipe_name,
    compute_version,
)
from gateway.features.recipes.engine.store import RecipeStore

__all__ = [
    "NO_RECIPES",
    "Recipe",
    "RecipeParameter",
    "RecipeSet",
    "RecipeStore",
    "RecipeTrial",
    "SaveOptions",
    "StoredRecipe",
    "check_recipe_name",
    "compute_version",
]
