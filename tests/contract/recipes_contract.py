"""The contract of the recipe store: staged until applied, one owner's alone, one version wins."""

import asyncio

import pytest

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import PlanStep
from gateway.features.recipes.engine import Recipe, RecipeStore, compute_version
from gateway.features.recipes.engine import store as recipe_store

Stores = tuple[RecipeStore, RecipeStore]
"""Two stores on the same database, as two processes have them."""


def make_recipe(name: str = "order", description: str = "Orders a part. \ud800\x00") -> Recipe:
    step = PlanStep(id="s1", executor="agent", action="tool", tool="look_up", args={"x": {"$param": "part"}})
    made = Recipe(name=name, description="-", request="order a part", steps=(step,))
    return made.model_copy(update={"description": description})


class RecipesContract:
    """Subclasses provide `stores`."""

    async def test_a_recipe_is_staged_until_it_is_applied(self, stores: Stores) -> None:
        one, other = stores
        staged = await one.stage("anna", make_recipe())
        assert (staged.applied, staged.shown.steps) == (None, make_recipe().steps)
        assert (await other.list_applied("anna")).names == ()
        assert [each.name for each in await other.list_all("anna")] == ["order"]
        applied = await other.apply("anna", "order", version=compute_version(staged.shown))
        assert applied.request == "order a part"
        assert (await other.list_applied("anna")).names == ("order",)
        assert (await other.get("anna", "order")).staged is None
        with pytest.raises(ConflictError, match="nothing to confirm"):
            await one.apply("anna", "order")

    async def test_an_applied_recipe_stays_while_another_version_is_staged(self, stores: Stores) -> None:
        one, _ = stores
        await one.stage("anna", make_recipe())
        await one.apply("anna", "order")
        again = await one.stage("anna", make_recipe(description="Orders two."))
        assert again.applied is not None
        with pytest.raises(ConflictError, match="saved again"):
            await one.apply("anna", "order", version=compute_version(again.applied))
        await one.discard("anna", "order")
        kept = await one.get("anna", "order")
        assert (kept.staged, kept.applied is not None) == (None, True)
        with pytest.raises(ConflictError, match="nothing to discard"):
            await one.discard("anna", "order")

    async def test_discarding_what_was_never_applied_leaves_nothing(self, stores: Stores) -> None:
        one, other = stores
        await one.stage("anna", make_recipe())
        await one.discard("anna", "order")
        assert await other.list_all("anna") == []
        for act in (one.discard, one.apply, one.get, one.remove):
            with pytest.raises(NotFoundError):
                await act("anna", "order")

    async def test_recipes_of_others_are_absent(self, stores: Stores) -> None:
        one, other = stores
        await one.stage("anna", make_recipe())
        await one.apply("anna", "order")
        assert (await other.list_applied("bob")).names == ()
        for act in (other.apply, other.discard, other.get, other.remove):
            with pytest.raises(NotFoundError):
                await act("bob", "order")
        await other.stage("bob", make_recipe())
        await other.remove("bob", "order")
        assert (await one.get("anna", "order")).applied is not None

    async def test_of_many_who_confirm_at_once_one_does(self, stores: Stores) -> None:
        await stores[0].stage("anna", make_recipe())
        results = await asyncio.gather(*(store.apply("anna", "order") for store in stores * 4), return_exceptions=True)
        assert sum(isinstance(result, Recipe) for result in results) == 1
        assert all(isinstance(result, Recipe | ConflictError) for result in results)

    async def test_an_owner_has_a_limited_number(self, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recipe_store, "MAX_RECIPES", 2)
        one, _ = stores
        await one.stage("anna", make_recipe("a"))
        await one.stage("anna", make_recipe("b"))
        with pytest.raises(ConflictError, match="remove one first"):
            await one.stage("anna", make_recipe("c"))
        await one.stage("anna", make_recipe("b", "Again."))
        await one.stage("bob", make_recipe("c"))
        assert [each.name for each in await one.list_all("anna")] == ["a", "b"]

    async def test_another_process_sees_a_change_soon(self, stores: Stores) -> None:
        one, other = stores
        before = await other.list_applied("anna")
        await one.stage("anna", make_recipe())
        await one.apply("anna", "order")
        async with asyncio.timeout(20):
            while not (after := await other.list_applied("anna")).names:  # noqa: ASYNC110 - it reads again by the clock
                await asyncio.sleep(0.05)
        assert (before.names, after.names) == ((), ("order",))
        assert before.digest != after.digest
