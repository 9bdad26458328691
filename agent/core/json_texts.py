"""Texts that are JSON: most tools of other servers return their objects and lists as text."""

import json
import math
from typing import NoReturn

from pydantic import JsonValue

MAX_DEPTH = 100
"""Levels of nested JSON that are read. Models of values fail beyond 250, and no tool means so many."""


def read_json_text(value: JsonValue) -> JsonValue:
    """The object or the list that a text is as JSON; any other value unchanged, as is what `load_json` refuses.

    A text such as `12` or `null` stays a text: nothing says that it is meant as JSON.
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return load_json(value)
    except ValueError:
        return value


def write_text(value: object) -> str:
    """A text as it is; any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def load_json(text: str) -> JsonValue:
    """The value of a JSON text. Raises `ValueError` also for numbers that JSON has not, such as `NaN` and `1e999`, and
    for more than `MAX_DEPTH` levels."""
    try:
        value: JsonValue = json.loads(text, parse_constant=_refuse_number, parse_float=_read_finite)
    except RecursionError as error:
        raise ValueError("too many levels") from error
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for one in level for child in _list_children(one)]
        if not level:
            return value
    raise ValueError("too many levels")


def _list_children(value: JsonValue) -> list[JsonValue]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return list(children)


def _refuse_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _read_finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)
