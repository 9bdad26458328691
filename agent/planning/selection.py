"""Asks a small model which entries of a list a request is about, as a filter, and applies it.

Reading a list of ten entries with five fields, the 1.5B names wrong ones in two of three questions: it takes neighbours
for matches, and the last price for the lowest. The fields and their values alone it reads well, and a filter is exact.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.llm.port import ModelReply, ResponseSchema
from agent.llm.prompts import quote_inline, read_examples, render
from agent.llm.schema_derivation import join_schemas
from agent.planning.meant_filters import ASCENDING, DESCENDING, MeantFilter, Question, list_days
from agent.planning.parse import read_last_object
from agent.planning.rounds.input_schemas import close_object
from agent.text.entry_filters import (
    CONTAINS,
    EMPTY,
    GIVEN,
    MAX_NUMBER,
    ORDERED,
    Condition,
    EntryField,
    EntryFilter,
    FieldKind,
    Scalar,
    flatten_entry,
    list_fields,
)
from agent.text.terms import fold

LEAST_ENTRIES, MOST_ENTRIES = 4, 2_000
SHOWN_WORDS: Final = 12
MAX_CONDITIONS: Final = 3
SEARCH_CHARS: Final = 40
QUESTION_CHARS: Final = 600
_OPERATORS: Final[Mapping[FieldKind, tuple[str, ...]]] = {
    "flag": ("=",),
    "number": ("=", "<", ">", "<=", ">=", "!="),
    "date": ("=", "<", ">", "<=", ">="),
    "time": ("=", "<", ">", "<=", ">="),
    "word": ("=", "!="),
    "tags": ("=", "!="),
    "text": (CONTAINS,),
}
_FORMS: Final[Mapping[FieldKind, str]] = {"date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "time": "^[0-9]{2}:[0-9]{2}$"}

AskModel = Callable[[tuple[JsonObject, ...], ResponseSchema], Awaitable[ModelReply]]
"""Asks the model for a reply to messages that is bound to a schema. Raises `ModelError`."""


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
    days = list_days(question, fields)
    reply = await ask(_build_messages(question, fields, days), _build_schema(fields))
    chosen = _read_filter(read_last_object(reply.text, "where"), fields)
    if chosen is None:
        return None
    meant = MeantFilter(question, fields, days).read(chosen, flat)
    if meant is None:
        return None
    return Selection(tuple(entries[place] for place in meant.places), quote_inline(meant.heading))


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
        values = "true, false"
    elif field.kind in ORDERED:
        ordered = field.sort_values()
        values = f"{ordered[0]} to {ordered[-1]}"
    else:
        shown_values = [quote_inline(str(value)[:SEARCH_CHARS]) for value in field.values[:SHOWN_WORDS]]
        values = ", ".join(shown_values) + (" ..." if len(field.values) > SHOWN_WORDS else "")
    return f"{values}, or empty" if field.has_gaps else values


def _build_schema(fields: Sequence[EntryField]) -> ResponseSchema:
    conditions = join_schemas(_iter_condition_schemas(fields))
    where: JsonObject = {"type": "array", "maxItems": MAX_CONDITIONS, "items": conditions}
    forms = [close_object({"where": where})]
    if sorted_names := [field.name for field in fields if field.kind in ORDERED]:
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
        if field.kind in ORDERED and others:
            than: JsonObject = {"type": "string", "enum": ["<", ">"]}
            yield close_object({"field": name, "is": than, "other": {"type": "string", "enum": others}})
        if field.has_gaps:
            yield close_object({"field": name, "is": {"type": "string", "enum": [EMPTY, GIVEN]}})


def _build_value_schema(field: EntryField) -> JsonObject:
    if field.kind in ("flag", "number"):
        return {"type": "boolean" if field.kind == "flag" else "number"}
    if field.kind in _FORMS:
        return {"type": "string", "pattern": _FORMS[field.kind]}
    if field.kind in ("word", "tags"):
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
    if not isinstance(sort, str) or sort not in by_name or by_name[sort].kind not in ORDERED:
        return EntryFilter(conditions) if conditions else None
    count = take if isinstance(take, int) and take > 0 else 0
    return EntryFilter(conditions, sort, reply.get("order") == DESCENDING, count)


def _read_condition(one: JsonObject, fields: Mapping[str, EntryField]) -> Condition | None:
    field, operator = fields.get(str(one.get("field"))), str(one.get("is"))
    value, other = one.get("value"), one.get("other")
    if field is not None and operator in (EMPTY, GIVEN):
        return Condition(field.name, operator)
    if field is None or operator not in _OPERATORS[field.kind]:
        return None
    if isinstance(other, str) and other in fields:
        is_alike = other != field.name and fields[other].kind == field.kind
        return Condition(field.name, operator, other=other) if is_alike else None
    if not isinstance(value, str | int | float):
        return None
    fitting = _fit_value(value, field)
    return Condition(field.name, operator, fitting) if fitting is not None else None


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
        case "word" | "tags":
            return next((one for one in field.values if fold(str(one)) == fold(text)), value)
    return text[:SEARCH_CHARS]


def format_entries(selection: Selection) -> str:
    """A selection as text for a model: its heading and an entry a line."""
    lines = (json.dumps(entry, ensure_ascii=False) for entry in selection.entries)
    return "\n".join((f"[{selection.heading}:]", *lines))
