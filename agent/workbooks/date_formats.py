"""Dates, times and spans of a workbook: serial numbers, and how a format shows them."""

import datetime as dt
import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from locale import windows_locale

from agent.workbooks.format_sections import Section, Token

_MAX_SERIAL = 2_958_465
"""The end of 9999."""
_DAY_MS = 86_400_000
_ERAS = (
    (dt.date(2019, 5, 1), ("R", "令", "令和")),
    (dt.date(1989, 1, 8), ("H", "平", "平成")),
    (dt.date(1926, 12, 25), ("S", "昭", "昭和")),
    (dt.date(1912, 7, 30), ("T", "大", "大正")),
    (dt.date(1868, 9, 8), ("M", "明", "明治")),
)
"""The eras of Japan, latest first: the first day, and the name in one letter, one sign and in full."""
_JAPANESE = 0x0411
"""The language in which `e` is a year of an era."""
_LEAP_BUG = 60
"""Excel counts 29 February 1900, which there never was, as day 60."""


def to_datetime(serial: float, *, date1904: bool = False) -> dt.datetime | None:
    """The moment of a serial number to the millisecond, or None if it is none. Time has no zone."""
    if not math.isfinite(serial) or serial < 0 or serial >= _MAX_SERIAL + 1:
        return None
    days, milliseconds = divmod(round(serial * _DAY_MS), _DAY_MS)
    epoch = dt.datetime(1904, 1, 1) if date1904 else dt.datetime(1899, 12, 30)  # noqa: DTZ001 - sheets know no zone
    if not date1904 and days < _LEAP_BUG:
        days += 1
    try:
        return epoch + dt.timedelta(days=days, milliseconds=milliseconds)
    except OverflowError:
        return None


def parse_moment(text: str, *, date1904: bool = False) -> float | None:
    """The serial number of a date, a time or both in ISO 8601, as some programs store them; None for another text."""
    epoch = dt.datetime(1904, 1, 1) if date1904 else dt.datetime(1899, 12, 30)  # noqa: DTZ001 - sheets know no zone
    try:
        moment = dt.datetime.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        try:
            moment = dt.datetime.combine(epoch.date(), dt.time.fromisoformat(text.strip()).replace(tzinfo=None))
        except ValueError:
            return None
    days = (moment - epoch) / dt.timedelta(days=1)
    return days if date1904 or not 0 < days <= _LEAP_BUG else days - 1


def format_moment(section: Section, serial: float, *, date1904: bool) -> str | None:
    """A serial number in a date format; None for one that no calendar has."""
    tokens = section.tokens
    has_fraction = _has_fraction(tokens)
    elapsed = next((token for token in tokens if token.kind == "elapsed"), None)
    if any(token.text[:1] == "s" for token in tokens if token.kind in {"date", "elapsed"}):
        places = sum(token.kind == "digit" for token in tokens) if has_fraction else 0
        serial = round(serial * 86_400, min(places, 3)) / 86_400
    if elapsed is not None:
        return _format_elapsed(tokens, serial)
    moment = to_datetime(serial, date1904=date1904)
    if moment is None:
        return None
    half = any(token.kind == "date" and "/" in token.text for token in tokens)
    parts = []
    for index, token in enumerate(tokens):
        if token.kind == "date":
            is_minute = token.text[0] == "m" and _is_minute(tokens, index)
            parts.append(_format_part(token.text, moment, section.locale, is_minute=is_minute, half=half))
        elif has_fraction and token.kind == "digit":
            parts.append(_take_digit(tokens, index, moment.microsecond))
        elif token.kind == "general":
            parts.append(f"{serial:.15g}")
        else:
            parts.append(token.text)
    return "".join(parts).strip()


def _has_fraction(tokens: Sequence[Token]) -> bool:
    """Whether seconds have digits behind a point."""
    return any(a.kind == "point" and b.kind == "digit" for a, b in pairwise(tokens))


def _take_digit(tokens: Sequence[Token], index: int, microsecond: int) -> str:
    place = sum(1 for token in tokens[:index] if token.kind == "digit")
    return f"{microsecond:06}"[place] if place < 6 else "0"


def _is_minute(tokens: Sequence[Token], index: int) -> bool:
    """`m` is minutes directly after hours or before seconds, else months."""
    if len(tokens[index].text) > 2:
        return False
    timed = [(at, token.text[0]) for at, token in enumerate(tokens) if token.kind in {"date", "elapsed"}]
    place = [at for at, _ in timed].index(index)
    before = timed[place - 1][1] if place else ""
    after = timed[place + 1][1] if place + 1 < len(timed) else ""
    return before == "h" or after == "s"


def _format_part(text: str, moment: dt.datetime, locale: int, *, is_minute: bool, half: bool) -> str:
    width = len(text)
    match text[0]:
        case "g":
            return _find_era(moment)[1][width - 1]
        case "e" if locale & 0xFFFF == _JAPANESE:
            return f"{moment.year - _find_era(moment)[0].year + 1:0{width}}"
        case "y" | "e" | "b":
            return f"{moment.year:04}" if width > 2 or text[0] != "y" else f"{moment.year % 100:02}"
        case "m" if is_minute:
            return f"{moment.minute:0{width}}"
        case "m":
            return _format_month(moment.month, width, locale)
        case "d":
            return f"{moment.day:0{width}}" if width < 3 else _get_names(locale, "days", width)[moment.weekday()]
        case "h":
            return f"{(moment.hour % 12 or 12) if half else moment.hour:0{min(width, 2)}}"
        case "s":
            return f"{moment.second:0{min(width, 2)}}"
        case _:
            return _format_half(text, moment.hour)


def _find_era(moment: dt.datetime) -> tuple[dt.date, tuple[str, str, str]]:
    return next((era for era in _ERAS if era[0] <= moment.date()), _ERAS[-1])


def _format_half(text: str, hour: int) -> str:
    names = text.split("/")
    return names[1] if hour >= 12 else names[0]


def _format_month(month: int, width: int, locale: int) -> str:
    if width < 3:
        return f"{month:0{width}}"
    name = _get_names(locale, "months", 4 if width == 5 else width)[month - 1]
    return name[0] if width == 5 else name


@lru_cache(maxsize=64)
def _get_names(locale: int, what: str, width: int) -> tuple[str, ...]:
    """The names of months or of days from Monday on in a language, short below a width of 4."""
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415 - only for formats with names

    try:
        babel_locale = Locale.parse(windows_locale.get(locale & 0xFFFF, "en_US"))
    except (UnknownLocaleError, ValueError):
        babel_locale = Locale("en")
    form = "wide" if width > 3 else "abbreviated"
    names = babel_locale.months["format"][form] if what == "months" else babel_locale.days["format"][form]
    return tuple(names[key].rstrip(".") for key in sorted(names))


def _format_elapsed(tokens: Sequence[Token], serial: float) -> str:
    """A span: the unit in brackets counts on, the smaller ones are what is left."""
    milliseconds = abs(round(serial * _DAY_MS))
    units = {"h": 3_600_000, "m": 60_000, "s": 1000}
    parts = ["-"] if serial < 0 else []
    left = milliseconds
    for index, token in enumerate(tokens):
        if token.kind in {"elapsed", "date"} and token.text[0] in units:
            count, left = divmod(left, units[token.text[0]])
            parts.append(f"{count:0{len(token.text)}}")
        elif token.kind == "digit":
            parts.append(_take_digit(tokens, index, left * 1000))
        else:
            parts.append(token.text)
    return "".join(parts).strip()
