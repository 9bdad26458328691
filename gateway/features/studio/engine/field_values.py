"""Values of a room's fields that were written as text: by a router, by a command, by a model that quotes too much."""

import json
import re
from collections.abc import Sequence
from typing import Literal, get_args, get_origin

from pydantic import JsonValue

from agent.core.models import Room

_NAMES = re.compile(r"\[?\s*([\w.:/-]+(?:\s*,\s*[\w.:/-]+)*)\s*\]?")


def read_field_text(field: str, text: str) -> JsonValue:
    """The value of a field that a text writes: text for a text field, else what it is as JSON, and names with commas
    between them for a list. Text that is none of these stays as it is, so that the checks can name it.
    """
    if holds_text(field):
        return text
    spec = Room.model_fields.get(field)
    kind = spec.annotation if spec is not None else None
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        names = _NAMES.fullmatch(text.strip())
        return [one.strip() for one in names[1].split(",")] if names is not None and _takes_list(kind) else text
    return value


def holds_text(field: str) -> bool:
    """Whether a field of a room is a text."""
    spec = Room.model_fields.get(field)
    return spec is not None and spec.annotation in (str, str | None)


def holds_list(field: str) -> bool:
    """Whether a field of a room, named as in `room_edit`, is a list."""
    spec = Room.model_fields.get(field)
    return spec is not None and _takes_list(spec.annotation)


def allows_all(field: str) -> bool:
    """Whether a room allows everything as long as this list is not set."""
    return holds_list(field) and Room.model_fields[field].default is None


def change_list(before: Sequence[JsonValue], value: JsonValue, change: Literal["add", "remove"]) -> list[JsonValue]:
    """A list with entries added behind the others, each once, or without them."""
    entries = value if isinstance(value, list) else [value]
    if change == "remove":
        return [one for one in before if one not in entries]
    return [*before, *(one for one in entries if one not in before)]


def _takes_list(kind: object) -> bool:
    return get_origin(kind) in (tuple, list) or any(get_origin(one) in (tuple, list) for one in get_args(kind))
