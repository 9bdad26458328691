"""Reads texts that are JSON: most tools of other servers return their objects and lists as text."""

import json

from pydantic import JsonValue


def read_json_text(value: JsonValue) -> JsonValue:
    """The object or the list that a text is as JSON; any other value unchanged.

    A text such as `12` or `null` stays a text: nothing says that it is meant as JSON.
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        read: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read
