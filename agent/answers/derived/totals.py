"""Totals and counts that a reader takes from a text: of the columns of its tables, of its lists, of its lines, and of
what a line counts up ("1,847 passed, 3 failed, 22 skipped")."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agent.answers.derived.tables import MAX_CELLS, read_number
from agent.text.dates import find_dates
from agent.text.pieces import split_pieces

_SEPARATORS = ("\t", "|", ";", ",")
_MIN_ADDENDS = 3
_COUNTED = r"(?<![\w.,-])\d{1,3}(?:(?:[,.]\d{3})+|\d{0,6})[ \u00a0][^\W\d_]+"
_COUNTS = re.compile(rf"{_COUNTED}(?:,[ ]{_COUNTED}){{{_MIN_ADDENDS - 1},20}}")
"""At least three counts with a word each."""
_COUNT = re.compile(r"\d+(?:[,.]\d{3})*")


def list_totals(text: str) -> list[float]:
    """The sums and averages of columns and JSON lists with at least three numbers, the sums of counts in a line, and
    counts of equal cells."""
    totals: list[float] = []
    for column in _iter_columns(text):
        numbers = [number for cell in column if (number := read_number(cell)) is not None]
        totals += _sum_up(numbers)
        totals += [float(count) for count in Counter(map(str, column)).values() if count > 1]
    for counts in _COUNTS.findall(text):
        if not find_dates(counts):  # "12 May, 14 June, 5 July"
            totals.append(float(sum(int(re.sub("[,.]", "", count)) for count in _COUNT.findall(counts))))
    return sorted(set(totals))


def list_counts(*texts: str) -> list[float]:
    """Counts lines, rows, list items and JSON entries."""
    counts: set[int] = set()
    for text in texts:
        lines = sum(bool(line.strip()) for line in text.splitlines())
        counts |= {lines, lines - 1}
        counts |= {len(value) for value in _iter_json_lists(text)}
        blocks = Counter(piece.block for piece in split_pieces(text[:50_000]) if piece.kind == "row" or piece.marker)
        counts |= set(blocks.values())
    return sorted(map(float, counts))


def _sum_up(numbers: Sequence[float]) -> list[float]:
    if len(numbers) < _MIN_ADDENDS:
        return []
    total = sum(numbers)
    return [abs(total), abs(total / len(numbers))]


def _iter_columns(text: str) -> Iterator[Sequence[object]]:
    """Yields the columns of JSON lists and of lines with the same number of separators."""
    for rows in _iter_json_lists(text):
        objects = [row for row in rows if isinstance(row, Mapping)]
        if len(objects) == len(rows):
            keys = {key: None for row in objects for key in row}
            yield from ([row.get(key) for row in objects] for key in keys)
        elif lists := [row for row in rows if isinstance(row, list)]:
            yield from zip(*lists, strict=False)
        else:
            yield rows
    tables: dict[tuple[str, int], list[list[str]]] = {}
    cells = 0
    for line in text.splitlines():
        for separator in _SEPARATORS:
            if (count := line.count(separator)) and cells < MAX_CELLS:
                tables.setdefault((separator, count), []).append(line.split(separator))
                cells += count + 1
    for table in tables.values():
        if len(table) >= _MIN_ADDENDS:
            yield from zip(*table, strict=True)


def _iter_json_lists(text: str) -> Iterator[list[object]]:
    """Yields the lists with at least two entries in the lines, or in the whole, of a text that are JSON."""
    for part in dict.fromkeys((text, *text.splitlines())):
        if part.lstrip()[:1] in ("{", "["):
            try:
                value = json.loads(part)
            except (ValueError, RecursionError):
                continue
            yield from _walk((value,))


def _walk(values: Iterable[object]) -> Iterator[list[object]]:
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            if len(value) > 1:
                yield value
            pending += value
        elif isinstance(value, dict):
            pending += value.values()
