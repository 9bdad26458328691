"""What a small model's filter of a list means: it fills in conditions that nobody named, and takes the wrong field.

What the request states stays. What it does not state stays only where nothing else is asked.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple

from agent.text.dates import DateValue, find_dates
from agent.text.entry_filters import (
    CONTAINS,
    EMPTY,
    GIVEN,
    ORDERED,
    Condition,
    Entry,
    EntryField,
    EntryFilter,
    Scalar,
    apply_filter,
    name_conditions,
)
from agent.text.excerpts import SHORTEST_STEM, list_word_stems
from agent.text.follow_up import list_content_words
from agent.text.numbers import find_numbers
from agent.text.stated_values import StatedValues
from agent.text.terms import fold

DESCENDING, ASCENDING = "largest first", "smallest first"
_WORD: Final = re.compile(r"\w+")
_FIGURE: Final = re.compile(r"\d+")
_SEPARATOR: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a list: the request, the days that it names in words, and the day of the request, as ISO
    dates."""

    text: str
    days: tuple[str, ...] = ()
    today: str = ""


class MeantEntries(NamedTuple):
    """The places of the entries that a request is about, and in words what they have in common."""

    places: list[int]
    heading: str


def list_days(question: Question, fields: Sequence[EntryField]) -> list[str]:
    """The days that a request names, in full; none if the list has no dates. A day without a year is one of the year
    that most dates of the list have."""
    dates = [str(value) for field in fields if field.kind == "date" for value in field.values]
    if not dates:
        return []
    years = [date[:4] for date in dates]
    year = max(dict.fromkeys(years), key=years.count)
    readings = [mention.readings[0] for mention in find_dates(question.text) if mention.readings]
    named = [replace(one, year=one.year or int(year)).iso for one in readings if one.day is not None]
    return [*dict.fromkeys((*named, *question.days))]


class MeantFilter:
    """Reads filters for one question about a list with these fields. `days` are the days that the question names."""

    def __init__(self, question: Question, fields: Sequence[EntryField], days: Sequence[str]) -> None:
        self._question = question
        self._fields = {field.name: field for field in fields}
        self._days = {*days, question.today}
        self._folded = fold(question.text)
        self._words = {*_WORD.findall(self._folded)}
        self._content = {word for part in list_content_words(question.text) for word in _WORD.findall(fold(part))}
        self._stems = {stem for stem in list_word_stems(question.text) if len(stem) >= SHORTEST_STEM}

    def read(self, chosen: EntryFilter, entries: Sequence[Entry]) -> MeantEntries | None:
        """The entries that a filter means; None if it means all of them as they are.

        If nothing meets all conditions, as few as possible are given up, and the heading says what no entry has: of
        "is Ann's order paid?" the order of Ann stays, which is not paid."""
        chosen = self._take_ends(chosen)
        stated = tuple(self._list_stated(chosen))
        chosen = replace(chosen, conditions=stated, take=self._count_taken(chosen))
        places, missed = apply_filter(entries, chosen), tuple[Condition, ...]()
        if not places:
            places, kept_conditions = self._find_nearest(chosen, entries)
            missed = tuple(one for one in stated if one not in kept_conditions)
            if not places:
                ordered = (self._fields[one.field].kind in ORDERED and not one.other for one in stated)
                is_certain = stated and all(ordered)
                none = f"no entry with {name_conditions(stated)}, of {len(entries)}"
                return MeantEntries([], none) if is_certain else None
            chosen = replace(chosen, conditions=kept_conditions)
        if len(places) == len(entries) and not chosen.sort:
            return None
        heading = _describe(chosen, len(places), len(entries))
        if missed:
            heading = f"no entry with {name_conditions((*chosen.conditions, *missed))}; {heading}"
        return MeantEntries(places, heading)

    def _count_taken(self, chosen: EntryFilter) -> int:
        """How many entries are taken: beside conditions all in their order, unless the request states a number. A small
        model adds an order and the first entry where it asks for several."""
        is_stated = any(float(number) == chosen.take for number in self._numbers)
        return chosen.take if is_stated or not chosen.conditions else 0

    def _find_nearest(self, chosen: EntryFilter, entries: Sequence[Entry]) -> tuple[list[int], tuple[Condition, ...]]:
        """The fewest entries that meet all conditions but one, or but two."""
        for count in range(len(chosen.conditions) - 1, 0, -1):
            tried = (
                (apply_filter(entries, replace(chosen, conditions=some)), some)
                for some in combinations(chosen.conditions, count)
            )
            if met := [one for one in tried if one[0]]:
                return min(met, key=lambda one: len(one[0]))
        return [], ()

    def _take_ends(self, chosen: EntryFilter) -> EntryFilter:
        """The filter with an order in place of its only condition, if that is the least or the largest value of a field
        and nobody stated it."""
        if chosen.sort or len(chosen.conditions) != 1 or self._is_stated(chosen.conditions[0]):
            return chosen
        (condition,) = chosen.conditions
        field = self._fields[condition.field]
        end = _find_end(condition, field)
        return EntryFilter((), field.name, end == DESCENDING, 1) if end else chosen

    def _list_stated(self, chosen: EntryFilter) -> Iterator[Condition]:
        """The conditions that the request states, and those for values that it names in fields without one.

        If it states none, a word that it may mean stays. Beside others it stays where the request names another value
        of its field: it may ask for what is not so."""
        read = [self._read_value(one, chosen.take) for one in chosen.conditions if self._is_compared(one, chosen)]
        stated = [one for one in read if self._is_stated(one)]
        if len(stated) == len(read):
            yield from stated
            return
        named = {one.field: one for one in self._iter_named()}
        unlike = [one for one in read if one not in stated and one.field in named]
        own = {one.field for one in (*stated, *unlike)}
        others = [one for name, one in named.items() if name not in own]
        if stated or others:
            yield from dict.fromkeys((*stated, *others, *unlike))
        elif not unlike:
            yield from (one for one in read if self._may_mean(one))

    def _is_compared(self, condition: Condition, chosen: EntryFilter) -> bool:
        """Whether a comparison of two fields is meant beside an order: the request has to name one of them."""
        names = (condition.field, condition.other)
        return not (condition.other and chosen.sort) or any(map(self._names_value, names))

    def _may_mean(self, condition: Condition) -> bool:
        """Whether a value that the request does not state may be meant by other words: "unsettled" by `open`."""
        field = self._fields[condition.field]
        return field.kind in ("word", "tags") and not field.is_name

    def _read_value(self, condition: Condition, take: int) -> Condition:
        """The condition with the only figure that the request states in place of another field: "over 100 km" is no
        comparison of two fields. The number of entries that are taken does not count."""
        numbers = [float(number) for number in self._numbers if float(number) != take]
        if not condition.other or self._fields[condition.field].kind != "number" or len(numbers) != 1:
            return condition
        return replace(condition, other="", value=int(numbers[0]) if numbers[0].is_integer() else numbers[0])

    @cached_property
    def _numbers(self) -> list[str]:
        """The figures of the request, without its days."""
        text = self._question.text
        for date in reversed(find_dates(text)):
            text = f"{text[: date.start]} {text[date.end :]}"
        return [str(mention.value) for mention in find_numbers(text)]

    @cached_property
    def _stated_values(self) -> StatedValues:
        return StatedValues([self._question.text], is_loose=True)

    @cached_property
    def _months(self) -> list[DateValue]:
        return [one for mention in find_dates(self._question.text) for one in mention.readings]

    def _is_stated(self, condition: Condition) -> bool:
        """Whether the request states the value of a condition; true of conditions without one."""
        kind, value = self._fields[condition.field].kind, condition.value
        if condition.other or condition.operator in (EMPTY, GIVEN) or kind == "flag":
            return True
        if kind == "number":
            return self._stated_values.hold(str(value), condition.field)
        if kind == "date":
            return value in self._days or self._names_day(str(value))
        if kind == "time":
            return self._stated_values.hold(str(value))
        figures = set(_FIGURE.findall(str(value))) if kind == "text" else set[str]()
        return self._names_value(value) and figures.issubset(_FIGURE.findall(self._question.text))

    def _names_day(self, value: str) -> bool:
        """Whether a day is an end of a month that is named, the first of the next one, or a number beside a month:
        "between 10 and 20 October"."""
        with suppress(ValueError):
            year, month, day = map(int, value.split("-"))
            named = [one for one in self._months if one.year in (None, year)]
            if any(one.month == month and (one.day is None or str(day) in self._words) for one in named):
                return True
            return day == 1 and any(one.day is None and one.month == (month - 2) % 12 + 1 for one in named)
        return False

    def _names_value(self, value: Scalar) -> bool:
        folded = fold(str(value))
        if re.search(rf"(?<!\w){re.escape(folded)}(?!\w)", self._folded):  # a code has several words
            return True
        words = _SEPARATOR.split(folded)
        return any(word in self._content or any(word.startswith(stem) for stem in self._stems) for word in words)

    def _iter_named(self) -> Iterator[Condition]:
        """Conditions for the values that the request names, of fields in which it names only one."""
        for field in self._fields.values():
            if field.kind in ("word", "tags"):
                named = [value for value in field.values if self._names_value(value)]
                if len(named) == 1:
                    yield Condition(field.name, "=", named[0])


def _find_end(condition: Condition, field: EntryField) -> str:
    """The order in which the entry that a condition means comes first; "" if it means none of both ends. Where entries
    are without a value, it may mean these: "not back yet" is written as the first day of a return."""
    if field.kind not in ORDERED or field.has_gaps or condition.other or condition.operator in (EMPTY, GIVEN, CONTAINS):
        return ""
    ordered = field.sort_values()
    if str(condition.value) == str(ordered[0]) and condition.operator in ("=", "<", "<="):
        return ASCENDING
    return DESCENDING if str(condition.value) == str(ordered[-1]) and condition.operator in ("=", ">", ">=") else ""


def _describe(chosen: EntryFilter, count: int, total: int) -> str:
    """In words what was selected."""
    order = DESCENDING if chosen.descending else ASCENDING
    parts = [f"{count} of {total} entries"]
    if chosen.conditions:
        parts.append(f"with {name_conditions(chosen.conditions)}")
    if chosen.sort:
        ordered = f"by {chosen.sort}, {order}"
        parts.append(f"the first {ordered}" if chosen.take else ordered)
    return ", ".join(parts)
