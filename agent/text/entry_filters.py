"""Filters for the entries of a list: the fields that they have, the entries that meet conditions, and their order.

A list is what a tool returned as JSON. Fields of nested objects are named by their path, `address.city`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, Literal, cast

from agent.core.models import JsonObject
from agent.text.terms import fold

FieldKind = Literal["flag", "number", "date", "time", "word", "tags", "text"]
"""Yes or no; a number; a day, with or without a time; a time of day; one of few short texts; several of them; any other
text."""
Scalar = str | int | float | bool
Entry = Mapping[str, Scalar | tuple[str, ...] | None]
"""An entry by the names of its fields. A tuple holds the texts of a list."""

MAX_FIELDS: Final = 14
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
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?")
_DAY_CHARS: Final = 10
_IDENTIFIER: Final = re.compile(r"(?:\b|_)(?i:id)$|(?<=[a-z])I[dD]$")
_TIME: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?")


@dataclass(frozen=True, slots=True)
class EntryField:
    """A field that tells entries apart, with its different values in the order of the list."""

    name: str
    kind: FieldKind
    values: tuple[Scalar, ...]
    has_gaps: bool = False
    """Whether entries have no value in it."""
    is_name: bool = False
    """Whether it tells most entries apart, as a name does."""

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


def flatten_entry(entry: JsonObject) -> dict[str, Scalar | tuple[str, ...] | None]:
    """The fields of an entry, those of nested objects by their path. Lists of objects are left out."""
    flat: dict[str, Scalar | tuple[str, ...] | None] = {}
    for name, value in entry.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": one for inner, one in value.items() if not isinstance(one, dict | list)}
        elif not isinstance(value, list):
            flat[name] = value
        elif not any(isinstance(one, dict | list) for one in value):
            flat[name] = tuple(map(str, value))
    return flat


def list_fields(entries: Sequence[Entry]) -> list[EntryField]:
    """The fields whose values differ, the first `MAX_FIELDS`."""
    names = dict.fromkeys(name for entry in entries for name in entry)
    fields = (_read_field(name, [entry.get(name) for entry in entries]) for name in names)
    return [field for field in fields if field is not None][:MAX_FIELDS]


def _read_field(name: str, values: Sequence[Scalar | tuple[str, ...] | None]) -> EntryField | None:
    given = [value for value in values if value not in (None, "", ())]
    single = [one for value in given for one in (value if isinstance(value, tuple) else [value])]
    different = tuple({(type(one), one): one for one in single}.values())
    has_gaps = len(given) < len(values)
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
    keys = {place: _make_key(entries[place].get(chosen.sort)) for place in places}
    given = [place for place in places if entries[place].get(chosen.sort) not in (None, "")]
    given.sort(key=lambda place: keys[place], reverse=chosen.descending)
    if not 0 < chosen.take < len(given):
        return given if chosen.take else [*given, *(place for place in places if place not in given)]
    last = keys[given[chosen.take - 1]]
    return [place for at, place in enumerate(given) if at < chosen.take or keys[place] == last]


def meets(entry: Entry, condition: Condition) -> bool:
    """Whether an entry meets a condition. A field without a value meets none but `EMPTY` and `!=`."""
    value, operator = entry.get(condition.field), condition.operator
    expected = entry.get(condition.other) if condition.other else condition.value
    is_empty = value in (None, "", ())
    if operator in (EMPTY, GIVEN):
        return is_empty == (operator == EMPTY)
    if is_empty or expected is None:
        return operator == "!=" and value != expected
    if isinstance(value, tuple):
        return (str(expected) in value) != (operator == "!=")
    if operator == CONTAINS:
        return fold(str(expected)) in fold(str(value))
    if isinstance(value, str) or isinstance(expected, str):
        value, expected = str(value), str(expected)
        if len(expected) == _DAY_CHARS and _DAY.fullmatch(value):
            value = value[:_DAY_CHARS]
    return OPERATORS[operator](value, expected)


def _make_key(value: Scalar | tuple[str, ...] | None) -> tuple[int, float, str]:
    """What orders values of unlike kinds: numbers before texts."""
    if isinstance(value, str | tuple):
        return (1, 0.0, fold(str(value)))
    return (0, float(value or 0), "")


def name_conditions(conditions: Iterable[Condition]) -> str:
    """Conditions as words: `status = open and amount > 20`."""
    return " and ".join(map(str, conditions))
