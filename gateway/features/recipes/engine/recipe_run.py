"""Runs `/name ...` of a recipe without a planner, and puts recipes that a planner chose into its plan."""

import json
from dataclasses import replace

from pydantic import BaseModel, JsonValue, ValidationError

from agent.core.errors import BadRequestError, BudgetError, ModelError, NotFoundError
from agent.core.models import JsonObject
from agent.execution.catalogue import build_catalogue, drop_recipes
from agent.execution.static_plans import plan_completion_only
from agent.llm.port import ResponseSchema
from agent.planning.planner import Planned
from agent.prompts import render
from agent.run_context.model_calls import MeteredModels
from agent.run_context.outputs import SKILL_CHARS, format_data_block
from agent.run_context.run import Run
from gateway.features.recipes.engine import Recipe
from gateway.features.recipes.engine.recipe_plans import (
    Arguments,
    build_recipe_plan,
    check_values,
    describe_problems,
    expand_recipes,
    fill_words,
    parse_arguments,
)


class _Value(BaseModel):
    name: str
    value: str


class _Values(BaseModel):
    values: list[_Value]


def describe_request(run: Run, name: str, rest: str) -> str:
    """Returns the request that a call of a recipe stands for, for models and people."""
    recipe = get_recipe(run, name)
    parsed = parse_arguments(recipe, rest)
    if parsed.values is not None and not parsed.problems:
        return fill_words(recipe.request, parsed.values)
    return f"{recipe.description} {rest}".strip()


def get_recipe(run: Run, name: str) -> Recipe:
    """Returns the recipe. Raises `NotFoundError` if it was removed since the request was routed."""
    found = run.recipes.get(name)
    if found is None:
        raise NotFoundError(f"the recipe {name!r} was removed meanwhile")
    return found


async def plan_recipe(run: Run, name: str, rest: str) -> Planned:
    """Returns the plan of a recipe, or a question about its arguments.

    Raises `BadRequestError` for bad arguments if nobody can be asked, and `PlanInvalidError` if the run may not use the
    recipe's steps as they are."""
    recipe = get_recipe(run, name)
    parsed = parse_arguments(recipe, rest)
    if parsed.values is None and not parsed.problems:
        parsed = await _extract_arguments(run, recipe, rest)
    if parsed.values is None or parsed.problems:
        return ask_user(run, describe_problems(recipe, parsed.problems))
    catalogue = drop_recipes(build_catalogue(run))
    plan = build_recipe_plan(recipe, parsed.values, catalogue, max_steps=run.room.budgets.max_steps)
    return Planned(plan, "rules", "rules", recipes=(recipe,))


def ask_user(run: Run, question: str) -> Planned:
    """Returns a question instead of a plan. Raises `BadRequestError` with its words if nobody can be asked."""
    if not run.state.request.interactive:
        raise BadRequestError(question, param="prompt")
    return Planned(plan_completion_only(run, question), "rules", "rules", question=question)


async def _extract_arguments(run: Run, recipe: Recipe, text: str) -> Arguments:
    """Asks a model for the values in a text. Without a usable reply, no values are known."""
    if not run.has_model:
        return Arguments(None)
    parameters = [
        {"name": one.name, "type": one.type, "description": one.description, "example": one.example}
        for one in recipe.parameters
    ]
    shown = "\n".join(json.dumps(one, ensure_ascii=False) for one in parameters)
    system = render("recipe_arguments", description=recipe.description, parameters=shown)
    messages: tuple[JsonObject, ...] = (
        {"role": "system", "content": system},
        {"role": "user", "content": format_data_block("request", text, limit=SKILL_CHARS)},
    )
    try:
        reply = await MeteredModels(run).complete("recipe", messages, schema=_build_schema(recipe), formed=False)
        found = _Values.model_validate_json(cut_json(reply.text))
    except (ModelError, BudgetError, ValidationError):
        return Arguments(None)
    known = {one.name for one in recipe.parameters}
    return check_values(recipe, {one.name: one.value for one in found.values if one.name in known})


def cut_json(text: str) -> str:
    """Returns the outermost JSON object of a model's reply, without a fence or prose around it."""
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
    """Returns the plan with the steps of the recipes that it names. Raises `PlanInvalidError` if they do not fit."""
    if not run.recipes or planned.answer is not None or planned.question:
        return planned
    kept = [step for step in run.state.list_succeeded_steps() if step in planned.plan.steps]
    catalogue = drop_recipes(build_catalogue(run))
    limit = run.room.budgets.max_steps
    expanded = expand_recipes(planned.plan, run.recipes.recipes, catalogue, max_steps=limit, kept=kept)
    if not expanded.used:
        return planned
    return replace(planned, plan=expanded.plan, adjusted=(*planned.adjusted, *expanded.notes), recipes=expanded.used)
