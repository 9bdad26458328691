"""Says in plain words what Pydantic finds wrong with values that people write: rooms, prompts, servers."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

_EXPECTED: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "tuple": "a list",
    "list": "a list",
    "dict": "a map of names and values",
    "mapping": "a map of names and values",
    "model": "a map of names and values",
    "date": "a date such as 2026-11-23",
    "datetime": "a date and time such as 2026-11-23T09:30:00Z",
}
"""What to write, by the first word of Pydantic's error type, such as `int_parsing` or `model_type`."""
_BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("at least {}", "ge"),
    "greater_than": ("more than {}", "gt"),
    "less_than_equal": ("at most {}", "le"),
    "less_than": ("less than {}", "lt"),
    "too_long": ("at most {} entries", "max_length"),
    "too_short": ("at least {} entries", "min_length"),
    "string_too_long": ("at most {} characters", "max_length"),
    "string_too_short": ("at least {} characters", "min_length"),
}
_SHOWN_CHARS = 60


def describe_faults(error: ValidationError) -> list[str]:
    """Returns a line for each wrong value: its field, what it is, and what may stand there."""
    faults = error.errors(include_url=False)
    named = ((".".join(str(part) for part in fault["loc"]), describe_fault(fault)) for fault in faults)
    return [f"{field}: {text}" if field else text for field, text in named]


def describe_fault(fault: Mapping[str, Any]) -> str:
    """Returns what is wrong with one value and what may stand there, without the name of its field.

    `fault` is an entry of Pydantic's `errors()`.
    """
    kind, context = str(fault["type"]), fault.get("ctx") or {}
    if kind == "missing":
        return "it is missing"
    if kind == "extra_forbidden":
        return "there is no such field"
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        limit = context.get(name)
        return f"it must be {words.format(f'{limit:g}' if isinstance(limit, float) else limit)}{_quote(fault)}"
    if kind in ("literal_error", "enum"):
        return f"use {context.get('expected')}{_quote(fault)}"
    expected = _EXPECTED.get(kind.partition("_")[0])
    if expected is not None and not kind.endswith("_mismatch"):
        return f"write {expected}{_quote(fault)}"
    return str(fault["msg"]).removeprefix("Value error, ")


def _quote(fault: Mapping[str, Any]) -> str:
    """Returns the refused value, if it is short and no container."""
    value = fault.get("input")
    if not isinstance(value, str | int | float) or len(str(value)) > _SHOWN_CHARS:
        return ""
    return f", not {json.dumps(value) if isinstance(value, bool) else repr(value)}"
