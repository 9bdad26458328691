"""`RecipeHooks`: recipes in runs: the command `/name`, the planner's choice of a recipe, and its steps in plans."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from agent.core.errors import ConflictError, PlanInvalidError
from agent.planning.planned import Planned
from agent.planning.routing import RunCommand
from agent.run_context.run import Run
from agent.run_context.run_hooks import PlanInquiry, PlanSource, RunHooks
from agent.storage.sql import Row
from agent.tools import ToolSpec
from agent.tools.catalogue import Catalogue
from gateway.features.recipes.engine import RecipeStore
from gateway.features.recipes.engine.recipe_plans import list_recipe_specs
from gateway.features.recipes.engine.recipe_run import (
    RECIPES,
    describe_request,
    expand_planned,
    get_recipes,
    plan_recipe,
)


class RecipeHooks(RunHooks):
    """The recipes that an owner has in use."""

    name = RECIPES
    heading = "Recipes"

    def __init__(self, store: RecipeStore) -> None:
        self._store = store
        self.owner_rows = store.applied_rows

    @property
    def plan_sources(self) -> Sequence[PlanSource]:
        """The call of a recipe by its name."""
        return (PlanSource("recipe", plan_called_recipe, before="skill", routes=("recipe",)),)

    def load(self, run: Run, rows: Sequence[Row]) -> object:
        """The owner's recipes. See `RunHooks.load`."""
        return self._store.parse_applied(run.state.owner, rows)

    def list_commands(self, run: Run) -> Sequence[RunCommand]:
        """See `RunHooks.list_commands`."""
        return [RunCommand(one.name, one.usage, one.description, "recipe", "recipe") for one in get_recipes(run)]

    def describe_command(self, run: Run, name: str, rest: str) -> str:
        """See `RunHooks.describe_command`."""
        return describe_request(run, name, rest)

    def get_catalogue_key(self, run: Run) -> Hashable:
        """See `RunHooks.get_catalogue_key`."""
        return get_recipes(run).digest

    def list_catalogue_tools(self, run: Run, known: Catalogue) -> Sequence[ToolSpec]:
        """See `RunHooks.list_catalogue_tools`."""
        return list_recipe_specs(get_recipes(run).recipes, known)

    def expand_plan(self, run: Run, planned: Planned) -> Planned:
        """See `RunHooks.expand_plan`."""
        return expand_planned(run, planned)


async def plan_called_recipe(run: Run, inquiry: PlanInquiry) -> Planned | None:
    """The plan of a recipe without a planner call. If the run may not use its steps as they are, the planner
    plans; without a planner, the error is raised."""
    if inquiry.command is None:
        return None
    words = run.state.prompt.strip().split(maxsplit=1)
    try:
        return await plan_recipe(run, inquiry.command, words[1] if len(words) > 1 else "")
    except PlanInvalidError as error:
        reason = f"the recipe {inquiry.command} cannot be carried out as it was saved: {'; '.join(error.problems)}"
        if not run.plans_with_model:
            raise ConflictError(f"{reason}. Make it again from a run that succeeds") from error
        planned = await inquiry.ask_planner()
        return replace(planned, adjusted=(reason, *planned.adjusted))
