"""The forms of a recipe: as it is sent, as a run is saved, and as a model saves one.

A field of a recipe is defined in `Recipe` (`engine/model.py`), and stored without a column of its own. It is added here
to each form that shows it. One that a person sets is a field of `SaveOptions`, whose text fields are options of
`stepgate runs save` by themselves, and of both forms that save a run.
"""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from agent.core.models import DeferredModel, JsonObject, PlanStep
from agent.tools import declare_roles
from agent.tools.stored_things import OUTSIDE_TEXT, Arguments
from gateway.doors.strict_body import StrictBody
from gateway.features.recipes.engine import (
    Recipe,
    RecipeParameter,
    RecipeTrial,
    SaveOptions,
    StoredRecipe,
    compute_version,
)
from gateway.features.recipes.engine.card import render_body, render_files

RecipeState = Literal["staged", "in use"]
SAVE_ROLES = declare_roles(run_id="id", name="content", description="content", try_values="other")
"""The roles of `RecipeSaveInput`."""


class RecipeOutput(DeferredModel):
    """A recipe. A staged one cannot be called until a person has applied it."""

    name: str
    state: RecipeState
    version: str = Field(description="what apply refers to; it changes if the recipe is saved again")
    description: str
    usage: str
    parameters: list[RecipeParameter]
    trials: list[RecipeTrial]
    notes: list[str]
    text: str = Field(description="the recipe as people read it")
    from_outside: bool = Field(default=False, description="whether its texts may be of something that a model had read")


class RecipeItem(RecipeOutput):
    """A recipe as lists show it: what is staged, else what is in use."""

    is_applied: bool = Field(description="whether it can be called; of a staged recipe, an earlier version of it")
    from_run: str
    created_at: datetime
    updated_at: datetime


class RecipeDetail(RecipeItem):
    """A recipe with its steps, and the files of its skill folder by name."""

    request: str
    steps: list[PlanStep]
    files: dict[str, str]


class SaveBody(StrictBody):
    """How to save a run. Everything is optional: the name, the description and the parameters are found."""

    name: str = Field(default="", max_length=500, description="1 to 64 lowercase letters, digits and single hyphens")
    description: str = Field(default="", max_length=1024)
    try_values: JsonObject = Field(default={}, description="other values of parameters to try it with")


class RecipeSaveInput(Arguments):
    """Arguments of `recipe_save`."""

    run_id: str = Field(default="", max_length=200, description="the run; empty: the one before in this conversation")
    name: str = Field(default="", max_length=500, description="lowercase words with hyphens; empty: chosen")
    description: str = Field(default="", max_length=1024, description="what it does and when to use it; empty: found")
    try_values: JsonObject = Field(default_factory=dict, description="other values of parameters to try it with")


def to_options(form: SaveBody | RecipeSaveInput) -> SaveOptions:
    """What a form asks of the recipe."""
    return SaveOptions.model_validate({name: getattr(form, name) for name in SaveOptions.model_fields})


def to_output(recipe: Recipe, state: RecipeState) -> RecipeOutput:
    """A recipe as tools show it."""
    return RecipeOutput(
        **_copy_fields(recipe, RecipeOutput),
        state=state,
        version=compute_version(recipe),
        usage=recipe.usage,
        text=render_body(recipe),
        from_outside=recipe.tainted,
    )


def to_shown_output(stored: StoredRecipe) -> RecipeOutput:
    """What is shown of a stored recipe: the staged version first."""
    return to_output(stored.shown, "staged" if stored.staged is not None else "in use")


def to_line(stored: StoredRecipe) -> RecipeOutput:
    """A stored recipe in the list of a tool: of one that may hold text from outside, its name and state only."""
    whole = to_shown_output(stored)
    if not whole.from_outside:
        return whole
    hidden = {"description": OUTSIDE_TEXT, "text": OUTSIDE_TEXT, "usage": f"/{whole.name}"}
    return whole.model_copy(update={**hidden, "parameters": [], "trials": [], "notes": []})


def to_item(stored: StoredRecipe) -> RecipeItem:
    """A stored recipe in a list."""
    return RecipeItem(**_collect_fields(stored, RecipeItem))


def to_detail(stored: StoredRecipe) -> RecipeDetail:
    """A stored recipe with its steps and files."""
    return RecipeDetail(**_collect_fields(stored, RecipeDetail), files=dict(render_files(stored.shown)))


def _collect_fields(stored: StoredRecipe, form: type[RecipeItem]) -> dict[str, Any]:
    """The fields of a form that the recipe has by the same name, and those that every list shows."""
    return {
        **_copy_fields(stored.shown, form),
        **dict(to_shown_output(stored)),
        "is_applied": stored.applied is not None,
        "created_at": datetime.fromtimestamp(stored.created, UTC),
        "updated_at": datetime.fromtimestamp(stored.updated, UTC),
    }


def _copy_fields(recipe: Recipe, form: type[RecipeOutput]) -> dict[str, Any]:
    return {name: value for name, value in recipe if name in form.model_fields}
