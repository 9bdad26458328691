"""Raised figures: "10" with a raised "3" is 10³, not 103, and "m" with a raised "2" is m²; the mark of a note makes
neither a figure nor a word longer. Lowered figures: "log" with a lowered "2" before 8 is log₂8."""

import re
import unicodedata

RAISED_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
RAISED = f"{RAISED_DIGITS}⁺⁻"
_RAISED = str.maketrans("0123456789+-−()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")  # noqa: RUF001 - the minus sign is meant
_LOWERED = str.maketrans(RAISED, "0123456789+-")
_SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SLASHES = ("/", "\u2044")
_FRACTION = re.compile(rf"(\S?)([{RAISED_DIGITS}]+)\s?[/\u2044]\s?([₀-₉]+)")
_SLASHED = re.compile(r"(?<=[/\u2044])\s?[₀-₉]+")
RAISED_SIGNS = frozenset("0123456789+-−()")  # noqa: RUF001 - as above


def raise_figures(before: str, text: str) -> str:
    """A raised text as superscript characters if it follows a character and is a figure itself, else as it is.

    Behind a space it may be the upper part of a fraction.
    """
    inner = text.strip()
    if before[-1:].strip() and inner and RAISED_SIGNS.issuperset(inner) and any(map(str.isdigit, inner)):
        return text.translate(_RAISED)
    return text


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
