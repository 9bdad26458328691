"""Finds the parameters of a recipe: by a model where there is one, else the inputs that the request names."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from pydantic import BaseModel, Field, JsonValue, ValidationError

from agent.core.errors import BudgetError, ModelError
from agent.core.json_texts import write_text
from agent.core.models import JsonObject, PlanStep, Tier
from agent.core.plan_references import find_references, is_literal
from agent.llm.prompts import format_block
from gateway.features.recipes.engine import RecipeParameter
from gateway.features.recipes.engine.model import MAX_NAME_CHARS, MAX_PARAMETERS, ParameterType
from gateway.features.recipes.engine.prompts import render
from gateway.features.recipes.engine.renaming import PARAMETER_KEY

SHORTEST_TEXT: Final = 2
MAX_PROMPT_CHARS: Final = 8_000
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_NAME_PART = re.compile(r"[^a-z0-9]+")


class RecipeModel(Protocol):
    """A model to ask for parameters. `agent.tools.ToolModel` is one."""

    async def ask(self, messages: tuple[JsonObject, ...], *, tier: Tier = "fast") -> str:
        """The text of one reply. Raises `ModelError` and `BudgetError`."""
        ...


class _FoundParameter(BaseModel):
    name: str = Field(min_length=1)
    type: ParameterType = "text"
    description: str = ""
    value: JsonValue
    other: JsonValue = None


class _Reply(BaseModel):
    name: str = ""
    description: str = ""
    parameters: list[_FoundParameter] = Field(default_factory=list, max_length=MAX_PARAMETERS)


@dataclass(frozen=True, slots=True)
class FoundParameters:
    """Parameters, each with the literal that it replaces, and other values to try. `notes` are for the person."""

    parameters: tuple[RecipeParameter, ...] = ()
    literals: Mapping[str, JsonValue] = field(default_factory=dict)
    """The value of each parameter as the steps have it."""
    others: JsonObject = field(default_factory=dict)
    name: str = ""
    description: str = ""
    notes: tuple[str, ...] = ()


async def find_parameters(
    request: str, steps: Sequence[PlanStep], placeholders: Sequence[str], model: RecipeModel | None
) -> FoundParameters:
    """The parameters. `placeholders` stand for personal values: each that occurs becomes a parameter."""
    if model is None:
        return _add_placeholders(_find_by_rule(request, steps), steps, placeholders)
    try:
        parameters = _check_reply(await model.ask(_build_messages(request, steps)), steps)
    except (ModelError, BudgetError, ValidationError) as error:
        ruled = _find_by_rule(request, steps)
        why = error.message if isinstance(error, ModelError | BudgetError) else "its reply could not be read"
        note = f"the model gave no parameters ({why}); these are the inputs that the request names"
        parameters = FoundParameters(ruled.parameters, ruled.literals, ruled.others, notes=(note,))
    return _add_placeholders(parameters, steps, placeholders)


def make_slug(text: str) -> str:
    """A text as the name of a recipe; "" if nothing of it is allowed in one."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _NAME_PART.sub("-", plain).strip("-")[:MAX_NAME_CHARS].strip("-")


def insert_parameters(value: JsonValue, literals: Mapping[str, JsonValue]) -> JsonValue:
    """A value of a step with its literals replaced by parameters, longest first."""
    if isinstance(value, list):
        return [insert_parameters(item, literals) for item in value]
    if isinstance(value, dict):
        if "$from" in value:
            return value
        if is_literal(value):
            inner = insert_parameters(value["$literal"], literals)
            return inner if isinstance(inner, dict) else {"$literal": inner}
        return {key: insert_parameters(item, literals) for key, item in value.items()}
    for name, literal in literals.items():
        if value == literal and type(value) is type(literal):
            return {PARAMETER_KEY: name}
    return insert_fields(value, literals) if isinstance(value, str) else value


def insert_fields(text: str, literals: Mapping[str, JsonValue]) -> str:
    """A text with the literals in it replaced by `{{name}}`, whole words only."""
    named = {write_text(literal): name for name, literal in literals.items() if not isinstance(literal, bool)}
    words = sorted((word for word in named if word), key=len, reverse=True)
    if not words:
        return text
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words))
    return pattern.sub(lambda match: "{{" + named[match[0]] + "}}", text)


def _find_by_rule(request: str, steps: Sequence[PlanStep]) -> FoundParameters:
    """The whole inputs that the request contains word for word."""
    parameters: list[RecipeParameter] = []
    literals: dict[str, JsonValue] = {}
    others: JsonObject = {}
    for key, value in _iter_inputs(steps):
        if isinstance(value, bool) or value in literals.values() or not _is_named(request, value):
            continue
        if len(parameters) >= MAX_PARAMETERS:
            break
        name = _choose_name(key, literals)
        kind: ParameterType = "text"
        if isinstance(value, int | float):
            kind = "integer" if isinstance(value, int) else "number"
            others[name] = value + 1
        literals[name] = value
        parameters.append(RecipeParameter(name=name, type=kind, description=key.replace("_", " "), example=value))
    return FoundParameters(tuple(parameters), literals, others)


def _is_named(request: str, value: JsonValue) -> bool:
    text = write_text(value)
    if isinstance(value, str) and (len(text) < SHORTEST_TEXT or find_references(value)):
        return False
    return bool(text) and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", request) is not None


def _check_reply(text: str, steps: Sequence[PlanStep]) -> FoundParameters:
    """What a model found, without values that no input contains. Raises `ValidationError`."""
    start, end = text.find("{"), text.rfind("}")
    reply = _Reply.model_validate_json(text[start : end + 1] if 0 <= start < end else text)
    inputs = [value for _, value in _iter_inputs(steps)]
    parameters: list[RecipeParameter] = []
    literals: dict[str, JsonValue] = {}
    others: JsonObject = {}
    notes: list[str] = []
    for parameter in reply.parameters:
        literal = _find_literal(parameter.value, inputs)
        if literal is None or literal in literals.values():
            notes.append(
                f"{parameter.name} stays fixed: {write_text(parameter.value)[:100]!r} is in no input of a step"
            )
            continue
        name = _choose_name(parameter.name, literals)
        literals[name] = literal
        kind = _fit_type(parameter.type, literal)
        parameters.append(
            RecipeParameter(name=name, type=kind, description=parameter.description[:500], example=literal)
        )
        if parameter.other not in (None, "", literal):
            others[name] = parameter.other
    return FoundParameters(tuple(parameters), literals, others, reply.name, reply.description.strip(), tuple(notes))


def _find_literal(value: JsonValue, inputs: Sequence[JsonValue]) -> JsonValue:
    """The input that equals a value, in its own type, or the value if it is a part of a text; else None."""
    text = write_text(value)
    if not text:
        return None
    whole = next((one for one in inputs if not isinstance(one, bool) and write_text(one) == text), None)
    if whole is not None:
        return whole
    part = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    return text if any(isinstance(one, str) and part.search(one) for one in inputs) else None


def _fit_type(kind: ParameterType, literal: JsonValue) -> ParameterType:
    """The type of a parameter; one that its own value does not have is replaced."""
    if isinstance(literal, str):
        fits = kind == "text" or (kind in ("number", "integer") and _NUMBER.fullmatch(literal) is not None)
        return kind if fits else "text"
    return "integer" if isinstance(literal, int) and kind != "number" else "number"


def _add_placeholders(
    found: FoundParameters, steps: Sequence[PlanStep], placeholders: Sequence[str]
) -> FoundParameters:
    """Adds a parameter for each personal value in the steps. A recipe stores no such value."""
    literals = dict(found.literals)
    parameters = [
        one.model_copy(update={"example": None, "required": True}) if literals[one.name] in placeholders else one
        for one in found.parameters
    ]
    texts = [value for _, value in _iter_inputs(steps) if isinstance(value, str)]
    for placeholder in placeholders:
        if placeholder in literals.values() or not any(placeholder in text for text in texts):
            continue
        name = _choose_name(placeholder.strip("<>").rstrip("_0123456789"), literals)
        literals[name] = placeholder
        parameters.append(RecipeParameter(name=name, description="a value that models do not see"))
    return FoundParameters(tuple(parameters), literals, found.others, found.name, found.description, found.notes)


def _iter_inputs(steps: Sequence[PlanStep]) -> Iterator[tuple[str, JsonValue]]:
    """Yields every scalar input with the name it stands under. References are none."""
    for step in steps:
        for key, value in step.args.items():
            yield from _iter_scalars(key, value)


def _iter_scalars(key: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, list):
        for item in value:
            yield from _iter_scalars(key, item)
    elif isinstance(value, dict):
        if is_literal(value):
            yield key, value["$literal"]
        elif "$from" not in value:
            for name, item in value.items():
                yield from _iter_scalars(name, item)
    elif value is not None:
        yield key, value


def _choose_name(wanted: str, taken: Mapping[str, JsonValue]) -> str:
    """A valid parameter name that is not taken."""
    base = make_slug(wanted).replace("-", "_")[:28].strip("_") or "value"
    base = base if base[0].isalpha() else f"value_{base}"[:28]
    return next(name for name in (base, *(f"{base}_{n}" for n in range(2, 100))) if name not in taken)


def _build_messages(request: str, steps: Sequence[PlanStep]) -> tuple[JsonObject, ...]:
    lines = [
        json.dumps({"id": step.id, "tool": step.tool, "inputs": step.args}, ensure_ascii=False)
        for step in steps
        if step.is_work
    ]
    prompt_text = "\n".join(
        (
            format_block("user_request", request[:MAX_PROMPT_CHARS]),
            format_block("data", "\n".join(lines)[:MAX_PROMPT_CHARS], name="steps"),
        )
    )
    return ({"role": "system", "content": render("recipe_parameters")}, {"role": "user", "content": prompt_text})
