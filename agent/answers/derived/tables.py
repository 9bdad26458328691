"""The tables of a text with their rows: lists of JSON objects, CSV and Markdown; and the numbers beside them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from agent.text.numbers import NumberMention, find_numbers
from agent.text.values import find_values

MAX_CELLS: Final = 60_000
"""Cells that are read."""
_MAX_SCALARS: Final = 10
_MIN_AMOUNTS, _MAX_OBJECTS = 3, 40
_MAX_COLUMNS: Final = 100
_MAX_FAILURES: Final = 20
"""Beginnings of JSON that turned out to be none, after which no more are tried: each reads on to the fault."""
_DECODER: Final = json.JSONDecoder()
_JSON_START: Final = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_SEPARATORS: Final = ("\t", "|", ";", ",")
_RULE: Final = re.compile(r"[\s|:+]*+-[\s|:+-]*+")
_PLAIN: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,2}|\.\d{4,9})?")
_KEY_WORDS: Final = """
id nr no number nummer year jahr år année annee week woche vecka semaine kw month monat månad mois day tag dag jour
index pos position rank rang rad zeile line ligne
"""
_NAMES_OF_KEYS: Final = frozenset(_KEY_WORDS.split())
"""The last words of columns whose numbers name rows: nobody adds them up."""


@dataclass(slots=True)
class Table:
    """The rows of a table by columns: numbers (None where a cell holds none), and texts in small letters."""

    size: int
    numbers: dict[str, list[float | None]] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    marks: list[float | None] = field(default_factory=list)
    """The keys of the rows, if these are numbers: marks, with how often each was given."""


def read_number(cell: object) -> float | None:
    """The number of a cell that holds nothing else but its unit."""
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None
    if not isinstance(cell, str):
        return float(cell)
    text = cell.strip()
    if _PLAIN.fullmatch(text):
        return float(text)
    if not text or len(text) > 40 or not any(map(str.isdigit, text)):
        return None
    numbers = find_numbers(text)
    if len(numbers) != 1 or len(numbers[0].text) < len(text) - 4:
        return None
    return float(numbers[0].value)


def read_tables(text: str) -> tuple[list[Table], list[float]]:
    """The tables of a text, and the first numbers outside of them."""
    tables: list[Table] = []
    scalars: list[float] = []
    budget = [MAX_CELLS]
    rest: list[str] = []
    at = 0
    for start, end, value in _iter_json(text):
        rest.append(text[at:start])
        at = end
        _walk(value, tables, scalars, budget)
    rest.append(text[at:])
    _read_lines("\n".join(rest), tables, scalars, budget)
    return tables, scalars[:_MAX_SCALARS]


def _iter_json(text: str) -> Iterator[tuple[int, int, object]]:
    """Yields the JSON objects and lists that begin a line, with their spans."""
    at = failures = 0
    for match in _JSON_START.finditer(text):
        if match.end() < at or failures == _MAX_FAILURES:
            continue
        try:
            value, at = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            failures += 1
            continue
        yield match.start(), at, value


def _walk(value: object, tables: list[Table], scalars: list[float], budget: list[int]) -> None:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            rows = [{"": key, **row} for key, row in one.items() if isinstance(row, Mapping)]
            if len(rows) > 1 and len(rows) == len(one):
                _add(rows, tables, budget)
                continue
            _add_object(one, tables)
            for part in one.values():
                if isinstance(part, Mapping | list):
                    pending.append(part)
                elif (number := _read_json_number(part)) is not None and len(scalars) < _MAX_SCALARS:
                    scalars.append(number)
        elif isinstance(one, list):
            entries = [row for row in one if isinstance(row, Mapping)]
            if len(entries) > 1:
                _add(entries, tables, budget)
                pending += [part for row in entries for part in row.values() if isinstance(part, list)]
            else:
                pending += [part for part in one if isinstance(part, Mapping | list)]


def _add_object(one: Mapping[object, object], tables: list[Table]) -> None:
    """Adds the numbers of an object as a column whose rows its keys name."""
    cells = {str(key): number for key, part in one.items() if (number := _read_json_number(part)) is not None}
    amounts = {key: number for key, number in cells.items() if _get_last_word(key) not in _NAMES_OF_KEYS}
    if len(amounts) >= _MIN_AMOUNTS and len(tables) < _MAX_OBJECTS and not _is_all_years(list(amounts.values())):
        table = Table(len(amounts), {"": list(amounts.values())}, {"": [key.lower() for key in amounts]})
        marks = [read_number(key) for key in amounts]
        table.marks = [] if None in marks else marks
        tables.append(table)


def _get_last_word(name: str) -> str:
    return re.split(r"[\W_]+", name.lower())[-1]


def _read_json_number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _add(rows: Sequence[Mapping[str, object]], tables: list[Table], budget: list[int]) -> None:
    flat = [
        {
            name: value
            for key, part in row.items()
            for name, value in (part.items() if isinstance(part, Mapping) else ((key, part),))
        }
        for row in rows
    ]
    names = list(dict.fromkeys(str(name) for row in flat for name in row))[:_MAX_COLUMNS]
    budget[0] -= len(flat) * len(names)
    if budget[0] >= 0:
        tables.append(_make_table({name: [row.get(name) for row in flat] for name in names}, len(flat)))


def _read_lines(text: str, tables: list[Table], scalars: list[float], budget: list[int]) -> None:
    block: list[list[str]] = []
    kind: tuple[str, int] | None = None
    for line in (*text.splitlines(), ""):
        if "|" in line and _RULE.fullmatch(line):
            continue
        own = _find_kind(line)
        if own is None or own != kind:
            _close(block, tables, scalars, budget)
            block = []
        kind = own
        if own is not None:
            block.append([cell.strip() for cell in line.strip().strip("|").split(own[0])])
        else:
            _note_scalars(line, scalars)


def _find_kind(line: str) -> tuple[str, int] | None:
    bare = line.strip().strip("|")
    for separator in _SEPARATORS:
        if (count := bare.count(separator)) and (separator != "," or ", " not in bare):
            return separator, count
    return None


def _close(block: list[list[str]], tables: list[Table], scalars: list[float], budget: list[int]) -> None:
    if not block:
        return
    budget[0] -= len(block) * len(block[0])
    if len(block) < 3 or budget[0] < 0:
        for row in block[: 2 * _MAX_SCALARS]:
            _note_scalars(" ; ".join(row), scalars)
        return
    has_head = not any(_is_amount(cell) for cell in block[0])
    names = block[0] if has_head else [str(place) for place in range(len(block[0]))]
    rows = block[1:] if has_head else block
    columns = {
        f"{place} {name}" if names.count(name) > 1 else name: [row[place] for row in rows]
        for place, name in enumerate(names[:_MAX_COLUMNS])
    }
    tables.append(_make_table(columns, len(rows)))


def _is_amount(cell: str) -> bool:
    """Whether a cell is a number that no head of a column is: heads may be years."""
    number = read_number(cell)
    return number is not None and not (number.is_integer() and 1900 <= number <= 2100)


def _note_scalars(line: str, scalars: list[float]) -> None:
    if len(scalars) < _MAX_SCALARS and len(line) < 2_000:
        values = (one for one in find_values(line) if isinstance(one, NumberMention) and not one.is_word)
        scalars += [float(abs(one.value)) for one in values if abs(one.value) not in (0, 1) and not one.may_be_year]


def _make_table(columns: Mapping[str, Sequence[object]], size: int) -> Table:
    table = Table(size)
    for name, cells in columns.items():
        numbers = [read_number(cell) for cell in cells]
        count = sum(number is not None for number in numbers)
        is_amount = 2 * count >= size and count > 1 and _get_last_word(name) not in _NAMES_OF_KEYS
        if is_amount and not _is_all_years(numbers):
            table.numbers[name] = numbers
            continue
        if any(isinstance(cell, str | int) for cell in cells):
            table.texts[name] = ["" if cell is None else str(cell).strip().lower() for cell in cells]
    return table


def _is_all_years(numbers: Sequence[float | None]) -> bool:
    return all(one is None or (one.is_integer() and 1900 <= one <= 2100) for one in numbers)
