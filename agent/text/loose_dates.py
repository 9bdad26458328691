"""Dates in forms that may be other numbers (`15.3.`, `12/2`, `03/24`, `20240305`), and hours by their names."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

from agent.text.dates import DateValue, TimeValue, is_date
from agent.text.numbers import NumberMention

_YEAR: Final = r"(?:19|20)\d\d"
_FORMS: Final = re.compile(
    rf"""
    (?<![\w.,/§-])(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.(?!\d)
    | (?<![\w.,/-])(?P<first>\d{{1,2}})/(?P<second>\d{{1,2}})(?:[ \u00a0](?P<year>{_YEAR}))?(?![\w/]|[.,-]\d)
    | (?<![\w.,/-])(?P<month2>0?[1-9]|1[0-2])[/.](?P<year2>{_YEAR})(?![\w/]|[.,-]\d)
    | (?<![\w.,/-])(?P<compact>{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?![\w/]|[.,-]\d)
    """,
    re.VERBOSE,
)
_QUARTER: Final = re.compile(
    rf"(?<!\w)(?:(?P<year>{_YEAR})[-/ ]?Q(?P<quarter>[1-4])|Q(?P<quarter2>[1-4])[-/ ](?P<year2>{_YEAR}))(?!\w)"
)
_HOURS: Final = {
    TimeValue(12): "noon midday midi mittag mittags middag middagstid",
    TimeValue(0): "midnight midnatt mitternacht minuit",
}
_HOUR_OF: Final = {word: hour for hour, words in _HOURS.items() for word in words.split()}
_NAMED_HOUR: Final = re.compile(rf"\b(?:{'|'.join(_HOUR_OF)})\b", re.IGNORECASE)
_MILITARY: Final = re.compile(r"(?<![\w.,:])(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)[ \u00a0]?hrs\b", re.IGNORECASE)


def list_possible_dates(text: str) -> Iterator[DateValue]:
    """Yields the dates that numbers of a text may be, and the months of its quarters (`2024-Q3`)."""
    for match in _FORMS.finditer(text):
        yield from _read(match)
    for match in _QUARTER.finditer(text):
        year, quarter = int(match["year"] or match["year2"]), int(match["quarter"] or match["quarter2"])
        yield from (DateValue(year, month) for month in range(3 * quarter - 2, 3 * quarter + 1))


def list_named_hours(text: str) -> Iterator[TimeValue]:
    """Yields the hours that a text calls by a name, `noon` and `midnight`, and those of `1330 hrs`."""
    for match in _NAMED_HOUR.finditer(text):
        yield _HOUR_OF[match[0].lower()]
        if _HOUR_OF[match[0].lower()].hour == 0:
            yield TimeValue(24)
    yield from (TimeValue(int(match["hour"]), int(match["minute"])) for match in _MILITARY.finditer(text))


def attach_dates(text: str, numbers: Sequence[NumberMention]) -> list[NumberMention]:
    """The numbers of a text, in order; each with the dates that it may be a part of."""
    attached = list(numbers)
    for match in _FORMS.finditer(text):
        dates = tuple(_read(match))
        place = bisect_left(attached, match.start(), key=attrgetter("start")) if dates else len(attached)
        while place < len(attached) and attached[place].start < match.end():
            attached[place] = replace(attached[place], dates=dates)
            place += 1
    return attached


def _read(match: re.Match[str]) -> Iterator[DateValue]:
    if match["day"]:
        dates = [DateValue(None, int(match["month"]), int(match["day"]))]
    elif match["compact"]:
        compact = match["compact"]
        dates = [DateValue(int(compact[:4]), int(compact[4:6]), int(compact[6:]))]
    elif match["month2"]:
        dates = [DateValue(int(match["year2"]), int(match["month2"]))]
    else:
        first, second, year = int(match["first"]), int(match["second"]), int(match["year"]) if match["year"] else None
        dates = [DateValue(year, second, first), DateValue(year, first, second)]
        if len(match["first"]) == len(match["second"]) == 2 and year is None:  # 03/24 may be a month of a year
            dates.append(DateValue(2000 + second, first))
    yield from (date for date in dates if is_date(date))
