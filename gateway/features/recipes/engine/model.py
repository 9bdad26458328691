"""A `Recipe`: its parameters, its steps, and how it was tried."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field, JsonValue

from agent.core.errors import BadRequestError
from agent.core.models import Effect, FrozenModel, JsonObject, PlanStep
from agent.core.surrogates import replace_surrogates

ParameterType = Literal["text", "number", "integer", "boolean"]
PARAMETER_PATTERN: Final = r"^[a-z][a-z0-9_]{0,31}$"
MAX_NAME_CHARS: Final = 64
MAX_PARAMETERS: Final = 20
RESERVED_NAMES: Final = frozenset({"help", "skills", "tools", "approve", "reject", "completion", "answer"})
"""Commands of the chat, and names of the step that writes the answer."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_JSON_TYPES: Final[dict[ParameterType, str]] = {
    "text": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
}
_WORST: Final[tuple[Effect, ...]] = ("read", "idempotent", "effect")


class RecipeParameter(FrozenModel):
    """A value that differs from use to use. In steps it stands as `{"$param": name}`, within a text as `{{name}}`.

    `example` is its value in the run that the recipe was made from; an optional parameter has it by default. It is null
    if the value was personal.
    """

    name: str = Field(pattern=PARAMETER_PATTERN)
    type: ParameterType = "text"
    description: str = Field(default="", max_length=500)
    example: JsonValue = None
    required: bool = True


class RecipeTrial(FrozenModel):
    """The recipe as it was tried with `values`. Steps that change something, and the answer, are not tried."""

    input: Literal["old", "changed"]
    status: Literal["passed", "failed", "not_tried"]
    values: JsonObject = Field(default_factory=dict)
    reason: str = ""
    run_id: str = ""
    tried: tuple[str, ...] = ()
    not_tried: tuple[str, ...] = ()


class SaveOptions(FrozenModel):
    """What is asked of a recipe as it is made of a run. The run gives what is left empty."""

    name: str = Field(default="", description="the recipe's name; default: made from the request")
    description: str = Field(default="", description="what it does; default: taken from the run")
    try_values: JsonObject = Field(default_factory=dict, description="other values of parameters, for a trial")

    def list_given(self) -> JsonObject:
        """The fields of the recipe that are set, by name."""
        return {name: value for name, value in self if value and name in Recipe.model_fields}


class Recipe(FrozenModel):
    """A plan as a template. `request` is the request that it answers, with its parameters."""

    name: str
    description: str = Field(min_length=1, max_length=1024)
    request: str
    goal: str = ""
    language: str = "en"
    parameters: tuple[RecipeParameter, ...] = ()
    steps: tuple[PlanStep, ...]
    from_run: str = ""
    room: str = ""
    tainted: bool = Field(default=False, description="the plan was made after untrusted text was read")
    approval_reason: str = Field(default="", description="why its plan must be approved before it changes something")
    trials: tuple[RecipeTrial, ...] = ()
    notes: tuple[str, ...] = Field(default=(), description="what the person who confirms it should know")

    @property
    def effect(self) -> Effect:
        """The worst effect class of its steps."""
        return max((step.effect for step in self.steps), key=_WORST.index, default="read")

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools and skills of its steps, each once."""
        return tuple(dict.fromkeys(step.tool for step in self.steps if step.is_work))

    @property
    def usage(self) -> str:
        """How it is called, such as `/weather city=TEXT`."""
        words = [f"{one.name}={one.type.upper()}" for one in self.parameters]
        optional = [f"[{word}]" if not one.required else word for one, word in zip(self.parameters, words, strict=True)]
        return " ".join([f"/{self.name}", *optional])

    def build_input_schema(self) -> JsonObject:
        """The JSON schema of its arguments."""
        properties: JsonObject = {
            one.name: {"type": _JSON_TYPES[one.type], "description": one.description} for one in self.parameters
        }
        required: list[JsonValue] = [one.name for one in self.parameters if one.required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class RecipeSet:
    """The recipes that an owner has in use, in order of name. `digest` changes with every change of them."""

    recipes: tuple[Recipe, ...] = ()
    digest: str = ""

    def __iter__(self) -> Iterator[Recipe]:
        return iter(self.recipes)

    def __len__(self) -> int:
        return len(self.recipes)

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(recipe.name for recipe in self.recipes)

    def get(self, name: str) -> Recipe | None:
        """The recipe of this name, or None."""
        return next((recipe for recipe in self.recipes if recipe.name == name), None)


NO_RECIPES: Final = RecipeSet()


class StoredRecipe(FrozenModel):
    """A recipe as it is stored: the one in use, and one that waits for a person's confirmation. One of them is set."""

    name: str
    applied: Recipe | None = None
    staged: Recipe | None = None
    created: float
    updated: float

    @property
    def shown(self) -> Recipe:
        """The recipe to show: the staged one first."""
        version = self.staged or self.applied
        if version is None:
            raise ValueError(f"recipe {self.name} has no content")
        return version


def compute_version(recipe: Recipe) -> str:
    """The version of a recipe, a checksum of its content."""
    return hashlib.sha256(recipe.model_dump_json().encode()).hexdigest()[:16]


def make_storable(recipe: Recipe) -> Recipe:
    """The recipe without lone surrogates, which a model's JSON may hold and no store takes."""
    text = json.dumps(recipe.model_dump(mode="json"), ensure_ascii=False)
    return Recipe.model_validate_json(replace_surrogates(text))


def check_recipe_name(name: str) -> str:
    """The name. Raises `BadRequestError` unless it is a valid name of an Agent Skill."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        short_name = name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}…"
        raise BadRequestError(
            f"{short_name!r} is not a recipe name: use 1 to {MAX_NAME_CHARS} lowercase letters a to z and digits, in "
            "words joined by single hyphens, such as weekly-report",
            param="name",
        )
    if name in RESERVED_NAMES:
        raise BadRequestError(f"{name!r} is a command of the chat itself; choose another name", param="name")
    return name
