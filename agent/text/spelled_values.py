"""Periods, years and fractions that a text names in words: `the eighties`, `åttiotalet`, `XIXe siècle`, `two thirds`.

The words are those of `number_words`, with the endings that each language puts to them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.text.number_words import NUMBER_WORDS, ORDINAL_WORDS, is_number_word, read_number_word

_DECADE, _CENTURY = 10, 100
_CENTURIES = (1700, 1800, 1900, 2000)
"""What a decade without its century may belong to."""
_TENS = ("twent", "thirt", "fort", "fift", "sixt", "sevent", "eight", "ninet")
_ROMAN = {"i": 1, "v": 5, "x": 10}
_WORD = r"[^\W\d_]{1,30}(?:-[^\W\d_]{1,30}){0,3}"
"""Bounded, so that a text of one endless word costs no more than others."""
_CENTURY_NOUN = r"(?:century|centuries|jahrhunderts?|århundradet|seklet|siècle|secolo|siglo)"
_PERIOD = re.compile(
    rf"""
    \bthe[ ](?:early[ ]|mid[- ]|late[ ])?(?P<decade>{"|".join(_TENS)})ies\b
    |\b(?P<swedish>[^\W\d_]{{1,30}}[oa])talet\b
    |\b(?P<german>[^\W\d_]{{1,30}}g)er[ -]?jahren?\b
    |\bannées[ ](?P<french>{_WORD})
    |\b(?P<roman>[ivx]{{1,5}})(?:e|ème|ᵉ)?[ ]{_CENTURY_NOUN}\b
    |\b(?P<ordinal>{_WORD}?)[ -]{_CENTURY_NOUN}\b
    |\b(?:siglo|secolo)[ ](?P<latin>[ivx]{{1,5}})\b
    |(?<!\bat[ ])\b(?P<head>seventeen|eighteen|nineteen|twenty)[ -]
     (?P<year>(?:{"|".join(_TENS)})y(?:-[a-z]{{1,9}})?|[a-z]{{1,9}}teen)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_MAX_PART = 12


def _build_parts() -> dict[str, int]:
    """The denominators by name: 8 for `eighth`, `eighths`, `Achtel`, `åttondel`, `huitième`."""
    parts = {"third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "drittel": 3, "tredjedel": 3, "fjärdedel": 4,
             "tiers": 3, "quart": 4, "quarts": 4}  # fmt: skip
    for word, number in ORDINAL_WORDS.items():
        if number > _MAX_PART:
            continue
        if word.endswith(("th", "ième")):
            parts |= {word: number, f"{word}s": number}
        if word.endswith("te"):  # German, and Swedish
            parts |= {f"{word[:-1]}el": number, f"{word}del": number}
        if word.endswith("nde"):
            parts[f"{word[:-2]}del"] = number
    swedish = [word for word in parts if word.endswith("del")]
    return parts | {word + ending: parts[word] for word in swedish for ending in ("ar", "en", "arna")}


_PARTS = _build_parts()
_ONES = frozenset(("a", "one", "en", "ein", "eine", "einem", "un"))
_COUNTS = {word: int(number) for word, number in NUMBER_WORDS.items() if word not in ORDINAL_WORDS and 1 < number < 12}
_COUNTS |= dict.fromkeys(_ONES, 1)
_FRACTION = re.compile(
    rf"\b(?P<count>{'|'.join(_COUNTS)})"
    rf"(?:[ -](?P<part>{'|'.join(_PARTS)})\b(?!-)|[ ]in[ ](?P<whole>{'|'.join(_COUNTS)})\b)"
    r"(?P<of>[ ](?:of|de[s]?|du|d.)\b(?![ ](?:an?[ ])?(?:hour|heure)))?",
    re.IGNORECASE,
)
_UNLIKE_ORDINALS = ("el", "del", "delar", "delen", "delarna")
"""The endings of denominators that are not ordinals too: "a fifth of" differs from "a fifth person" by its "of"."""


@dataclass(frozen=True, slots=True)
class PeriodMention:
    """A period of years in words, where it stands: its years lie from the first up to, not including, the second of one
    of `spans`."""

    text: str
    start: int
    end: int
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FractionMention:
    """A fraction in words, where it stands; its value is between 0 and 1."""

    text: str
    start: int
    end: int
    value: float


SpelledMention = PeriodMention | FractionMention


def find_spelled_values(text: str) -> list[SpelledMention]:
    """The periods and fractions in words, in order."""
    return sorted((*_iter_periods(text), *_iter_fractions(text)), key=lambda one: one.start)


def _iter_periods(text: str) -> Iterator[PeriodMention]:
    for match in _PERIOD.finditer(text):
        if spans := _read_spans(match):
            yield PeriodMention(match[0], match.start(), match.end(), spans)


def _read_spans(match: re.Match[str]) -> tuple[tuple[int, int], ...]:
    name, word = match.lastgroup or "", (match[match.lastgroup or 0] or "").lower()
    match name:
        case "decade":
            return _span_decade(10 * (_TENS.index(word) + 2))
        case "swedish" | "german" | "french":
            return _span_decade(_read_cardinal(word))
        case "roman" | "latin":
            return _span_century(_read_roman(word))
        case "ordinal":
            return _span_century(ORDINAL_WORDS.get(word, 0))
        case "year":
            year = 100 * _read_cardinal(match["head"].lower()) + _read_cardinal(word)
            return ((year, year + 1),)
    return ()


def _span_decade(number: int) -> tuple[tuple[int, int], ...]:
    """The years of a decade (80, 1980) or of the hundred years that begin with a number (1900)."""
    if number >= 1000 and number % _DECADE == 0:
        return ((number, number + (_DECADE if number % _CENTURY else _CENTURY)),)
    if 20 <= number < _CENTURY and number % _DECADE == 0:
        return tuple((century + number, century + number + _DECADE) for century in _CENTURIES)
    return ()


def _span_century(number: int) -> tuple[tuple[int, int], ...]:
    """The years of the n-th century. The first ten are left out: "first" and "V" are mostly other words."""
    return (((number - 1) * _CENTURY, number * _CENTURY + 1),) if number > 10 else ()


def _read_cardinal(word: str) -> int:
    if not is_number_word(word) and word.partition("-")[0] not in NUMBER_WORDS:
        return 0
    head = word.partition("-")[0]
    value, end = read_number_word(word, head if head in NUMBER_WORDS else word, len(head))
    return int(value) if end == len(word) else 0


def _read_roman(word: str) -> int:
    values = [_ROMAN[letter] for letter in word]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))


def _iter_fractions(text: str) -> Iterator[FractionMention]:
    for match in _FRACTION.finditer(text):
        count, part = _COUNTS[match["count"].lower()], (match["part"] or "").lower()
        if part:
            whole = _PARTS[part]
            is_sure = part.endswith(_UNLIKE_ORDINALS) or match["of"] or (part.endswith("s") and "quart" not in part)
        else:
            whole, is_sure = _COUNTS[match["whole"].lower()], match["count"].lower() == "one"
        if is_sure and count < whole:
            end = match.end("part") if part else match.end("whole")
            yield FractionMention(text[match.start() : end], match.start(), end, count / whole)
