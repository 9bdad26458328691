"""`recipe_save`, `recipe_apply`, `recipes_list`, `recipe_remove`: recipes for plans and MCP clients."""

from pydantic import Field

from agent.core.errors import AgentError
from agent.core.models import DeferredModel, JsonObject
from agent.tools import READ_ONLY, PlanHints, Tool, ToolContext, declare_roles
from agent.tools.stored_things import (
    DESTROYS,
    SAVES,
    Arguments,
    ReviewedVersions,
    StoredThingList,
    StoredThingTool,
)
from agent.tools.tool import In, Out
from gateway.features.recipes.engine import compute_version
from gateway.features.recipes.engine.card import format_recipe
from gateway.features.recipes.engine.recipe_maker import TRIAL_SECONDS, RecipeMaker
from gateway.features.recipes.engine.renaming import rename_parameters
from gateway.features.recipes.forms import (
    SAVE_ROLES,
    RecipeOutput,
    RecipeSaveInput,
    to_line,
    to_options,
    to_output,
    to_shown_output,
)
from gateway.features.recipes.saved_runs import SAVE_TOOL


class _RecipeTool(StoredThingTool[In, Out]):
    """The base class of the tools over the recipes of the caller."""

    def __init__(self, maker: RecipeMaker) -> None:
        super().__init__()
        self._maker = maker


class RecipeSaveTool(_RecipeTool[RecipeSaveInput, RecipeOutput]):
    name = SAVE_TOOL
    description = (
        "Save what an earlier run did as a recipe (a skill with parameters) that can be called by name. "
        "It is tried and shown to the user, who confirms it."
    )
    annotations = SAVES
    argument_roles = SAVE_ROLES
    hints = PlanHints(source="runs", is_called_by_name=True)
    is_opt_in = False
    timeout_s = 3 * TRIAL_SECONDS
    keywords = ("recipe", "skill", "save", "repeat")

    async def run(self, args: RecipeSaveInput, context: ToolContext) -> RecipeOutput:
        """Makes it. The model of the run finds the parameters."""
        caller = context.to_principal()
        run_id = args.run_id or await self._maker.find_run_to_save(caller, context.run_id)
        made = await self._maker.make_recipe(
            run_id, caller, to_options(args), model=context.model, from_outside=context.tainted
        )
        return to_shown_output(made)

    def format_text(self, output: RecipeOutput) -> str:
        """The recipe and how it is confirmed."""
        notes = "".join(f"\n- {note}" for note in output.notes)
        return (
            f"{output.text}{notes}\n\nThe recipe is staged: it can be called once the user has confirmed it "
            f"(recipe_apply, `stepgate recipes apply {output.name}`, or the page)."
        )


class RecipeNameInput(Arguments):
    """Arguments of `recipe_remove`."""

    name: str = Field(min_length=1, max_length=200, description="the recipe's name")


class RecipeApplyInput(RecipeNameInput):
    """Arguments of `recipe_apply`."""

    rename: dict[str, str] = Field(
        default_factory=dict, description="new names of parameters that the user wishes, by their present names"
    )


class RecipeApplyTool(_RecipeTool[RecipeApplyInput, RecipeOutput]):
    """Takes a staged recipe into use, once a person has allowed it."""

    name = "recipe_apply"
    description = "Take a staged recipe into use. The user is always asked first."
    annotations = SAVES
    argument_roles = declare_roles(name="id", rename="other")
    hints = PlanHints(source="runs", is_called_by_name=True)
    is_opt_in = False
    requires_approval = True
    keywords = ("recipe", "skill", "confirm", "apply")

    def __init__(self, maker: RecipeMaker) -> None:
        super().__init__(maker)
        self._reviewed = ReviewedVersions[str]()

    async def check(self, args: RecipeApplyInput, context: ToolContext) -> None:
        """Raises `NotFoundError`, `ConflictError` if nothing is staged, and `BadRequestError` for bad new names."""
        rename_parameters(await self._maker.store.get_staged(context.owner, args.name), args.rename)

    async def explain(self, args: JsonObject, context: ToolContext) -> str:
        """The whole recipe, as it would be called."""
        wanted = RecipeApplyInput.model_validate(args)
        self._reviewed.note(context, None)
        try:
            staged = await self._maker.store.get_staged(context.owner, wanted.name)
            self._reviewed.note(context, compute_version(staged))
            return format_recipe(rename_parameters(staged, wanted.rename) if wanted.rename else staged)
        except AgentError as error:  # it was changed since the question
            return error.message

    async def run(self, args: RecipeApplyInput, context: ToolContext) -> RecipeOutput:
        version = self._reviewed.take(context)
        applied = await self._maker.store.apply(context.owner, args.name, version=version, rename=args.rename)
        return to_output(applied, "in use")

    def format_text(self, output: RecipeOutput) -> str:
        return f"The recipe {output.name} is in use. Call it with `{output.usage}`."


class RecipesListInput(Arguments):
    """Arguments of `recipes_list`: none."""


class RecipesListOutput(DeferredModel):
    """The recipes in order of name."""

    recipes: list[RecipeOutput]


class RecipesListTool(StoredThingList, _RecipeTool[RecipesListInput, RecipesListOutput]):
    name = "recipes_list"
    description = "List the user's recipes with their parameters, staged ones included."
    annotations = READ_ONLY

    async def run(self, args: RecipesListInput, context: ToolContext) -> RecipesListOutput:
        stored = await self._maker.store.list_all(context.owner)
        return RecipesListOutput(recipes=[to_line(one) for one in stored])

    def format_text(self, output: RecipesListOutput) -> str:
        lines = [f"- `{one.usage}` ({one.state}): {one.description}" for one in output.recipes]
        return "\n".join(lines) or "There are no recipes yet."


class RecipeRemoveOutput(DeferredModel):
    """The name of the removed recipe."""

    removed: str


class RecipeRemoveTool(_RecipeTool[RecipeNameInput, RecipeRemoveOutput]):
    name = "recipe_remove"
    description = "Remove a recipe of the user, with what is staged of it."
    annotations = DESTROYS
    argument_roles = declare_roles(name="id")

    async def check(self, args: RecipeNameInput, context: ToolContext) -> None:
        """Raises `NotFoundError` if there is no such recipe."""
        await self._maker.store.get(context.owner, args.name)

    async def run(self, args: RecipeNameInput, context: ToolContext) -> RecipeRemoveOutput:
        await self._maker.store.remove(context.owner, args.name)
        return RecipeRemoveOutput(removed=args.name)

    def format_text(self, output: RecipeRemoveOutput) -> str:
        return f"Removed the recipe {output.removed}."


def make_recipe_tools(maker: RecipeMaker) -> tuple[Tool, ...]:
    """The tools over recipes."""
    return (RecipeSaveTool(maker), RecipeApplyTool(maker), RecipesListTool(maker), RecipeRemoveTool(maker))
