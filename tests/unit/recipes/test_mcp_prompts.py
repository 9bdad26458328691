"""Recipes as prompts of MCP clients: only for keys that may list recipes."""

from collections.abc import Iterator

import pytest

from agent.core.principal import Principal
from gateway.features.recipes.engine import Recipe, RecipeSet, RecipeStore
from gateway.features.recipes.mcp_prompts import RecipePrompts
from mcp_tools.server import current_principal


class OneRecipe(RecipeStore):
    """A store whose every owner has one recipe in use."""

    def __init__(self) -> None:
        pass

    async def list_applied(self, owner: str) -> RecipeSet:
        return RecipeSet((Recipe(name="report", description="Makes a report.", request="Make a report", steps=()),))


@pytest.fixture
def caller(request: pytest.FixtureRequest) -> Iterator[Principal]:
    """The holder of a key with these tools."""
    principal = Principal("anna", "key", request.param)
    token = current_principal._current_principal.set(principal)
    yield principal
    current_principal._current_principal.reset(token)


@pytest.mark.parametrize(
    ("caller", "names"),
    [(None, ["report"]), (("recipes_list", "agent_run"), ["report"]), (("calculator",), [])],
    indirect=["caller"],
)
async def test_a_key_sees_recipes_as_prompts_only_if_it_may_list_them(caller: Principal, names: list[str]) -> None:
    prompts = RecipePrompts(OneRecipe())
    assert [one.name for one in await prompts.list_prompts(())] == names
    assert (await prompts.get_prompt("report", {}) is not None) == bool(names)
