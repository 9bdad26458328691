"""Selects the valid fields of a foreign object, so that one bad field does not cost the rest of it."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import ValidationError

Validate = Callable[[dict[str, Any]], object]
"""Raises `ValidationError` for an object that cannot be used."""


def is_valid(value: dict[str, Any], validate: Validate) -> bool:
    """Whether `validate` accepts the object."""
    try:
        validate(value)
    except ValidationError:
        return False
    return True


def select_valid_fields(
    value: Mapping[str, Any], required: Collection[str], validate: Validate
) -> tuple[dict[str, Any] | None, list[str]]:
    """The object with the required fields and each other one that is valid beside them, and the names of the
    fields that are left out. The object is None if a required field is missing or invalid.
    """
    valid_fields = {name: value[name] for name in required if name in value}
    if not is_valid(valid_fields, validate):
        return None, []
    left_out: list[str] = []
    for name, field in value.items():
        if name in valid_fields:
            continue
        if is_valid({**valid_fields, name: field}, validate):
            valid_fields[name] = field
        else:
            left_out.append(name)
    return valid_fields, left_out
