"""Asks a small model which entries of a list a request is about, as a filter, and applies it.

Reading a list of ten entries with five fields, the 1.5B names wrong ones in two of three questions: it takes neighbours
for matches, and the last price for the lowest. The fields and their values alone it reads well, and a filter is exact.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.llm.port import ModelReply, ResponseSchema
from agent.llm.prompts import quote_inline, read_examples, render
from agent.llm.schema_derivation import join_schemas
from agent.planning.parse import read_last_object
from agent.planning.rounds.input_schemas import close_object
from agent.text.dates import DateValue, find_dates
from agent.text.entry_filters import (
    CONTAINS,
    MAX_NUMBER,
    Condition,
    Entry,
    EntryField,
    EntryFilter,
    FieldKind,
    Scalar,
    apply_filter,
    flatten_entry,
    list_fields,
    name_conditions,
)
from agent.text.excerpts import SHORTEST_STEM, list_word_stems
from agent.text.stated_values import StatedValues
from agent.text.terms import fold

LEAST_ENTRIES, MOST_ENTRIES = 4, 2_000
SHOWN_WORDS: Final = 12
MAX_CONDITIONS: Final = 3
SEARCH_CHARS: Final = 40
QUESTION_CHARS: Final = 600
DESCENDING, ASCENDING = "largest first", "smallest first"
SORTED: Final = frozenset({"number", "date"})
"""The kinds of fields that have a least and a largest value."""
_WORD, _FIGURE = re.compile(r"\w+"), re.compile(r"\d+")
_OPERATORS: Final[Mapping[FieldKind, tuple[str, ...]]] = {
    "flag": ("=",),
    "number": ("=", "<", ">", "<=", ">=", "!="),
    "date": ("=", "<", ">", "<=", ">="),
    "word": ("=", "!="),
    "text": (CONTAINS,),
}


AskModel = Callable[[tuple[JsonObject, ...], ResponseSchema], Awaitable[ModelReply]]
"""Asks the model for a reply to messages that is bound to a schema. Raises `ModelError`."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a list: the request, the days that it names in words, and the day of the request, as ISO
    dates."""

    text: str
    days: tuple[str, ...] = ()
    today: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """The entries that a request is about, and in words what they have in common."""

    entries: tuple[JsonObject, ...]
    heading: str


async def select_entries(ask: AskModel, question: Question, entries: Sequence[JsonObject]) -> Selection | None:
    """The entries of a list that a question is about; None if it is about all of them, or the list is too short to
    need it. Raises `ModelError`."""
    if not LEAST_ENTRIES <= len(entries) <= MOST_ENTRIES:
        return None
    flat = [flatten_entry(entry) for entry in entries]
    fields = list_fields(flat)
    if not fields:
        return None
    question = replace(question, text=question.text[-QUESTION_CHARS:])
    days = _list_days(question, fields)
    reply = await ask(_build_messages(question, fields, days), _build_schema(fields))
    chosen = _read_filter(read_last_object(reply.text, "where"), fields)
    if chosen is None:
        return None
    chosen = _leave_out_unstated(chosen, fields, question, days)
    return _select(chosen, fields, question, entries, flat)


def _build_messages(question: Question, fields: Sequence[EntryField], days: Sequence[str]) -> tuple[JsonObject, ...]:
    lines = [f"{quote_inline(field.name)}: {_describe_values(field)}" for field in fields]
    if days:
        lines.append(f"Days: {', '.join(days)}")
    lines.append(f"Request: {quote_inline(question.text)}")
    return (*_build_beginning(), {"role": "user", "content": "\n".join(lines)})


@cache
def _build_beginning() -> tuple[JsonObject, ...]:
    turns: list[JsonObject] = [
        {"role": role, "content": text}
        for example in read_examples("select_examples")
        for role, text in zip(("user", "assistant"), example, strict=True)
    ]
    return ({"role": "system", "content": render("select")}, *turns)


def _describe_values(field: EntryField) -> str:
    if field.kind == "flag":
        return "true, false"
    if field.kind in SORTED:
        ordered = _sort_values(field)
        return f"{ordered[0]} to {ordered[-1]}"
    samples = [quote_inline(str(value)[:SEARCH_CHARS]) for value in field.values[:SHOWN_WORDS]]
    return ", ".join(samples) + (" ..." if len(field.values) > SHOWN_WORDS else "")


def _sort_values(field: EntryField) -> list[Scalar]:
    """The values of a field of numbers or of days, the least one first."""
    return sorted(field.values, key=lambda value: (0.0, value) if isinstance(value, str) else (float(value), ""))


def _build_schema(fields: Sequence[EntryField]) -> ResponseSchema:
    conditions = join_schemas(_iter_condition_schemas(fields))
    where: JsonObject = {"type": "array", "maxItems": MAX_CONDITIONS, "items": conditions}
    forms = [close_object({"where": where})]
    if sorted_names := [field.name for field in fields if field.kind in SORTED]:
        name: JsonObject = {"type": "string", "enum": [*sorted_names]}
        order: JsonObject = {"type": "string", "enum": [DESCENDING, ASCENDING]}
        forms.append(close_object({"where": where, "sort": name, "order": order, "take": {"type": "integer"}}))
    return ResponseSchema("entries", join_schemas(forms))


def _iter_condition_schemas(fields: Sequence[EntryField]) -> Iterator[JsonObject]:
    for field in fields:
        others: list[JsonValue] = [one.name for one in fields if one.kind == field.kind and one != field]
        name: JsonObject = {"type": "string", "enum": [field.name]}
        operators: JsonObject = {"type": "string", "enum": [*_OPERATORS[field.kind]]}
        yield close_object({"field": name, "is": operators, "value": _build_value_schema(field)})
        if field.kind in SORTED and others:
            than: JsonObject = {"type": "string", "enum": ["<", ">"]}
            yield close_object({"field": name, "is": than, "other": {"type": "string", "enum": others}})


def _build_value_schema(field: EntryField) -> JsonObject:
    match field.kind:
        case "flag":
            return {"type": "boolean"}
        case "number":
            return {"type": "number"}
        case "date":
            return {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
        case "word":
            return {"type": "string", "enum": [*map(str, field.values)]}
    return {"type": "string", "maxLength": SEARCH_CHARS}


def _read_filter(reply: JsonObject, fields: Sequence[EntryField]) -> EntryFilter | None:
    """The filter of a reply, without what does not fit the fields; None if it asks for all entries as they are."""
    by_name = {field.name: field for field in fields}
    where = reply.get("where")
    read = (
        _read_condition(one, by_name) for one in (where if isinstance(where, list) else ()) if isinstance(one, dict)
    )
    conditions = tuple(dict.fromkeys(one for one in read if one is not None))
    sort, take = reply.get("sort"), reply.get("take")
    if not isinstance(sort, str) or sort not in by_name or by_name[sort].kind not in SORTED:
        return EntryFilter(conditions) if conditions else None
    count = take if isinstance(take, int) and take > 0 else 0
    return EntryFilter(conditions, sort, reply.get("order") == DESCENDING, count)


def _read_condition(one: JsonObject, fields: Mapping[str, EntryField]) -> Condition | None:
    field, operator = fields.get(str(one.get("field"))), str(one.get("is"))
    value, other = one.get("value"), one.get("other")
    if field is None or operator not in _OPERATORS[field.kind]:
        return None
    if isinstance(other, str) and other in fields:
        is_alike = other != field.name and fields[other].kind == field.kind
        return Condition(field.name, operator, other=other) if is_alike else None
    if not isinstance(value, str | int | float):
        return None
    if (fitting := _fit_value(value, field)) is None:
        return None
    return Condition(field.name, operator, fitting)


def _fit_value(value: Scalar, field: EntryField) -> Scalar | None:
    """A value as the entries have it: servers that know no schemas of replies let a model write a number or a yes as a
    text. None for one that the field cannot have."""
    text = str(value)
    match field.kind:
        case "flag":
            return {"true": True, "false": False}.get(text.casefold())
        case "number":
            with suppress(ValueError):
                number = float(text) if isinstance(value, str) else value
                number = int(number) if isinstance(number, float) and number.is_integer() else number
                return number if not isinstance(number, bool) and abs(number) < MAX_NUMBER else None
            return None
        case "word":
            return next((one for one in field.values if fold(str(one)) == fold(text)), value)
    return text[:SEARCH_CHARS]


def _list_days(question: Question, fields: Sequence[EntryField]) -> list[str]:
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


def _leave_out_unstated(
    chosen: EntryFilter, fields: Sequence[EntryField], question: Question, days: Sequence[str]
) -> EntryFilter:
    """The filter without figures and days that the request does not state: a small model fills them in. The least value
    of a field stands for its first entry, the largest for its last one."""
    by_name = {field.name: field for field in fields}
    stated = StatedValues([question.text], is_loose=True)
    months = [one for mention in find_dates(question.text) for one in mention.readings if one.day is None]
    left: list[Condition] = []
    for condition in chosen.conditions:
        field, value = by_name[condition.field], condition.value
        is_number = field.kind == "number" and (value == 0 or stated.hold(str(value), field.name))
        is_day = field.kind == "date" and (value in (*days, question.today) or _bounds_month(str(value), months))
        if condition.other or field.kind not in SORTED or is_number or is_day:
            left.append(condition)
        elif not chosen.sort and len(chosen.conditions) == 1 and (end := _find_end(condition, field)):
            chosen = replace(chosen, sort=field.name, descending=end == DESCENDING, take=1)
    return replace(chosen, conditions=tuple(left))


def _find_end(condition: Condition, field: EntryField) -> str:
    """The order in which the entry that a condition means comes first; "" if it means none of both ends. Where entries
    are without a value, it may mean these: "not back yet" is written as the first day of a return."""
    if field.has_gaps:
        return ""
    ordered = _sort_values(field)
    if str(condition.value) == str(ordered[0]) and condition.operator in ("=", "<", "<="):
        return ASCENDING
    return DESCENDING if str(condition.value) == str(ordered[-1]) and condition.operator in ("=", ">", ">=") else ""


def _bounds_month(value: str, months: Iterable[DateValue]) -> bool:
    """Whether a day is the first or last of a month that is named, or the first of the next one."""
    with suppress(ValueError):
        year, month, day = map(int, value.split("-"))
        near = {one.month for one in months if one.year in (None, year)}
        return month in near or (day == 1 and (month - 2) % 12 + 1 in near)
    return False


def _select(
    chosen: EntryFilter,
    fields: Sequence[EntryField],
    question: Question,
    entries: Sequence[JsonObject],
    flat: Sequence[Entry],
) -> Selection | None:
    """What the filter selects. If nothing meets all conditions, those that the request does not state are given up,
    then the last ones: of "is Ann's order paid?" the order of Ann stays, which is not paid."""
    places = apply_filter(flat, chosen)
    missed: tuple[Condition, ...] = ()
    if not places:
        named = tuple(_iter_named(fields, question, chosen.conditions))
        stated = tuple(one for one in chosen.conditions if _is_stated(one, fields, question))
        tried = [(*stated, *named), *(stated[:end] for end in range(len(stated) - 1, 0, -1))]
        for conditions in tried:
            places = apply_filter(flat, replace(chosen, conditions=conditions)) if conditions else []
            if places:
                missed = tuple(one for one in stated if one not in conditions)
                chosen = replace(chosen, conditions=conditions)
                break
        if not places and stated == chosen.conditions and not any(one.operator == CONTAINS for one in stated):
            return Selection((), quote_inline(f"no entry with {name_conditions(stated)}, of {len(entries)}"))
    if not places or (len(places) == len(entries) and not chosen.sort):
        return None
    heading = _describe(chosen, len(places), len(entries))
    if missed:
        heading = quote_inline(f"no entry with {name_conditions((*chosen.conditions, *missed))}; {heading}")
    return Selection(tuple(entries[place] for place in places), heading)


def _is_stated(condition: Condition, fields: Sequence[EntryField], question: Question) -> bool:
    """Whether the request has a word of a condition's value, and all figures of one that the model wrote; true of
    fields that hold no texts."""
    kind = next(field.kind for field in fields if field.name == condition.field)
    figures = set(_FIGURE.findall(str(condition.value))) if kind == "text" else set()
    is_made_up = not figures.issubset(_FIGURE.findall(question.text))
    return kind not in ("word", "text") or (not is_made_up and _names_value(condition.value, question))


def _names_value(value: Scalar, question: Question) -> bool:
    """Whether the request has a value, or one of its words."""
    folded, text = fold(str(value)), fold(question.text)
    if re.search(rf"(?<!\w){re.escape(folded)}(?!\w)", text):  # a code is one word, and `\w+` finds its parts
        return True
    spoken = set(_WORD.findall(text))
    stems = {stem for stem in list_word_stems(question.text) if len(stem) >= SHORTEST_STEM}
    return any(word in spoken or any(word.startswith(stem) for stem in stems) for word in folded.split())


def _iter_named(
    fields: Sequence[EntryField], question: Question, conditions: Iterable[Condition]
) -> Iterator[Condition]:
    """Conditions for values that the request names in fields of words without a condition that it states."""
    own = {one.field for one in conditions if _is_stated(one, fields, question)}
    for field in fields:
        named = [value for value in field.values if field.kind == "word" and _names_value(value, question)]
        if len(named) == 1 and field.name not in own:
            yield Condition(field.name, "=", named[0])


def _describe(chosen: EntryFilter, count: int, total: int) -> str:
    """In words what was selected."""
    order = DESCENDING if chosen.descending else ASCENDING
    parts = [f"{count} of {total} entries"]
    if chosen.conditions:
        parts.append(f"with {name_conditions(chosen.conditions)}")
    if chosen.sort:
        ordered = f"by {chosen.sort}, {order}"
        parts.append(f"the first {ordered}" if chosen.take else ordered)
    return quote_inline(", ".join(parts))


def format_entries(selection: Selection) -> str:
    """A selection as text for a model: its heading and an entry a line."""
    lines = (json.dumps(entry, ensure_ascii=False) for entry in selection.entries)
    return "\n".join((f"[{selection.heading}:]", *lines))
