"""Recipes as plans: their arguments, their values in the template, and their place in other plans."""

import pytest

from agent.core.errors import PlanInvalidError
from agent.core.models import JsonObject, Plan, PlanStep
from agent.tools import READ_ONLY, ToolSpec
from agent.tools.catalogue import Catalogue
from gateway.features.recipes.engine import Recipe, RecipeParameter
from gateway.features.recipes.engine.recipe_plans import expand_recipes, fill_recipe, parse_arguments

PART = RecipeParameter(name="part", example="7")
SIZE = RecipeParameter(name="size", type="integer", example=3, required=False)


def step(name: str, tool: str = "look_up", args: JsonObject | None = None, after: tuple[str, ...] = ()) -> PlanStep:
    return PlanStep(id=name, executor="agent", action="tool", tool=tool, args=args or {}, depends_on=after)


def recipe(*steps: PlanStep, parameters: tuple[RecipeParameter, ...] = (PART, SIZE)) -> Recipe:
    return Recipe(name="order", description="-", request="order {{part}}", parameters=parameters, steps=steps)


def catalogue(*names: str) -> Catalogue:
    schema: JsonObject = {"type": "object", "properties": {"x": {}}}
    specs = (ToolSpec(name, "-", schema, None, READ_ONLY, tainted=False) for name in names)
    return Catalogue(tools=tuple(specs))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("part=nut", {"part": "nut", "size": 3}),
        ('part="nut 5" size=4', {"part": "nut 5", "size": 4}),
        ("size=-2 part='a=b'", {"size": -2, "part": "a=b"}),
        ("a nut of five", None),
        ('part="nut', None),
        ("http://x.example/?a=b", None),
    ],
)
def test_arguments_are_read_only_where_they_are_exact(text: str, values: JsonObject | None) -> None:
    assert parse_arguments(recipe(), text).values == values


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'part is missing (text, such as "7")'),
        ("part=nut size=big", "size must be integer, not 'big'"),
        ("part=nut colour=red", "there is no parameter 'colour'"),
        ("colour=red", "there is no parameter 'colour'"),
    ],
)
def test_what_is_wrong_with_arguments_is_named(text: str, problem: str) -> None:
    assert problem in parse_arguments(recipe(), text).problems


def test_any_text_is_the_value_of_an_only_parameter() -> None:
    only = recipe(parameters=(PART,))
    assert parse_arguments(only, "a nut of five").values == {"part": "a nut of five"}
    assert parse_arguments(only, "is a=b true?").values == {"part": "is a=b true?"}
    assert "there is no parameter 'foo'" in parse_arguments(only, "foo=1 bar=2").problems


def test_a_users_value_never_becomes_a_reference() -> None:
    whole = recipe(step("s1", args={"x": {"$param": "part"}}))
    assert fill_recipe(whole, {"part": "$s1 and ${s2}"})[0]["args"] == {"x": {"$literal": "$s1 and ${s2}"}}
    within = recipe(step("s1", args={"x": "one {{part}}"}))
    assert fill_recipe(within, {"part": "$s1"})[0]["args"] == {"x": {"$literal": "one $s1"}}
    mixed = recipe(step("s1"), step("s2", args={"x": "$s1: {{part}}"}, after=("s1",)))
    with pytest.raises(PlanInvalidError, match="may not look like the result of a step"):
        fill_recipe(mixed, {"part": "$s1"})
    assert fill_recipe(mixed, {"part": "$5 off"})[1]["args"] == {"x": "$s1: $5 off"}


def test_a_value_keeps_its_type_where_it_is_the_whole_argument() -> None:
    made = fill_recipe(recipe(step("s1", args={"x": {"$param": "size"}, "y": ["{{size}} mm"]})), {"size": 4})
    assert made[0]["args"] == {"x": 4, "y": ["4 mm"]}


def test_a_step_that_names_a_recipe_becomes_its_steps() -> None:
    inner = recipe(
        step("s1", args={"x": {"$param": "part"}}),
        step("s2", args={"x": "send ${s1.output.id} of {{part}}"}, after=("s1",)),
        parameters=(PART,),
    )
    outer = Plan(
        goal="g",
        steps=(
            step("s1"),
            step("s2", "order", {"part": {"$from": "s1", "path": "output.name"}}, ("s1",)),
            step("s3", args={"x": "done: $s2"}, after=("s2",)),
        ),
    )
    made = expand_recipes(outer, (inner,), catalogue("look_up"), max_steps=12)
    assert {one.id: (one.args, set(one.depends_on)) for one in made.plan.steps} == {
        "s1": ({}, set()),
        "s2_1": ({"x": {"$from": "s1", "path": "output.name"}}, {"s1"}),
        "s2_2": ({"x": "send ${s2_1.output.id} of ${s1.output.name}"}, {"s1", "s2_1"}),
        "s3": ({"x": "done: ${s2_2}"}, {"s2_2"}),
    }
    assert made.notes == ("s2: the recipe order as s2_1, s2_2",)
    with pytest.raises(PlanInvalidError, match="it may have 1 to 3"):
        expand_recipes(outer, (inner,), catalogue("look_up"), max_steps=3)


def test_a_tool_of_the_same_name_is_meant_before_a_recipe() -> None:
    outer = Plan(goal="g", steps=(step("s1", "order"),))
    made = expand_recipes(outer, (recipe(step("s1")),), catalogue("look_up", "order"), max_steps=12)
    assert (made.plan, made.used) == (outer, ())
