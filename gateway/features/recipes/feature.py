"""The feature `recipes`: runs that went well as templates."""

from gateway.feature import Command, Door, Feature, Page, PagePart, Toolset

FEATURE = Feature(
    name="recipes",
    build="gateway.features.recipes.bootstrap_recipes:build_recipes",
    tools="gateway.features.recipes.bootstrap_recipes:list_tools",
    extensions="gateway.features.recipes.bootstrap_recipes:list_extensions",
    mcp_prompts="gateway.features.recipes.mcp_prompts:list_mcp_prompts",
    toolsets=(
        Toolset(
            "recipes",
            ("recipe_apply", "recipe_remove", "recipe_save", "recipes_list"),
            "saved runs with parameters",
            place=130,
        ),
    ),
    routes=(Door("gateway.features.recipes.doors.recipes:router", place=250),),
    page=Page(
        folder="gateway.features.recipes:page",
        studio=(PagePart("recipes", "Recipes", "recipes.js", place=40),),
        run_offers=(PagePart("recipe", "Save as recipe", "save_recipe.js"),),
    ),
    commands={
        "runs save": Command(
            "gateway.features.recipes.commands.save_run:save",
            "Save a run that succeeded as a recipe: a skill with parameters that runs without another plan.",
        ),
        "recipes": Command(
            "gateway.features.recipes.commands.recipes:app",
            "Recipes: list, show, apply, discard, remove, export.",
            place=180,
        ),
    },
    owned_tables=("recipes",),
    retention="gateway.features.recipes.engine.retention:RETENTION",
)
