"""Decides whether a date, a time or a span of time follows from the dates, times and spans that are known."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property

from agent.text.dates import WEEKDAYS, DateMention, DateValue, TimeMention, TimeValue
from agent.text.numbers import NumberMention
from agent.text.values import KnownValues

_MAX_KNOWN = 60
"""Dates and spans that are combined."""
_NAME_REACH = 40
_MAX_WEEKDAY_SHIFT = 14
_RELATIVE_DAYS = {
    **dict.fromkeys(("tomorrow", "morgen", "imorgon", "morgon", "demain"), (1,)),
    **dict.fromkeys(("yesterday", "gestern", "igår", "hier"), (-1,)),
    **dict.fromkeys(("übermorgen", "övermorgon"), (2,)),
    **dict.fromkeys(("vorgestern", "förrgår"), (-2,)),
}
_NEXT_WORDS_TEXT = """
next coming following this last nächster nächsten nächste kommenden kommender diesen dieser letzten
nästa kommande denna förra prochain ce dernier suivant
"""
_NEXT_WORDS = frozenset(_NEXT_WORDS_TEXT.split())
_WORD = re.compile(r"[^\W\d_]+")
_DAY = 86_400
_MINUTES_OF_DAY = 24 * 60
_MAX_SPAN = 20 * 60
"""Minutes of the longest span over midnight: of two times, the other way round is seldom meant."""
_MONTHS_OF_YEAR = 12


class DerivedDates:
    """The dates that lie a known span of time before or behind a known date, and the spans between known dates."""

    def __init__(self, *known: KnownValues) -> None:
        self._known = known

    def explain(self, mention: DateMention | TimeMention) -> bool:
        """Whether a date or a time of day follows from known ones."""
        if isinstance(mention, TimeMention):
            return self._has_time(mention.value)
        return self.has_any(mention.readings)

    def has_any(self, readings: Sequence[DateValue]) -> bool:
        """Whether one of the readings of a date follows from known ones."""
        return any(one.follows_from(date) for one in readings for date in self._dates)

    def explain_named_day(self, mention: DateMention, text: str) -> bool:
        """Whether a day lies as far from a known one as the words of `text` around it say: tomorrow, next Tuesday.

        A name of a day of the week has to be the day's own, and a known day is at most two weeks away."""
        around = text[max(0, mention.start - _NAME_REACH) : mention.end + _NAME_REACH].lower()
        words = _WORD.findall(around)
        shifts = {shift for word in words for shift in _RELATIVE_DAYS.get(word, ())}
        weekdays = {WEEKDAYS[word] for word in words if word in WEEKDAYS}
        weekdays = set() if _NEXT_WORDS.isdisjoint(words) else weekdays
        for reading in mention.readings:
            for start in self._certain if reading.day is not None else ():
                day = _resolve(reading, start)
                if day is not None and (
                    (day - start).days in shifts
                    or (day.weekday() in weekdays and abs((day - start).days) <= _MAX_WEEKDAY_SHIFT)
                ):
                    return True
        return False

    def explain_number(self, mention: NumberMention) -> bool:
        """Whether a number of days, weeks, months or years is the span between two known dates, or a year is a
        known number of years from another."""
        value = float(mention.value)
        if mention.unit is None:
            return value.is_integer() and int(value) in self._years
        near = float(mention.readings[0].step) / 2
        if mention.unit.dimension == "time":
            if self._is_span_of_times(value * float(mention.unit.factor) / 60, near * float(mention.unit.factor) / 60):
                return True
            days = value * float(mention.unit.factor) / _DAY
            return any(abs(days - span) <= near * float(mention.unit.factor) / _DAY for span in self._spans)
        if mention.unit.dimension == "months":
            months = value * float(mention.unit.factor)
            if mention.unit.factor == _MONTHS_OF_YEAR and value.is_integer() and int(value) in self._spans_of_years:
                return True
            return any(
                abs(months - span / 30.44) <= max(0.6, near) * float(mention.unit.factor) for span in self._spans
            )
        return False

    def _is_span_of_times(self, minutes: float, near: float) -> bool:
        """Whether this many minutes are between two known times, perhaps over midnight; or "2 h 45" is not a time."""
        times = [one.hour * 60 + one.minute for date in self._known for one in date.times][:_MAX_KNOWN]
        between = ((one - other) % _MINUTES_OF_DAY for one in times for other in times if one != other)
        spans = {*times, *(span for span in between if span <= _MAX_SPAN), *map(abs, _subtract(times))}
        return any(abs(minutes - span) <= min(near, 0.5) for span in spans)

    def _has_time(self, time: TimeValue) -> bool:
        wanted = time.hour * 60 + time.minute
        times = [one.hour * 60 + one.minute for date in self._known for one in date.times]
        minutes = [int(value / 60) for value in self._list_spans("time") if value < _DAY]
        if self._is_span_of_times(wanted, 0):  # "2 h 47" is a span of time too
            return True
        if any(
            (one + sign * span - wanted) % _MINUTES_OF_DAY == 0 for one in times for span in minutes for sign in (1, -1)
        ):
            return True
        # "9.30-17.00" without a word for the time reads as two numbers, and "1:30" may be a span of time.
        written = Decimal(time.hour) + Decimal(time.minute) / 100
        return any(date.has_value(written) or date.has_value(Decimal(wanted)) for date in self._known)

    @cached_property
    def _certain(self) -> list[date]:
        """The known dates that are complete."""
        values = [one for source in self._known for one in source.dates if one.year is not None and one.day is not None]
        return sorted({date(one.year or 1, one.month, one.day or 1) for one in values})[:_MAX_KNOWN]

    @cached_property
    def _dates(self) -> set[DateValue]:
        moved = {one for day in self._certain for one in self._iter_moved(day)}
        dates = {DateValue(one.year, one.month, one.day) for one in moved}
        yearless = {one for day in self._list_yearless() for one in self._iter_moved(day)}
        return dates | {DateValue(None, one.month, one.day) for one in yearless}

    def _list_yearless(self) -> list[date]:
        """The known days without a year, in a leap year and in another."""
        days = [one for source in self._known for one in source.dates if one.year is None and one.day is not None]
        return [
            date(year, one.month, one.day)
            for one in days[:_MAX_KNOWN]
            for year in (2027, 2028)
            if one.day is not None and (one.month, one.day) != (2, 29)
        ]

    def _iter_moved(self, day: date) -> Iterator[date]:
        for seconds in self._list_spans("time"):
            for sign in (1, -1):
                if seconds >= _DAY and seconds % _DAY == 0 and seconds < 40_000 * _DAY:
                    yield from _shift(day, sign * int(seconds / _DAY))
        for months in self._list_spans("months"):
            for sign in (1, -1):
                count = day.month - 1 + sign * int(months)
                year, month = day.year + count // 12, count % 12 + 1
                if 1 <= year <= 9999:
                    first = date(year, month, 1)
                    last = (date(year + month // 12, month % 12 + 1, 1) - timedelta(1)).day if year < 9999 else 28
                    moved = first.replace(day=min(day.day, last))
                    yield moved
                    if (day + timedelta(1)).day == 1:  # a term that ends with its month ends with any
                        yield first.replace(day=last)
                    yield from _shift(moved, -1)  # a term of a year ends the day before

    @cached_property
    def _spans(self) -> list[int]:
        """The days between two known dates, without and with both of them counted."""
        dates = self._certain
        return sorted(
            {abs((one - other).days) + more for one in dates for other in dates if one != other for more in (0, 1)}
        )

    @cached_property
    def _spans_of_years(self) -> set[int]:
        years = self._known_years
        return {abs(one - other) for one in years for other in years if one != other}

    @cached_property
    def _years(self) -> set[int]:
        spans = [int(months / 12) for months in self._list_spans("months") if months % 12 == 0]
        return {year + sign * span for year in self._known_years for span in spans for sign in (1, -1)}

    @cached_property
    def _known_years(self) -> set[int]:
        return {year for source in self._known for year in source.years}

    def _list_spans(self, dimension: str) -> list[float]:
        return [float(one) for date in self._known for one in date.list_quantities(dimension)][:_MAX_KNOWN]


def _subtract(times: Sequence[int]) -> Iterator[int]:
    yield from (one - other for one in times for other in times if one != other)


def _resolve(reading: DateValue, near: date) -> date | None:
    """The day that a date means, in the year of a day near it where it leaves out the year."""
    try:
        day = date(reading.year or near.year, reading.month, reading.day or 1)
    except ValueError:
        return None
    if reading.year is None and abs((day - near).days) > _MAX_WEEKDAY_SHIFT and day.year < 9999:
        return day.replace(year=day.year + 1) if (day.month, day.day) != (2, 29) else None
    return day


def _shift(day: date, days: int) -> Iterator[date]:
    try:
        yield day + timedelta(days)
    except OverflowError:
        return
