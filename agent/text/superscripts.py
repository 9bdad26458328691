"""Raised figures: "10" with a raised "3" is 10³, not 103, and "m" with a raised "2" is m²; the mark of a note makes
neither a figure nor a word longer. Lowered figures: "log" with a lowered "2" before 8 is log₂8.

Readers say how far a text is raised: above 0 it is, below 0 it is lowered."""

import re
import unicodedata

RAISED_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
RAISED = f"{RAISED_DIGITS}⁺⁻"
_RAISED = str.maketrans("0123456789+-−()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")  # noqa: RUF001 - the minus sign is meant
_RAISED_FIGURES = str.maketrans("0123456789", RAISED_DIGITS)
_LOWERED = str.maketrans(RAISED, "0123456789+-")
_SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SLASHES = ("/", "\u2044")
_FRACTION = re.compile(rf"(?<![{RAISED_DIGITS}])([^\s{RAISED_DIGITS}]?)([{RAISED_DIGITS}]++)\s?[/\u2044]\s?([₀-₉]+)")
_SLASHED = re.compile(r"(?<=[/\u2044])\s?[₀-₉]+")
_FIRST_FIGURES = re.compile(r"\A(?:[\W\d]|(?<=\d)[^\W\d](?![^\W\d]))+")
_LAST_FIGURES = re.compile(r"[\W\d]+")
"""Figures at an edge of a text, before its words or, backwards, behind them. A letter may follow each of the first."""
RAISED_SIGNS = frozenset("0123456789+-−()")  # noqa: RUF001 - as above
RISES = {"superscript": 1, "subscript": -1}
"""How far a text is raised by what Office files say of it (ECMA-376 part 1, 22.9.2.17)."""


def write_moved(rise: float, before: str, text: str, after: str) -> str:
    """A raised or lowered figure as such between what is before and after it; any other text as it is."""
    if rise > 0:
        return raise_figures(before, text, after)
    return write_lowered(before, text, after) if rise < 0 else text


def raise_figures(before: str, text: str, after: str = "") -> str:
    """A raised text as superscript characters if it is a figure behind a character, else as it is.

    Behind a space it may be the upper part of a fraction. In other texts, and before a figure, the figures are raised
    that would join others: in the marks of notes "1, 2" and "1a", but not the years of a sentence.
    """
    inner = text.strip()
    is_behind = before[-1:].strip()
    if not is_behind and after[:1].isdigit() and inner[-1:].isdigit():
        return f"{_raise_last(text)} "
    if is_behind and inner and RAISED_SIGNS.issuperset(inner) and any(map(str.isdigit, inner)):
        return text.translate(_RAISED)
    return _FIRST_FIGURES.sub(_raise_match, text) if before[-1:].isdigit() and inner[:1].isdigit() else text


def _raise_last(text: str) -> str:
    match = _LAST_FIGURES.match(text[::-1])
    start = len(text) - (match.end() if match is not None else 0)
    return text[:start] + text[start:].translate(_RAISED_FIGURES)


def _raise_match(match: re.Match[str]) -> str:
    return match[0].translate(_RAISED_FIGURES)


def write_lowered(before: str, text: str, after: str) -> str:
    """A lowered figure as subscript characters where it would be part of another one, or of a fraction."""
    inner = text.strip()
    is_beside = before[-1:].isdigit() or after[:1].isdigit() or before.rstrip()[-1:] in _SLASHES
    return text.translate(_SUBSCRIPT) if is_beside and inner.isdecimal() else text


def write_fractions(text: str) -> str:
    """A text with its raised and lowered figures beside a slash as fractions: "1 1/2"."""
    if not _SLASHED.search(text):
        return text
    text = _FRACTION.sub(lambda match: f"{match[1]} ".lstrip() + f"{lower_figures(match[2])}/{match[3]}", text)
    return _SLASHED.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


def lower_figures(text: str) -> str:
    """A text with plain figures in place of raised ones."""
    return text.translate(_LOWERED)
