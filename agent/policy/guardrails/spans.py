"""Spans of a text: how they are searched for, and their replacement."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic import JsonValue

_Location = tuple[dict[str, JsonValue] | list[JsonValue], str | int]


class Span(NamedTuple):
    """The span `text[start:end]` and the reason for it."""

    start: int
    end: int
    reason: str
    kind: str = ""
    """The kind, if it is narrower than that of the detector."""


PIECE_CHARS: Final = 50_000
"""Characters that a pattern searches at a time: it keeps Python's lock until it has found something."""
_LETTER: Final = re.compile(r"[^\W\d_]")
_DIGITS: Final = str.maketrans("123456789", "0" * 9)
"""Makes texts that differ in their digits alike."""
_MARGIN: Final = 500
"""Characters behind a match that a pattern may look at, its own included. Matches are shorter."""


def iter_matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yields the matches in a text of any length, without holding up other threads for longer than a piece takes.

    They are those of `pattern.finditer`, for patterns whose matches are shorter than `_MARGIN` and not empty.
    """
    at = 0
    while at < len(text):
        end = min(at + PIECE_CHARS, len(text))
        last_start = end if end == len(text) else end - _MARGIN
        following = last_start
        for match in pattern.finditer(text, at, end):
            if match.start() >= last_start:  # the next piece shows what stands behind it
                break
            yield match
            following = max(last_start, match.end())
        at = following


def has_words(pattern: re.Pattern[str], text: str, start: int, end: int) -> bool:
    """Whether a pattern matches in `text[start:end]`, a few words long, as `pattern.search` says.

    For patterns whose matches hold a letter and no digit, which are tried beside every number of a text: a table of
    numbers has no letters beside them, or the same words again and again.
    """
    first = max(0, start - 1)  # what stands before tells whether a word begins at `start`
    window = text[first:end]
    return _LETTER.search(window) is not None and _search_words(pattern, window.translate(_DIGITS), start - first)


@lru_cache(maxsize=4096)
def _search_words(pattern: re.Pattern[str], window: str, start: int) -> bool:
    return pattern.search(window, start) is not None


def replace_spans(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """The text with each `[start, end)` replaced.

    Of overlapping spans the first and longest is replaced, and the rest of the others is removed, so that no part of
    any of them stays.
    """
    parts: list[str] = []
    at = 0
    for start, end, instead in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= at:
            parts += [text[at:start], instead]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def map_json_texts(value: JsonValue, change: Callable[[str, str], str]) -> JsonValue:
    """A JSON tree with every text and name changed.

    `change` gets the text and the name it stands under (empty for names). Works iteratively, so deep trees are safe.
    """
    root: list[JsonValue] = [value]
    waiting: list[tuple[_Location, str]] = [((root, 0), "")]
    while waiting:
        (container, key), under = waiting.pop()
        current = container[key]  # type: ignore[index]
        changed_value: JsonValue
        if isinstance(current, str):
            changed_value = change(current, under)
        elif isinstance(current, dict):
            changed_value = {change(name, ""): part for name, part in current.items()}
            waiting += [((changed_value, changed), name) for changed, name in zip(changed_value, current, strict=False)]
        elif isinstance(current, list):
            changed_value = list(current)
            waiting += [((changed_value, number), under) for number in range(len(changed_value))]
        else:
            continue
        container[key] = changed_value  # type: ignore[index]
    return root[0]
