"""Entries of other clients' files of MCP servers, in our keys: where names, units and types differ."""

import json
import re
from collections.abc import Mapping
from typing import Any

MAX_LIMIT_S = 3600
"""The longest time limit, in seconds. Larger numbers are milliseconds, as several clients write them."""
_URL_KEYS = ("url", "serverUrl", "httpUrl")
_CALL_LIMITS = {"timeout": 1, "tool_timeout_sec": 1}
_START_LIMITS = {"startup_timeout": 1, "startupTimeout": 1, "startup_timeout_sec": 1, "startup_timeout_ms": 1000}
"""The keys of the time limits, and how many of their units make a second."""
_PLACEHOLDER = re.compile(r"\$\{(?:[A-Za-z]+:)?[A-Za-z][A-Za-z0-9_.-]*\}")
"""A variable of a client, such as `${input:api-key}`; other expansions of a shell have other forms."""


def convert_entry(data: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with its address under `url`, its limits in seconds under `timeout` and `startup_timeout`, and texts in
    `env`, `headers` and `args`. Values that cannot be converted stay, and are refused by name later."""
    entry = {key: value for key, value in data.items() if key not in {*_URL_KEYS, *_CALL_LIMITS, *_START_LIMITS}}
    entry["url"] = next((data[key] for key in _URL_KEYS if data.get(key)), "")
    for name, keys in (("timeout", _CALL_LIMITS), ("startup_timeout", _START_LIMITS)):
        if (key := next((key for key in keys if data.get(key) is not None), None)) is not None:
            entry[name] = _to_seconds(data[key], keys[key])
    for key in ("env", "headers"):
        if isinstance(data.get(key), dict):
            entry[key] = {name: _to_text(value) for name, value in data[key].items() if value is not None}
    if isinstance(data.get("args"), list):
        entry["args"] = [_to_text(value) for value in data["args"]]
    return entry


def find_placeholder(value: Any) -> str | None:
    """The first variable in an entry that was not replaced; None without one."""
    if isinstance(value, str):
        match = _PLACEHOLDER.search(value)
        return match[0] if match is not None else None
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(find_placeholder, items)), None)


def _to_seconds(value: Any, unit: int) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    seconds = value / unit
    return seconds / 1000 if seconds > MAX_LIMIT_S else seconds


def _to_text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | int | float) else value
