"""The recipes' part of the composition root: their store, their maker and their tools."""

from collections.abc import Callable

from agent.run_context.run import Run
from agent.runs.service import AgentService
from agent.skills import SkillLibrary
from agent.tools import ToolRegistry
from gateway.bootstrap_context import BuildContext
from gateway.features.recipes.engine import RecipeStore
from gateway.features.recipes.engine.recipe_maker import RecipeMaker
from gateway.features.recipes.tools.recipes import make_recipe_tools


def add_recipes(
    context: BuildContext, registry: ToolRegistry, skills: SkillLibrary, get_service: Callable[[], AgentService[Run]]
) -> RecipeMaker:
    """Returns the maker of recipes and registers its tools. `get_service` is called when a recipe is made."""

    def list_taken_names() -> list[str]:
        return [*(skill.name for skill in skills), *(spec.name for spec in registry.list_specs())]

    maker = RecipeMaker(RecipeStore(context.statements, context.store.clock), get_service, list_taken_names)
    registry.register(*make_recipe_tools(maker))
    return maker
