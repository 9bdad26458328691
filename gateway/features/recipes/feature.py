"""The feature `recipes`: runs that went well as templates."""

from gateway.feature import Command, Door, Feature

FEATURE = Feature(
    name="recipes",
    needs=("studio",),
    routes=(Door("gateway.features.recipes.doors.recipes:router", place=250),),
    commands={
        "recipes": Command(
            "gateway.features.recipes.commands.recipes:app",
            "Recipes: list, show, apply, discard, remove, export.",
            place=180,
        ),
    },
)
