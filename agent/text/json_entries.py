"""The entries of a list that a tool returned as JSON text.

One list, the longest one of an object, or several values one after the other, as many servers print a list.
"""

import json
from dataclasses import dataclass

from pydantic import JsonValue

MAX_ENTRIES = 5_000
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class JsonEntries:
    """The entries, and what stands beside their list, if that is one field of an object."""

    entries: tuple[JsonValue, ...]
    beside: JsonValue = None


def read_json_entries(text: str) -> JsonEntries | None:
    """The entries of a JSON text; None for other texts, for a single value and for more than `MAX_ENTRIES` values."""
    values = read_json_values(text)
    if len(values) != 1:
        return JsonEntries(tuple(values)) if values else None
    whole = values[0]
    if isinstance(whole, list):
        return JsonEntries(tuple(whole))
    if not isinstance(whole, dict):
        return None
    lists = {name: value for name, value in whole.items() if isinstance(value, list)}
    if not lists:
        return None
    longest = max(lists, key=lambda name: len(lists[name]))
    others = {name: value for name, value in whole.items() if name != longest}
    return JsonEntries(tuple(lists[longest]), others or None)


def list_json_objects(text: str) -> list[dict[str, JsonValue]]:
    """The objects among the entries of a JSON text, or the one that it is; empty for other texts."""
    listed = read_json_entries(text)
    things = list(listed.entries) if listed is not None else read_json_values(text)
    return [one for one in things if isinstance(one, dict)]


def read_json_values(text: str) -> list[JsonValue]:
    """The JSON values of a text that holds nothing else, one after the other; empty for other texts."""
    values: list[JsonValue] = []
    at = 0
    if not text.lstrip().startswith(("[", "{")):
        return []
    while at < len(text) and len(values) <= MAX_ENTRIES:
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        values.append(value)
    return values if len(values) <= MAX_ENTRIES else []
