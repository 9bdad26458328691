"""Decades, centuries and weeks that an answer names after a date of its evidence: the 1990s, 90er-Jahre, KW 11."""

import re
from datetime import date
from decimal import Decimal

from agent.text.values import KnownValues

_PERIOD = re.compile(
    r"(?P<century>\d{1,2})(?:st|nd|rd|th|[.]|:?e)?[ \u00a0](?:century|jahrhunderts?|århundradet|seklet|siècle|secolo)\b"
    r"|['\u2019]?(?P<start>\d{2}|\d{4})(?:['\u2019]?s\b|er\b|-?tal(?:et|s)?\b)",
    re.IGNORECASE,
)
_FRENCH = re.compile(r"\bannées[ \u00a0]$", re.IGNORECASE)
_WEEK_BEFORE = re.compile(r"\b(?:weeks?|kw|kalenderwochen?|vecka|veckorna|v\.|semaine|sem\.)[ \u00a0]?$", re.IGNORECASE)
_WEEK = re.compile(
    r"(?P<week>\d{1,2})(?![\d.,]\d)(?P<after>(?:\.|st|nd|rd|th|e)?[ \u00a0](?:kw|kalenderwoche)\b)?", re.IGNORECASE
)
_DECADE, _CENTURY = 10, 100


def names_known_period(text: str, start: int, known: KnownValues) -> bool:
    """Whether the number at `start` names a decade or a century that holds a known year, or the week of a known day."""
    if _names_known_week(text, start, known):
        return True
    match = _PERIOD.match(text, start)
    if match is not None and match["century"]:
        last = int(match["century"]) * _CENTURY
        return _has_year(known, last - _CENTURY, last + 1)
    digits = match["start"] if match is not None else _read_french(text, start)
    if not digits or not digits.endswith("0"):
        return False
    first = int(digits)
    if len(digits) == 2:
        return any(_has_year(known, century + first, century + first + _DECADE) for century in (1800, 1900, 2000))
    return _has_year(known, first, first + (_CENTURY if first % _CENTURY == 0 else _DECADE))


def _names_known_week(text: str, start: int, known: KnownValues) -> bool:
    week = _WEEK.match(text, start)
    if week is None or not (week["after"] or _WEEK_BEFORE.search(text, max(0, start - 16), start)):
        return False
    days = ((one.year, one.month, one.day) for one in known.dates if one.year is not None and one.day is not None)
    return any(date(year, month, day).isocalendar().week == int(week["week"]) for year, month, day in days)


def _read_french(text: str, start: int) -> str:
    """The digits of `années 90`."""
    digits = re.compile(r"\d{2}(?:\d{2})?(?!\d)").match(text, start)
    return digits[0] if digits is not None and _FRENCH.search(text, max(0, start - 8), start) else ""


def _has_year(known: KnownValues, first: int, end: int) -> bool:
    if known.has_between(Decimal(first), Decimal(end)):
        return True
    return any(one.year is not None and first <= one.year < end for one in known.dates)
