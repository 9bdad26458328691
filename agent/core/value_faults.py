"""Says in plain words what Pydantic finds wrong with values of people and models: the one wording of such errors.

It is in `core` because every layer reads such values: settings, credentials, rooms, pipelines, requests, plans.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

_EXPECTED: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "a text",
    "path": "a path",
    "url": "an address such as https://example.com",
    "tuple": "a list",
    "list": "a list",
    "set": "a list",
    "frozen": "a list",
    "dict": "a map of names and values",
    "mapping": "a map of names and values",
    "model": "a map of names and values",
    "date": "a date such as 2026-11-23",
    "datetime": "a date and time such as 2026-11-23T09:30:00Z",
}
"""The advice by the first word of Pydantic's error type, such as `int_parsing` or `model_type`."""
_BOUNDS: Mapping[str, tuple[str, str, str]] = {
    "greater_than_equal": ("be at least", "ge", ""),
    "greater_than": ("be more than", "gt", ""),
    "less_than_equal": ("be at most", "le", ""),
    "less_than": ("be less than", "lt", ""),
    "too_long": ("have at most", "max_length", "entries"),
    "too_short": ("have at least", "min_length", "entries"),
    "string_too_long": ("have at most", "max_length", "characters"),
    "string_too_short": ("have at least", "min_length", "characters"),
}
_ONE: Mapping[str, str] = {"entries": "entry", "characters": "character"}
_SHOWN_CHARS = 60


def describe_faults(error: ValidationError, *, quote: bool = True) -> list[str]:
    """A line for each wrong value: its field, what it is, and what may stand there.

    With `quote=False` no refused value is repeated: it may be a secret.
    """
    return [_name_fault(fault, "", quote=quote) for fault in error.errors(include_url=False)]


def describe_first_fault(error: ValidationError, whole: str = "", *, quote: bool = True) -> str:
    """The first line of `describe_faults`. `whole` names the value itself, for a fault of no single field."""
    return _name_fault(error.errors(include_url=False)[0], whole, quote=quote)


def describe_fault(fault: Mapping[str, Any], *, quote: bool = True) -> str:
    """Describes what is wrong with one value and what may stand there, without the name of its field.

    `fault` is an entry of Pydantic's `errors()`.
    """
    kind, context = str(fault["type"]), fault.get("ctx") or {}
    refused = _quote(fault) if quote else ""
    if kind == "missing":
        return "it is missing"
    if kind == "extra_forbidden":
        return "there is no such field"
    if kind in _BOUNDS:
        return f"it must {_format_bound(kind, context)}{refused}"
    if kind in ("literal_error", "enum"):
        return f"use {context.get('expected')}{refused}"
    if kind == "string_pattern_mismatch":
        return f"it must match the pattern {context.get('pattern')}{refused}"
    expected = _EXPECTED.get(kind.partition("_")[0])
    if expected is not None and not kind.endswith("_mismatch"):
        return f"write {expected}{refused}"
    return str(fault["msg"]).removeprefix("Value error, ")


def _name_fault(fault: Mapping[str, Any], whole: str, *, quote: bool) -> str:
    field = ".".join(str(part) for part in fault["loc"]) or whole
    text = describe_fault(fault, quote=quote)
    return f"{field}: {text}" if field else text


def _format_bound(kind: str, context: Mapping[str, Any]) -> str:
    words, name, unit = _BOUNDS[kind]
    limit = context.get(name)
    bound = f"{limit:g}" if isinstance(limit, float) else str(limit)
    return f"{words} {bound} {_ONE[unit] if unit and limit == 1 else unit}".rstrip()


def _quote(fault: Mapping[str, Any]) -> str:
    """The refused value, if it is short and no container."""
    value = fault.get("input")
    if not isinstance(value, str | int | float) or len(str(value)) > _SHOWN_CHARS:
        return ""
    return f", not {json.dumps(value) if isinstance(value, bool) else repr(value)}"
