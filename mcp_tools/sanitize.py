"""Foreign text made harmless: what people cannot see, models must not read.

Taken out of descriptions, also those inside schemas: comments of HTML, escape sequences of terminals, zero-width and
direction-changing characters, Unicode tags. Names and values of a schema mean something to the server and cannot be
changed: where one hides something, the tool is left out. `escaped` shows all of it to the person who reviews.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from agent.core.models import JsonObject
from agent.core.trees import texts_of
from agent.guardrails import Shown, without_invisible

_COMMENT: Final = re.compile(r"<!--.*?(?:--!?>|\Z)", re.DOTALL)
_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, movements, erasing (ECMA-48, 5.4)
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|\Z)"  # OSC, DCS and other strings
    r"|\x1b[ -/]*[0-~]"
)
"""Escape sequences whole: without the escape character, `[31m` would be left standing in the text."""
_LAYERS: Final = 8
"""What is taken out can leave a comment behind that was split by it: done again so often, then nothing is believed."""
_TEXTS: Final = frozenset(("title", "description", "$comment", "default", "examples"))
"""Keywords of JSON Schema that are there to be read (2020-12, Validation, 9)."""
_SHOWN: Final = 10
"""Names in one line."""
_NAMED: Final = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""Keywords under which every key is a name, also one that looks like a keyword."""


def cleaned(text: str) -> Shown:
    """The text as a model may read it, and each thing that was taken out of it."""
    hidden: list[str] = []

    def out(match: re.Match[str]) -> str:
        hidden.append(match[0])
        return ""

    for _ in range(_LAYERS):
        before = text
        text = _COMMENT.sub(out, _SEQUENCE.sub(out, text))
        shown = without_invisible(text)
        hidden += shown.hidden
        text = shown.text
        if text == before:
            return Shown(text.strip(), tuple(hidden))
    return Shown("", (*hidden, text))


def cleaned_schema(schema: Mapping[str, Any]) -> JsonObject:
    """The schema with its texts cleaned; names and values as they are. RecursionError for one that is too deep."""
    return {key: _cleaned_under(key, value) for key, value in schema.items()}


def _cleaned_under(key: str, value: Any) -> Any:
    if key in _TEXTS:
        return _cleaned_all(value)
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _cleaned_node(sub) for name, sub in value.items()}
    return _cleaned_node(value)


def _cleaned_node(node: Any) -> Any:
    if isinstance(node, list):
        return [_cleaned_node(item) for item in node]
    return cleaned_schema(node) if isinstance(node, Mapping) else node


def _cleaned_all(value: Any) -> Any:
    """Every text in a value that is only read."""
    if isinstance(value, str):
        return cleaned(value).text
    if isinstance(value, list):
        return [_cleaned_all(item) for item in value]
    return {key: _cleaned_all(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def hiding_problem(schema: Mapping[str, Any] | None) -> str | None:
    """What is wrong with a cleaned schema whose names or values hide something; None for a sound one."""
    for text in texts_of(schema):
        if "\x1b" in text or without_invisible(text).hidden:
            return f"its schema hides characters in the name or value {escaped(text)[:100]!r}"
    return None


def escaped(text: str) -> str:
    """One line for a terminal, with everything that cannot be seen, or that a terminal would obey, as `\\u{code}`."""
    return "".join(char if _is_seen(char) else f"\\u{{{ord(char):04x}}}" for char in text)


def names_of(names: Iterable[str]) -> str:
    """A few of these names in one line, as `escaped`, and how many more there are."""
    told = [escaped(name)[:64] for name in sorted(names)]
    more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return ", ".join(told[:_SHOWN]) + more


def _is_seen(char: str) -> bool:
    if not char.isprintable():
        return False
    return char.isascii() or bool(without_invisible(char).text)
