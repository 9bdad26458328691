"""Plans from recipes: reads the arguments of `/name ...`, fills the template in, and puts recipes into plans."""

import json
import math
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.json_texts import write_text
from agent.core.models import JsonObject, Plan, PlanStep
from agent.core.plan_references import is_literal, list_references, quote_literal, rename_references
from agent.planning.normalise import RawPlan, normalise_plan
from agent.planning.validate import find_leaf_steps, validate_plan
from agent.tools import PlanHints, ToolAnnotations, ToolSpec
from agent.tools.catalogue import Catalogue
from gateway.features.recipes.engine import Recipe, RecipeParameter
from gateway.features.recipes.engine.renaming import FIELD, PARAMETER_KEY

RECIPE_ORIGIN = "recipe"
_ASSIGNMENT = re.compile(r"([a-z][a-z0-9_]{0,31})=(.*)", re.DOTALL)
_TRUE, _FALSE = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


@dataclass(frozen=True, slots=True)
class Arguments:
    """Values of a recipe's parameters. `problems` says what is missing or wrong; None as values: not an exact form."""

    values: JsonObject | None
    problems: tuple[str, ...] = ()


def list_recipe_specs(recipes: Sequence[Recipe], catalogue: Catalogue) -> list[ToolSpec]:
    """The recipes that a planner may use, as tools: those whose tools the run may call."""
    known_names = {*catalogue.list_names()}
    return [_describe_recipe(recipe) for recipe in recipes if known_names.issuperset(recipe.tools)]


def _describe_recipe(recipe: Recipe) -> ToolSpec:
    reads = recipe.effect == "read"
    return ToolSpec(
        name=recipe.name,
        description=recipe.description,
        input_schema=recipe.build_input_schema(),
        output=None,
        annotations=ToolAnnotations(read_only=reads, idempotent=recipe.effect != "effect"),
        tainted=False,
        origin=RECIPE_ORIGIN,
        hints=PlanHints(stands_for_steps=True),
    )


def parse_arguments(recipe: Recipe, text: str) -> Arguments:
    """Reads `name=value ...`, or the whole text as the value of a recipe's only parameter.

    Values with spaces are in quotes. Of any other text, a model must find the values. A text of assignments only is
    never a value: `foo=1 bar=2` names parameters that do not exist."""
    text = text.strip()
    given = _read_assignments(text)
    parameter_names = {one.name for one in recipe.parameters}
    if given is not None:
        unknown = [f"there is no parameter {name!r}" for name in given if name not in parameter_names]
        checked = check_values(recipe, {name: value for name, value in given.items() if name in parameter_names})
        return Arguments(checked.values, (*unknown, *checked.problems))
    if len(recipe.parameters) == 1:
        return check_values(recipe, {recipe.parameters[0].name: text})
    if not recipe.parameters:
        return Arguments({}, ("it takes no arguments",))
    return Arguments(None)


def _read_assignments(text: str) -> dict[str, JsonValue] | None:
    """The assignments, or None if any word is none."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote without an end
        return None
    matches = [_ASSIGNMENT.fullmatch(word) for word in words]
    return {match[1]: match[2] for match in matches if match} if all(matches) else None


def check_values(recipe: Recipe, given: Mapping[str, JsonValue]) -> Arguments:
    """The values in the types of their parameters. Optional ones have the value of the recipe's run."""
    values: JsonObject = {}
    problems = []
    for one in recipe.parameters:
        if one.name not in given or given[one.name] in ("", None):
            if one.required:
                problems.append(f"{one.name} is missing ({_describe_parameter(one)})")
            else:
                values[one.name] = one.example
            continue
        value = convert_value(one, given[one.name])
        if value is None:
            problems.append(f"{one.name} must be {one.type}, not {str(given[one.name])[:100]!r}")
        else:
            values[one.name] = value
    return Arguments(values, tuple(problems))


def convert_value(parameter: RecipeParameter, value: JsonValue) -> JsonValue:
    """The value in the parameter's type, or None if it has none there."""
    text = write_text(value).strip()
    match parameter.type:
        case "text":
            return value if isinstance(value, str) else text
        case "boolean":
            return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
        case "integer":
            return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else None
        case "number":
            try:
                number = float(text)
            except ValueError:
                return None
            return int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else number if math.isfinite(number) else None


def _describe_parameter(one: RecipeParameter) -> str:
    example = "" if one.example is None else f", such as {json.dumps(one.example, ensure_ascii=False)}"
    return f"{one.description or one.type}{example}"


def describe_problems(recipe: Recipe, problems: Sequence[str]) -> str:
    """A question to the user about the arguments of a recipe."""
    problem_text = "; ".join(problems) or "its arguments could not be told apart"
    return f"The recipe /{recipe.name} cannot start: {problem_text}. Write: {recipe.usage}"


def fill_recipe(recipe: Recipe, values: Mapping[str, JsonValue], *, references: bool = False) -> list[JsonObject]:
    """The steps with their parameters filled in, as JSON. Raises `PlanInvalidError`.

    With `references` a value may refer to another step of a plan. Without, it is a user's text, which never does."""
    filler = _Filler(values, references=references)
    steps = []
    for step in recipe.steps:
        made = step.model_dump(mode="json")
        made["args"] = {name: filler.fill(value) for name, value in step.args.items()}
        made["intent"] = filler.fill_text(step.intent)
        steps.append(made)
    if filler.problems:
        raise PlanInvalidError(filler.problems)
    return steps


def fill_words(text: str, values: Mapping[str, JsonValue]) -> str:
    """A text of the recipe for people, such as its request, with the values filled in."""
    return _Filler(values, references=False).fill_text(text)


class _Filler:
    def __init__(self, values: Mapping[str, JsonValue], *, references: bool) -> None:
        self._values = values
        self._references = references
        self.problems: list[str] = []

    def fill(self, value: JsonValue) -> JsonValue:
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            if list(value) == [PARAMETER_KEY]:
                return self._get_whole(str(value[PARAMETER_KEY]))
            if is_literal(value):
                return {"$literal": self.fill_text(str(value["$literal"]))}
            return {key: self.fill(item) for key, item in value.items()}
        return self._splice(value) if isinstance(value, str) else value

    def fill_text(self, text: str) -> str:
        return FIELD.sub(lambda match: self._get_text(match[1], match[0]), text)

    def _get_whole(self, name: str) -> JsonValue:
        value = self._values.get(name)
        return quote_literal(value) if isinstance(value, str) and not self._references else value

    def _splice(self, text: str) -> JsonValue:
        """A text with values in it. A user's value that looks like a reference stays what it is."""
        names = [name for name in FIELD.findall(text) if name in self._values]
        quoted = [name for name in names if not self._references and list_references(self._values[name])]
        if not quoted:
            return self.fill_text(text)
        if list_references(text):
            self.problems.append(f"the value of {quoted[0]} may not look like the result of a step ($s1, ${{s1}})")
        return {"$literal": self.fill_text(text)}

    def _get_text(self, name: str, field: str) -> str:
        value = self._values.get(name, field)
        if isinstance(value, dict) and isinstance(value.get("$from"), str):
            path = str(value.get("path") or "")
            dotted = path if not path or path.startswith((".", "[")) else f".{path}"
            return f"${{{str(value['$from']).removeprefix('$')}{dotted}}}"
        return write_text(value)


def build_recipe_plan(recipe: Recipe, values: Mapping[str, JsonValue], catalogue: Catalogue, *, max_steps: int) -> Plan:
    """The plan of `/name ...`, validated against what the run may use now. Raises `PlanInvalidError`."""
    data: JsonObject = {"goal": fill_words(recipe.goal or recipe.request, values), "language": recipe.language}
    raw = normalise_plan({**data, "steps": [*fill_recipe(recipe, values)]}, catalogue)
    plan = validate_plan(name_skill_tools(raw, catalogue), catalogue, max_steps=max_steps)
    return plan.model_copy(update={"origin": "request", "origin_reason": f"the recipe {recipe.name!r}"})


def name_skill_tools(raw: RawPlan, catalogue: Catalogue, only: Collection[str] | None = None) -> RawPlan:
    """The plan in which each skill step of a recipe names its tools: all of the skill's if it named none.

    A person has looked at the recipe and chosen it. `only` are the ids of the recipe's steps; None: all steps are.
    """
    steps = []
    for step in raw.steps:
        card = catalogue.get_skill(step.tool)
        is_open = card is not None and step.tools is None and (only is None or step.id in only)
        steps.append(replace(step, tools=card.tools) if card is not None and is_open else step)
    return replace(raw, steps=tuple(steps))


@dataclass(frozen=True, slots=True)
class ExpandedPlan:
    """A plan with each recipe replaced by its steps."""

    plan: Plan
    used: tuple[Recipe, ...]
    notes: tuple[str, ...]


def expand_recipes(
    plan: Plan, recipes: Sequence[Recipe], catalogue: Catalogue, *, max_steps: int, kept: Sequence[PlanStep] = ()
) -> ExpandedPlan:
    """Replaces every step that names a recipe by the recipe's steps, and validates the result against `catalogue`.

    `kept` are completed steps of earlier plans. Raises `PlanInvalidError`."""
    by_name = {recipe.name: recipe for recipe in recipes if catalogue.get_tool(recipe.name) is None}
    done = {step.id for step in kept}
    expansion = _Expansion({step.id for step in plan.steps})
    steps: list[JsonObject] = []
    used: list[Recipe] = []
    of_recipes: set[str] = set()
    for step in plan.steps:
        recipe = by_name.get(step.tool) if step.action == "tool" else None
        if step.id in done:
            continue
        if recipe is None:
            steps.append(expansion.move_step(step))
        else:
            filled = expansion.expand_step(step, recipe)
            of_recipes |= {str(one["id"]) for one in filled}
            steps += filled
            used.append(recipe)
    if not used:
        return ExpandedPlan(plan, (), ())
    raw = normalise_plan({"goal": plan.goal, "language": plan.language, "steps": [*steps]}, catalogue)
    raw = name_skill_tools(raw, catalogue, of_recipes)
    valid = validate_plan(raw, catalogue, max_steps=max_steps, known_ids=done)
    whole = plan.model_copy(update={"steps": (*kept, *valid.steps)})
    return ExpandedPlan(whole, tuple(used), tuple(expansion.notes))


class _Expansion:
    """Puts the steps of recipes into one plan. `taken` are the ids of its steps."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._ends: dict[str, list[str]] = {}
        """The last steps of each recipe, by the id of the step that named it."""
        self.notes: list[str] = []

    def move_step(self, step: PlanStep) -> JsonObject:
        """A step that waits for the ends of recipes and refers to their last results."""
        return {
            **step.model_dump(mode="json"),
            "args": self._move_references(step.args),
            "depends_on": [*self._move_dependencies(step.depends_on)],
        }

    def expand_step(self, step: PlanStep, recipe: Recipe) -> list[JsonObject]:
        """The steps of a recipe with ids of their own, without its completion."""
        template = [one for one in recipe.steps if not one.is_completion]
        names = {one.id: self._make_id(step.id, number) for number, one in enumerate(template, start=1)}
        before = self._move_dependencies(step.depends_on)
        renamed = [_rename_step(one, names, before) for one in template]
        values = {one.name: one.example for one in recipe.parameters}
        values |= {name: self._move_references(value) for name, value in step.args.items()}
        filled = fill_recipe(recipe.model_copy(update={"steps": tuple(renamed)}), values, references=True)
        self._ends[step.id] = [one.id for one in find_leaf_steps(renamed)]
        self.notes.append(f"{step.id}: the recipe {recipe.name} as {', '.join(names.values())}")
        return filled

    def _make_id(self, step_id: str, number: int) -> str:
        """An id such as `s2_1` that no other step has."""
        base = f"{step_id[:24]}_{number}"
        name = next(name for name in (base, *(f"{base}_{n}" for n in range(2, 100))) if name not in self._taken)
        self._taken.add(name)
        return name

    def _move_dependencies(self, names: Sequence[str]) -> list[str]:
        return [moved for name in names for moved in self._ends.get(name, [name])]

    def _move_references(self, value: JsonValue) -> JsonValue:
        return rename_references(value, {name: ends[-1] for name, ends in self._ends.items() if ends})


def _rename_step(step: PlanStep, names: Mapping[str, str], before: Sequence[str]) -> PlanStep:
    """A step of a recipe under its id in the plan; it also waits for the steps in `before`."""
    return step.model_copy(
        update={
            "id": names[step.id],
            "args": {name: rename_references(value, names) for name, value in step.args.items()},
            "depends_on": (*before, *(names[name] for name in step.depends_on if name in names)),
        }
    )
