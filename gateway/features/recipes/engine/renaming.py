"""Renames the parameters of a recipe, as the person who confirms it wishes."""

import json
import re
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from agent.core.errors import BadRequestError
from gateway.features.recipes.engine.model import PARAMETER_PATTERN, Recipe

PARAMETER_KEY: Final = "$param"
"""Replaces the whole of a value in a step: `{"$param": name}`."""
FIELD: Final = re.compile(r"\{\{([a-z][a-z0-9_]{0,31})\}\}")
"""Replaces a parameter in a text: `{{name}}`."""


def rename_parameters(recipe: Recipe, names: Mapping[str, str]) -> Recipe:
    """The recipe with parameters under new names; `names` maps old ones to new ones. Two may be exchanged.

    Raises `BadRequestError` for an unknown parameter, a bad name, one that is taken, and one that the plan contains as
    plain text.
    """
    parameter_names = [one.name for one in recipe.parameters]
    for old, new in names.items():
        if old not in parameter_names:
            raise BadRequestError(
                f"there is no parameter {old[:50]!r}; there are {', '.join(parameter_names) or 'none'}", param="rename"
            )
        if not re.fullmatch(PARAMETER_PATTERN, new):
            message = f"{new[:50]!r} is not a parameter name: use a letter a to z, then letters, digits, underscores"
            raise BadRequestError(f"{message}; at most 32", param="rename")
    renamed = [names.get(name, name) for name in parameter_names]
    if duplicate := next((name for name in renamed if renamed.count(name) > 1), None):
        raise BadRequestError(f"two parameters would be named {duplicate!r}", param="rename")
    content = recipe.model_dump(mode="json")
    texts = set(FIELD.findall(json.dumps(content, ensure_ascii=False)))
    if text := next((name for name in renamed if name not in parameter_names and name in texts), None):
        raise BadRequestError(f"{{{{{text}}}}} is in the plan as text; choose another name", param="rename")
    changed = {key: _rename(content[key], names) for key in ("request", "goal", "description", "steps")}
    trials = [
        {**trial, "values": {names.get(name, name): value for name, value in trial["values"].items()}}
        for trial in content["trials"]
    ]
    parameters = [{**one, "name": names.get(one["name"], one["name"])} for one in content["parameters"]]
    return Recipe.model_validate({**content, **changed, "trials": trials, "parameters": parameters})


def _rename(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    if isinstance(value, list):
        return [_rename(item, names) for item in value]
    if isinstance(value, dict):
        if list(value) == [PARAMETER_KEY]:
            name = str(value[PARAMETER_KEY])
            return {PARAMETER_KEY: names.get(name, name)}
        return {key: _rename(item, names) for key, item in value.items()}
    if isinstance(value, str):
        return FIELD.sub(lambda match: f"{{{{{names.get(match[1], match[1])}}}}}", value)
    return value
