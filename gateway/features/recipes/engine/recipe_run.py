"""Runs `/name ...` of a recipe without a planner, and puts recipes that a planner chose into its plan."""

import json
from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, JsonValue, ValidationError

from agent.core.errors import BudgetError, ModelError, NotFoundError
from agent.core.events import TaintSource
from agent.core.models import JsonObject
from agent.execution.open_questions import ask_user
from agent.execution.run_catalogue import build_catalogue, list_callable
from agent.llm.port import ResponseSchema
from agent.llm.prompts import format_block
from agent.planning.planned import Planned
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.outputs import SKILL_CHARS, format_data_block
from agent.run_context.run import Run
from gateway.features.recipes.engine import NO_RECIPES, Recipe, RecipeSet
from gateway.features.recipes.engine.prompts import render
from gateway.features.recipes.engine.recipe_plans import (
    Arguments,
    build_recipe_plan,
    check_values,
    describe_problems,
    expand_recipes,
    fill_words,
    parse_arguments,
)

RECIPES = "recipes"
"""The name of the hooks, and of what they load."""


class _Value(BaseModel):
    name: str
    value: str


class _Values(BaseModel):
    values: list[_Value]


def describe_request(run: Run, name: str, rest: str) -> str:
    """The request that a call of a recipe stands for, for models and people."""
    recipe = get_recipe(run, name)
    parsed = parse_arguments(recipe, rest)
    if parsed.values is not None and not parsed.problems:
        return fill_words(recipe.request, parsed.values)
    return f"{recipe.description} {rest}".strip()


def get_recipes(run: Run) -> RecipeSet:
    """The recipes that the run's owner has in use."""
    loaded = run.feature_data.get(RECIPES)
    return loaded if isinstance(loaded, RecipeSet) else NO_RECIPES


def add_origins(planned: Planned, recipes: Sequence[Recipe]) -> Planned:
    """The plan with what must be known of it because of the recipes that it comes from."""
    reason = next((recipe.approval_reason for recipe in recipes if recipe.approval_reason), "")
    tainted_by: tuple[TaintSource, ...] = ("recipe",) if any(recipe.tainted for recipe in recipes) else ()
    return replace(planned, approval_reason=reason, tainted_by=(*planned.tainted_by, *tainted_by))


def get_recipe(run: Run, name: str) -> Recipe:
    """The recipe. Raises `NotFoundError` if it was removed since the request was routed."""
    recipe = get_recipes(run).get(name)
    if recipe is None:
        raise NotFoundError(f"the recipe {name!r} was removed meanwhile")
    return recipe


async def plan_recipe(run: Run, name: str, rest: str) -> Planned:
    """The plan of a recipe, or a question about its arguments.

    Raises `BadRequestError` for bad arguments if nobody can be asked, and `PlanInvalidError` if the run may not use the
    recipe's steps as they are."""
    recipe = get_recipe(run, name)
    parsed = parse_arguments(recipe, rest)
    if parsed.values is None and not parsed.problems:
        parsed = await _extract_arguments(run, recipe, rest)
    if parsed.values is None or parsed.problems:
        return ask_user(run, describe_problems(recipe, parsed.problems))
    catalogue = list_callable(build_catalogue(run))
    plan = build_recipe_plan(recipe, parsed.values, catalogue, max_steps=run.room.budgets.max_steps)
    return add_origins(Planned(plan, "rules", "rules"), [recipe])


async def _extract_arguments(run: Run, recipe: Recipe, text: str) -> Arguments:
    """Asks a model for the values in a text. Without a usable reply, no values are known."""
    if not run.has_model:
        return Arguments(None)
    parameters = [
        {"name": one.name, "type": one.type, "description": one.description, "example": one.example}
        for one in recipe.parameters
    ]
    parameter_lines = "\n".join(json.dumps(one, ensure_ascii=False) for one in parameters)
    system = render(
        "recipe_arguments",
        description=format_block("data", recipe.description),
        parameters=format_block("data", parameter_lines),
    )
    messages: tuple[JsonObject, ...] = (
        {"role": "system", "content": system},
        {"role": "user", "content": format_data_block("request", text, limit=SKILL_CHARS)},
    )
    try:
        reply = await MeteredModels(run).complete(ModelCall("recipe", messages, schema=_build_schema(recipe)))
        reply_values = _Values.model_validate_json(cut_json(reply.text))
    except (ModelError, BudgetError, ValidationError):
        return Arguments(None)
    parameter_names = {one.name for one in recipe.parameters}
    return check_values(recipe, {one.name: one.value for one in reply_values.values if one.name in parameter_names})


def cut_json(text: str) -> str:
    """The outermost JSON object of a model's reply, without a fence or prose around it."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def _build_schema(recipe: Recipe) -> ResponseSchema:
    names: list[JsonValue] = [one.name for one in recipe.parameters]
    value: JsonObject = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "value"],
        "properties": {"name": {"type": "string", "enum": names}, "value": {"type": "string"}},
    }
    return ResponseSchema(
        "arguments",
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["values"],
            "properties": {"values": {"type": "array", "items": value}},
        },
    )


def expand_planned(run: Run, planned: Planned) -> Planned:
    """The plan with the steps of the recipes that it names. Raises `PlanInvalidError` if they do not fit."""
    if not (recipes := get_recipes(run)) or planned.answer is not None or planned.question:
        return planned
    kept_steps = [step for step in run.state.list_succeeded_steps() if step in planned.plan.steps]
    catalogue = list_callable(build_catalogue(run))
    limit = run.room.budgets.max_steps
    expanded = expand_recipes(planned.plan, recipes.recipes, catalogue, max_steps=limit, kept=kept_steps)
    if not expanded.used:
        return planned
    planned = replace(planned, plan=expanded.plan, adjusted=(*planned.adjusted, *expanded.notes))
    return add_origins(planned, expanded.used)
