"""What the feature `recipes` has built, for itself and for features that need it."""

from typing import TYPE_CHECKING

from gateway.feature import Part

if TYPE_CHECKING:
    from gateway.features.recipes.engine.recipe_maker import RecipeMaker

get_recipes: Part["RecipeMaker"] = Part("recipes")
"""The maker of recipes, with their store."""
