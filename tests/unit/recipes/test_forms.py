"""A field of a recipe is in each of its forms, and is stored without a column."""

import inspect
from typing import Any

import pytest

from agent.core.models import PlanStep
from gateway.features.recipes.commands.save_run import save
from gateway.features.recipes.engine import Recipe, SaveOptions, StoredRecipe
from gateway.features.recipes.forms import (
    SAVE_ROLES,
    RecipeDetail,
    RecipeItem,
    RecipeOutput,
    RecipeSaveInput,
    SaveBody,
    to_detail,
    to_item,
    to_options,
    to_shown_output,
)
from gateway.features.recipes.saved_runs import SAVE_TOOL, build_save_call

OPTIONS = set(SaveOptions.model_fields)
NOT_SHOWN = {"goal", "language", "room", "tainted", "approval_reason"}
"""Fields of a recipe that only its files show."""


class NotedOptions(SaveOptions):
    """Options with one field more, which a recipe does not have."""

    note: str = ""


def make_recipe(**fields: Any) -> Recipe:
    step = PlanStep(id="s1", executor="agent", action="tool", tool="calculator", args={"expression": "2+2"})
    return Recipe.model_validate({"name": "sum", "description": "Adds.", "request": "2+2", "steps": (step,), **fields})


def test_each_form_has_the_fields() -> None:
    assert set(RecipeDetail.model_fields) >= set(Recipe.model_fields) - NOT_SHOWN
    assert set(RecipeDetail.model_fields) > set(RecipeItem.model_fields) > set(RecipeOutput.model_fields)
    assert set(SaveBody.model_fields) == OPTIONS
    assert set(RecipeSaveInput.model_fields) == OPTIONS | {"run_id"}
    assert set(SAVE_ROLES) == set(RecipeSaveInput.model_fields)
    options = {{"other": "try_values"}.get(name, name) for name in inspect.signature(save).parameters}
    assert options >= OPTIONS


def test_what_is_given_replaces_what_is_found() -> None:
    assert SaveOptions().list_given() == {}
    given = NotedOptions(description="Sums.", try_values={"expression": "1"}, note="x").list_given()
    assert given == {"description": "Sums."}, "only fields of a recipe, and only those that are set"
    assert make_recipe().model_copy(update=given).description == "Sums."


@pytest.mark.parametrize("form", [SaveBody, RecipeSaveInput])
def test_every_form_asks_the_tool_for_the_same(form: type[SaveBody] | type[RecipeSaveInput]) -> None:
    fields: dict[str, Any] = {"name": "sum", "description": "Adds.", "try_values": {"expression": "1"}}
    request: Any = build_save_call("run_1", to_options(form.model_validate(fields)))
    assert request.request.metadata == {"tool_calls": [{"tool": SAVE_TOOL, "args": {"run_id": "run_1", **fields}}]}


def test_a_stored_recipe_shows_its_staged_version() -> None:
    applied, staged = make_recipe(from_run="run_1"), make_recipe(from_run="run_2", notes=("Look at it.",))
    stored = StoredRecipe(name="sum", applied=applied, staged=staged, created=0, updated=60)
    assert (to_shown_output(stored).state, to_shown_output(stored).notes) == ("staged", ["Look at it."])
    assert (to_item(stored).from_run, to_item(stored).is_applied) == ("run_2", True)
    detail = to_detail(stored.model_copy(update={"staged": None}))
    assert (detail.state, detail.from_run, detail.steps) == ("in use", "run_1", list(applied.steps))
    assert set(detail.files) == {"SKILL.md", "plan.json"}
