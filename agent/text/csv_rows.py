"""The rows of delimited text, each as the file has it. Used by ingestion and by SQL over files."""

import csv
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from agent.text.delimited import DELIMITERS, Dialect, is_rule, read_formula, strip_frame, swap_quotes, unescape_quotes

MAX_NAMED = 10
"""Rows that a note names by their numbers."""
_SPACES_BEHIND = re.compile(rf'(") +(?=[{DELIMITERS}\r\n]|\Z)')
_AT_END = "end of data"
"""Part of what the csv module says of a quote that is open where the text ends."""


class CsvRows:
    """Yields the rows of some lines. Those that a quote has drawn into one cell, because nothing closes it, are split
    line by line.

    `offset` is the number of the file's rows above the lines: notes count the rows of the whole file, from 1. The notes
    are complete after the last row.
    """

    def __init__(self, lines: Iterable[str], dialect: Dialect, *, offset: int = 0) -> None:
        # The default takes a cell of 128 KB for an error of the file. The limit is one for the process.
        csv.field_size_limit(sys.maxsize)
        self._lines = _prepare_lines(lines, dialect)
        self._read = partial(csv.reader, delimiter=dialect.delimiter, skipinitialspace=dialect.has_spaces)
        self._is_drawn = dialect.is_drawn
        self._has_apostrophes = dialect.has_apostrophes
        self._has_formulas = dialect.has_formulas
        self._offset = offset
        self._opened: list[int] = []
        self._unclear: list[int] = []
        self._open_at = 0
        self.line_count = 0
        """The lines that the rows so far have taken."""

    def __iter__(self) -> Iterator[list[str]]:
        for row in self._iter_rows():
            cells = list(map(swap_quotes, row)) if self._has_apostrophes else row
            cells = list(map(read_formula, cells)) if self._has_formulas else cells
            yield [cell.strip() for cell in cells] if self._is_drawn else cells

    def _iter_rows(self) -> Iterator[list[str]]:
        pending: list[str] = []

        def collect() -> Iterator[str]:
            for line in self._lines:
                pending.append(line)
                yield line

        number, width = self._offset, 0
        for row in self._read(collect()):
            self.line_count += len(pending)
            number += 1
            if len(pending) == 1:
                pending.clear()
                width = width or len(row)
                yield row
                continue
            rows = self._split(row, pending, number, width)
            pending.clear()
            number += len(rows) - 1
            width = width or len(rows[0])
            yield from rows

    def _split(self, row: list[str], lines: list[str], number: int, width: int) -> list[list[str]]:
        """The rows of several lines: one, unless its quotes are wrong and the lines are rows of their own."""
        fault = _find_fault(self._read, lines)
        if not fault:
            return [row]
        rows = list(self._read(lines, quoting=csv.QUOTE_NONE))
        width = width or len(rows[0])
        if _AT_END in fault:
            self._open_at = number
            return rows
        if width > 1 and all(len(one) == width for one in rows):
            self._opened.append(number)
            return rows
        self._unclear.append(number)
        return [row]

    def describe_faults(self) -> Iterator[str]:
        """Yields what is wrong with the quotes of the rows so far."""
        if self._open_at:
            yield f"row {self._open_at}: a quote is not closed; the rows from here on are read without quotes"
        if self._opened:
            yield f"{name_rows(self._opened)}: a quote is not closed; its lines are read without quotes"
        if self._unclear:
            yield f"{name_rows(self._unclear)}: quotes are not in pairs; a cell may hold the rows below it"


class UnevenRows:
    """The rows of a table that have more or fewer cells than its first ones, whose number is `width`."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._longer = _RowNumbers()
        self._shorter = _RowNumbers()

    def add(self, number: int, length: int) -> None:
        """Takes a row by its number and its length."""
        if length > self._width:
            self._longer.add(number)
        elif length < self._width:
            self._shorter.add(number)

    def describe(self) -> Iterator[str]:
        """Yields which rows are longer, and which are shorter."""
        if self._longer.count:
            yield (
                f"{self._longer.format('has', 'have')} more cells than the {self._width} of the first rows; "
                "their last cells are in columns of their own"
            )
        if self._shorter.count:
            yield f"{self._shorter.format('has', 'have')} fewer cells than the {self._width} of the first rows"


class _RowNumbers:
    """The first of some rows by their numbers, and how many there are."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[int] = []

    def add(self, number: int) -> None:
        self.count += 1
        if self.count <= MAX_NAMED:
            self._first.append(number)

    def format(self, singular: str, plural: str) -> str:
        return f"{name_rows(self._first, self.count)} {singular if self.count == 1 else plural}"


def name_rows(numbers: list[int], count: int = 0) -> str:
    """The first of some rows by their numbers, and how many more there are of `count` (default: those given)."""
    count = count or len(numbers)
    more = f" and {count - MAX_NAMED:,} more" if count > MAX_NAMED else ""
    listed = ", ".join(map(str, numbers[:MAX_NAMED])) + more
    return f"row {listed}" if count == 1 else f"rows {listed}"


def _prepare_lines(lines: Iterable[str], dialect: Dialect) -> Iterator[str]:
    for line in map(swap_quotes, lines) if dialect.has_apostrophes else lines:
        if dialect.is_drawn and is_rule(line):
            line = ""  # noqa: PLW2901 - what is drawn is no row
        elif dialect.has_frame:
            line = strip_frame(line)  # noqa: PLW2901 - without what is drawn around it
        yield unescape_quotes(line) if dialect.has_escapes else line


def _find_fault(read: Callable[..., Iterable[list[str]]], lines: list[str]) -> str:
    """What is wrong with the quotes of a row; empty if nothing is. Spaces behind a cell are nothing wrong."""
    try:
        for _ in read(io.StringIO(_SPACES_BEHIND.sub(r"\1", "".join(lines)), newline=""), strict=True):
            pass
    except csv.Error as error:
        return str(error)
    return ""
