"""Filters for the entries of a list: the fields that they have, the entries that meet conditions, and their order.

A list is what a tool returned as JSON. Fields of nested objects are named by their path, `address.city`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, Literal, cast

from pydantic import JsonValue

from agent.text.terms import fold

FieldKind = Literal["flag", "number", "date", "time", "word", "tags", "text"]
"""Yes or no; a number; a day, with or without a time; a time of day; one of few short texts; several of them; any other
text."""
Scalar = str | int | float | bool
Entry = Mapping[str, Scalar | tuple[str, ...] | None]
"""An entry by the names of its fields. A tuple holds the texts of a list."""

MAX_FIELDS, MAX_NAME_CHARS = 14, 80
"""Fields, and characters of a name; a longer one is text, and not a name."""
MAX_NUMBER: Final = 1e15
"""Larger numbers are codes, which nobody compares: they are read as texts."""
MAX_WORDS, MAX_WORD_CHARS = 30, 60
"""Different values of a field of words, and characters of each."""
OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": eq, "!=": ne, "<": lt, ">": gt, "<=": le, ">=": ge,
}  # fmt: skip
CONTAINS: Final = "contains"
EMPTY, GIVEN = "empty", "given"
"""Operators without a value."""
ORDERED: Final = frozenset({"number", "date", "time"})
"""The kinds of fields that have a least and a largest value."""
_DAY: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d(?::?\d\d)?))?)?", re.ASCII
)
_DAY_CHARS: Final = 10
_IDENTIFIER: Final = re.compile(r"(?:\b|_)(?i:id)$|(?<=[a-z])I[dD]$")
_TIME: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?")


@dataclass(frozen=True, slots=True)
class EntryField:
    """A field in which entries differ, with its different values in the order of the list."""

    name: str
    kind: FieldKind
    values: tuple[Scalar, ...]
    has_gaps: bool = False
    """Whether entries have no value in it."""
    is_name: bool = False
    """Whether most entries differ in it, as in a name."""

    def sort_values(self) -> list[Scalar]:
        """The values of a field that has an order, the least one first."""
        return sorted(self.values, key=_make_key)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a field must be, compared with a value, or with the entry's `other` field."""

    field: str
    operator: str
    value: Scalar = ""
    other: str = ""

    def __str__(self) -> str:
        if self.operator in (EMPTY, GIVEN):
            return f"{self.field} {self.operator}"
        value = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return f"{self.field} {self.operator} {self.other or value}"


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Conditions, all of which an entry must meet, and the first `take` entries by a field; 0: all of them."""

    conditions: tuple[Condition, ...] = ()
    sort: str = ""
    descending: bool = False
    take: int = 0


def flatten_entry(entry: Mapping[str, JsonValue]) -> dict[str, Scalar | tuple[str, ...] | None]:
    """The fields of an entry, those of nested objects by their path. Lists of objects, and what has no name, but a text
    of more than `MAX_NAME_CHARS`, are left out."""
    flat: dict[str, Scalar | tuple[str, ...] | None] = {}
    for name, value in entry.items():
        if isinstance(value, dict):
            inner = {f"{name}.{part}": one for part, one in value.items() if not isinstance(one, dict | list)}
            flat |= {path: _read_scalar(one) for path, one in inner.items() if len(path) <= MAX_NAME_CHARS}
        elif len(name) > MAX_NAME_CHARS:
            continue
        elif not isinstance(value, list):
            flat[name] = _read_scalar(value)
        elif not any(isinstance(one, dict | list) for one in value):
            flat[name] = tuple(map(str, value))
    return flat


def _read_scalar(value: Scalar | None) -> Scalar | None:
    is_code = isinstance(value, int | float) and not abs(value) < MAX_NUMBER  # nor is NaN less than anything
    return str(value) if is_code else value


def list_fields(entries: Sequence[Entry]) -> list[EntryField]:
    """The fields whose values differ, in the order of the list. Of more than `MAX_FIELDS`, those whose values can be
    listed or compared come before other texts, such as addresses."""
    given: dict[str, list[Scalar | tuple[str, ...]]] = {}
    for entry in entries:
        for name, value in entry.items():
            values = given.setdefault(name, [])
            if value is not None and value not in ("", ()):
                values.append(value)
    fields = [field for name, values in given.items() if (field := _read_field(name, values, len(entries))) is not None]
    chosen = sorted(range(len(fields)), key=lambda place: fields[place].kind == "text")[:MAX_FIELDS]
    return [fields[place] for place in sorted(chosen)]


def _read_field(name: str, given: Sequence[Scalar | tuple[str, ...]], count: int) -> EntryField | None:
    single = [one for value in given for one in (value if isinstance(value, tuple) else [value])]
    different = tuple({(type(one), one): one for one in single}.values())
    has_gaps = len(given) < count
    if not different or (len(different) == 1 and not has_gaps):
        return None
    kind = _find_kind(name, different)
    if any(isinstance(value, tuple) for value in given):
        kind = "tags" if kind == "word" else "text"
    return EntryField(name, kind, different, has_gaps, is_name=2 * len(different) > len(given))


def _find_kind(name: str, values: Sequence[Scalar]) -> FieldKind:
    if all(isinstance(value, bool) for value in values):
        return "flag"
    if not any(isinstance(value, str | bool) for value in values) and not _IDENTIFIER.search(name):
        return "number"
    for kind, form in (("date", _DAY), ("time", _TIME)):
        if all(isinstance(value, str) and form.fullmatch(value) for value in values):
            return cast("FieldKind", kind)
    is_short = len(values) <= MAX_WORDS and all(len(str(value)) <= MAX_WORD_CHARS for value in values)
    return "word" if is_short else "text"


def apply_filter(entries: Sequence[Entry], chosen: EntryFilter) -> list[int]:
    """The places of the entries that meet the conditions, in the filter's order. Entries that are equal to the last one
    in the field of the order are among them: "the cheapest" may be two."""
    places = [place for place, entry in enumerate(entries) if all(meets(entry, one) for one in chosen.conditions)]
    if not chosen.sort:
        return places
    values = {place: value for place in places if (value := entries[place].get(chosen.sort)) not in (None, "", ())}
    keys = {place: _make_key(value) for place, value in values.items()}
    given = sorted(keys, key=lambda place: keys[place], reverse=chosen.descending)
    if not 0 < chosen.take < len(given):
        return given if chosen.take else [*given, *(place for place in places if place not in keys)]
    last = keys[given[chosen.take - 1]]
    return [place for at, place in enumerate(given) if at < chosen.take or keys[place] == last]


def meets(entry: Entry, condition: Condition) -> bool:
    """Whether an entry meets a condition. A field without a value is not true, is `EMPTY`, and meets nothing else but
    `!=`."""
    value, operator = entry.get(condition.field), condition.operator
    expected = entry.get(condition.other) if condition.other else condition.value
    is_empty = value in (None, "", ())
    if operator in (EMPTY, GIVEN):
        return is_empty == (operator == EMPTY)
    if is_empty and expected is False:
        return operator == "="
    if is_empty or expected is None:
        return operator == "!=" and value != expected
    if isinstance(value, tuple):
        return (str(expected) in value) != (operator == "!=")
    if operator == CONTAINS:
        return fold(str(expected)) in fold(str(value))
    if isinstance(value, str) or isinstance(expected, str):
        value, expected = _align_times(str(value), str(expected))
    return OPERATORS[operator](value, expected)


def _align_times(first: str, second: str) -> tuple[str, str]:
    """Two texts as they are compared: two times in one zone, and only the days if one of both is a day."""
    if not (_DAY.fullmatch(first) and _DAY.fullmatch(second)):
        return first, second
    if _DAY_CHARS in (len(first), len(second)):
        return first[:_DAY_CHARS], second[:_DAY_CHARS]
    return _to_utc(first), _to_utc(second)


def _to_utc(value: str) -> str:
    """A time with a zone in UTC; any other text as it is."""
    if len(value) > _DAY_CHARS and _DAY.fullmatch(value):
        with suppress(ValueError, OverflowError):
            time = datetime.fromisoformat(value.replace(" UTC", "Z"))
            return value if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None).isoformat()
    return value


def _make_key(value: Scalar | tuple[str, ...] | None) -> tuple[int, float, str]:
    """What orders values of unlike kinds: numbers before texts."""
    if isinstance(value, str | tuple):
        return (1, 0.0, fold(_to_utc(value) if isinstance(value, str) else ", ".join(value)))
    return (0, float(value or 0), "")


def name_conditions(conditions: Iterable[Condition]) -> str:
    """Conditions as words: `status = open and amount > 20`."""
    return " and ".join(map(str, conditions))
