"""Sanitizes text of external servers: a model must not read what a person cannot see.

Removes HTML comments, terminal escape sequences, zero-width and direction-changing characters and Unicode tags from
descriptions, also inside schemas. Names and values of a schema cannot be changed; if one hides characters, the tool is
not used. `escape_invisible` shows everything to the person who reviews a tool.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from agent.core.json_walk import iter_texts
from agent.core.models import JsonObject
from agent.policy.guardrails import RevealedText, strip_invisible

_COMMENT: Final = re.compile(r"<!--.*?(?:--!?>|\Z)", re.DOTALL)
_ESCAPE_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, movements, erasing (ECMA-48, 5.4)
    # OSC, DCS and other strings; another escape sequence ends one too, as terminals read it, so that each begins to be
    # read once
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*+(?:\x07|\x1b\\|\x9c|(?=\x1b)|\Z)"
    r"|\x1b[ -/]*[0-~]"
)
"""Whole escape sequences: removing only the escape character would leave `[31m` in the text."""
_MAX_PASSES: Final = 8
"""Removing a part can join a comment that it had split, so it is repeated; text that still changes is rejected."""
_TEXT_KEYWORDS: Final = frozenset(("title", "description", "$comment", "default", "examples"))
"""Annotation keywords of JSON Schema, which are only read (2020-12, Validation, 9)."""
_MAX_NAMES: Final = 10
"""The most names in one line."""
_NAME_KEYWORDS: Final = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""Keywords whose keys are all names, even if one looks like a keyword."""


def sanitize_text(text: str) -> RevealedText:
    """The visible text, and each part that was removed."""
    hidden: list[str] = []

    def remove(match: re.Match[str]) -> str:
        hidden.append(match[0])
        return ""

    for _ in range(_MAX_PASSES):
        before = text
        text = _COMMENT.sub(remove, _ESCAPE_SEQUENCE.sub(remove, text))
        visible_text = strip_invisible(text)
        hidden += visible_text.hidden
        text = visible_text.text
        if text == before:
            return RevealedText(text.strip(), tuple(hidden))
    return RevealedText("", (*hidden, text))


def sanitize_schema(schema: Mapping[str, Any], clean: Callable[[str], str] | None = None) -> JsonObject:
    """The schema with sanitized texts, each passed through `clean`; names and values are unchanged. Raises
    `RecursionError` if it is too deep."""
    return {key: _sanitize_keyword(key, value, clean or _get_visible_text) for key, value in schema.items()}


def _get_visible_text(text: str) -> str:
    return sanitize_text(text).text


def _sanitize_keyword(key: str, value: Any, clean: Callable[[str], str]) -> Any:
    if key in _TEXT_KEYWORDS:
        return _sanitize_value(value, clean)
    if key in _NAME_KEYWORDS and isinstance(value, Mapping):
        return {name: _sanitize_node(sub, clean) for name, sub in value.items()}
    return _sanitize_node(value, clean)


def _sanitize_node(node: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(node, list):
        return [_sanitize_node(item, clean) for item in node]
    return sanitize_schema(node, clean) if isinstance(node, Mapping) else node


def _sanitize_value(value: Any, clean: Callable[[str], str]) -> Any:
    """Sanitizes every text of a value that is only read."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_sanitize_value(item, clean) for item in value]
    return {key: _sanitize_value(item, clean) for key, item in value.items()} if isinstance(value, Mapping) else value


def find_hidden_characters(schema: Mapping[str, Any] | None) -> str | None:
    """Describes what is wrong with a sanitized schema whose names or values hide characters; None if nothing is."""
    for text in iter_texts(schema):
        if "\x1b" in text or strip_invisible(text).hidden:
            return f"its schema hides characters in the name or value {escape_invisible(text)[:100]!r}"
    return None


def escape_invisible(text: str) -> str:
    """One line for a terminal, with invisible and control characters as `\\u{code}`."""
    return "".join(char if _is_visible(char) else f"\\u{{{ord(char):04x}}}" for char in text)


def format_names(names: Iterable[str]) -> str:
    """A few of the names in one escaped line, and how many more there are."""
    shown_names = [escape_invisible(name)[:64] for name in sorted(names)]
    more = f" and {len(shown_names) - _MAX_NAMES} more" if len(shown_names) > _MAX_NAMES else ""
    return ", ".join(shown_names[:_MAX_NAMES]) + more


def _is_visible(char: str) -> bool:
    if not char.isprintable():
        return False
    return char.isascii() or bool(strip_invisible(char).text)
