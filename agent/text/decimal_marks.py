"""Decides what a number such as `8,321` means: 8321 in an English sentence, 8.321 in a German one.

The language of the number's own sentence decides, then the other numbers of the sentence, then, for an answer, the rest
of the text. Numbers of JSON have decimal points.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from agent.text.numbers import NumberMention
from agent.text.stop_words import detect_candidate_languages

_Mention = TypeVar("_Mention")
_SEGMENT_END = re.compile(r"\n|[.!?](?=\s)")
_JSON_VALUE = re.compile(r"(?:\"\s*:|^\s*[\[,;]|[\[,;]\s)\s*-?$")
_JSON_END = re.compile(r"\s*(?:[,;}\]]|$)")
_DIGITS = re.compile(r"\d[\d.,'\u2019\u066b\u066c \u00a0\u2007\u2009\u202f]*(?<=\d)")
_RATE = re.compile(r"\bper\b", re.IGNORECASE)
"""Italian, but before a unit in every language."""
_MAX_SEGMENT = 600
"""Characters on each side of a number that are searched for the ends of its sentence."""


def get_digits(written: str) -> str:
    """The digits of a number with their separators, without sign, unit and scale."""
    match = _DIGITS.search(written)
    return match[0] if match is not None else ""


def settle_readings(text: str, mentions: Sequence[_Mention], *, use_whole_text: bool = False) -> list[_Mention]:
    """The mentions of a text; a number with two readings with the one of its sentence, if that is known.

    With `use_whole_text`, the language and the other numbers of the whole text decide where the sentence does not."""
    open_numbers = [one for one in mentions if _is_open(one)]
    if not open_numbers:
        return list(mentions)
    reader = _MarkReader(text, mentions, use_whole_text=use_whole_text)
    return [reader.settle(one) if _is_open(one) else one for one in mentions]


class _MarkReader:
    """The decimal marks of the sentences of one text."""

    def __init__(self, text: str, mentions: Sequence[object], *, use_whole_text: bool) -> None:
        self._text = text
        self._numbers = [one for one in mentions if isinstance(one, NumberMention)]
        self._use_whole_text = use_whole_text
        self._by_span: dict[tuple[int, int], str] = {}

    def settle(self, mention: _Mention) -> _Mention:
        assert isinstance(mention, NumberMention)
        mark = self._find_mark(mention)
        written = re.search(r"\d([.,])\d{3}(?!\d)", mention.text)
        if not mark and mention.unit is not None and mention.unit.dimension == "%":  # nobody has 99,987 %
            return replace(mention, readings=(min(mention.readings, key=lambda one: abs(one.value)),))
        if not mark or written is None:
            return mention
        # The first reading takes the separator for one of thousands, the second for a decimal mark.
        reading = mention.readings[1 if written[1] == mark else 0]
        return replace(mention, readings=(reading,))

    def _find_mark(self, mention: NumberMention) -> str:
        if _is_json_value(self._text, mention):
            return "."
        start, end = _find_segment(self._text, mention.start, mention.end)
        if (start, end) not in self._by_span:
            self._by_span[start, end] = self._read_segment(start, end)
        return self._by_span[start, end]

    def _read_segment(self, start: int, end: int) -> str:
        mark = _get_mark_of_language(self._text[start:end]) or self._get_mark_of_numbers(start, end)
        if mark or not self._use_whole_text:
            return mark
        return _get_mark_of_language(self._text) or self._get_mark_of_numbers(0, len(self._text))

    def _get_mark_of_numbers(self, start: int, end: int) -> str:
        """The decimal mark that the unambiguous numbers of a span agree on."""
        marks = {
            mark
            for number in self._numbers
            if start <= number.start < end and len(number.readings) == 1
            for mark in _iter_certain_marks(get_digits(number.text))
        }
        return marks.pop() if len(marks) == 1 else ""


def _is_open(mention: object) -> bool:
    return isinstance(mention, NumberMention) and len(mention.readings) > 1


def _is_json_value(text: str, mention: NumberMention) -> bool:
    """Whether a number is a value of JSON, which has no separators of thousands."""
    before = text[max(0, mention.start - 12) : mention.start]
    is_quoted_key = bool(re.search(r"\"\s*:\s*-?$", before))
    return (is_quoted_key or bool(_JSON_VALUE.search(before))) and (
        _JSON_END.match(text, mention.end) is not None and (is_quoted_key or "." in mention.text)
    )


def _find_segment(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of the sentence, or of the line, that a number is in."""
    first = max(0, start - _MAX_SEGMENT)
    ends = [match.end() for match in _SEGMENT_END.finditer(text, first, start)]
    after = _SEGMENT_END.search(text, end, end + _MAX_SEGMENT)
    return (ends[-1] if ends else first), (after.start() if after is not None else min(len(text), end + _MAX_SEGMENT))


def _get_mark_of_language(text: str) -> str:
    """The decimal mark of the languages that a text can be in; empty if they disagree or none is known."""
    candidates = detect_candidate_languages(_RATE.sub(" ", text))
    if not candidates or len(candidates) > 10:
        return ""
    marks = {"." if language == "en" else "," for language in candidates}
    return marks.pop() if len(marks) == 1 else ""


def _iter_certain_marks(digits: str) -> Iterator[str]:
    """Yields the decimal mark that a number shows for certain: `1.234,5` and `2,75` a comma, `1,234,567` a point."""
    marks = re.findall(r"[.,]", digits)
    tail = re.search(r"[.,](\d+)$", digits)
    if not marks or tail is None:
        return
    if marks.count(marks[-1]) > 1:
        yield "." if marks[-1] == "," else ","
    elif len(tail[1]) != 3 or len(set(marks)) == 2:
        yield marks[-1]
