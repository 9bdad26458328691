"""Sheets of a workbook as text with types: dates, times, spans and booleans keep theirs, codes stay text."""

import csv
import datetime as dt
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from agent.text.table_head import NO_VALUES
from agent.workbooks import Sheet, Workbook, open_workbook
from agent.workbooks.number_formats import GENERAL, find_unit
from agent.workbooks.sheet_reader import MAX_CELLS
from agent.workbooks.sheets import TypedValue, format_address, join_addresses
from agent.workbooks.tables import SheetTable, find_tables, get_typed_cell, is_counted_once, show_cell
from mcp_tools.tables.conversion import NUMBER, describe_units
from mcp_tools.tables.numbers import find_common_mark, find_text_unit, make_plain_number
from mcp_tools.tables.text_files import InputError, open_temporary_file

MAX_TABLES = 200
"""Tables of a workbook that are read; each is a file of its own."""
MAX_EXACT_INTEGER = 2**53
"""The largest integer up to which a double holds every integer."""
_NOTHING = frozenset({"", *NO_VALUES})
_FEW = 0.2
"""The share of texts in a column up to which a note says that they are why it is text."""
_NUMBERS = frozenset({"general", "number"})
_TYPES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"date"}), "DATE"),
    (frozenset({"date", "datetime"}), "TIMESTAMP"),
    (frozenset({"time"}), "TIME"),
    (frozenset({"time", "duration"}), "INTERVAL"),
    (frozenset({"boolean"}), "BOOLEAN"),
)
"""The type of a column by what all of its values are; the first that holds them all."""


@dataclass
class SheetText:
    """A sheet's rows as CSV behind a descriptor. `types` are SQL types by column, empty where the text decides;
    `formats` are how the sheet shows the columns' numbers."""

    name: str
    descriptor: int
    names: list[str]
    types: list[str]
    formats: list[str]
    notes: list[str] = field(default_factory=list)


def read_sheets(descriptor: int) -> list[SheetText]:
    """The sheets that are not empty. Raises `InputError`."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        try:
            book = open_workbook(file)
            return _write_tables(book)
        except (MemoryError, InputError):
            raise
        except Exception as error:  # the boundary to a parser of untrusted files, which raises what it likes
            raise InputError(f"it is not a readable workbook ({type(error).__name__})") from error


def _write_tables(book: Workbook) -> list[SheetText]:
    texts: list[SheetText] = []
    left_out: dict[str, None] = {}
    for sheet in book.sheets:
        for table in find_tables(book, sheet, with_hidden=True):
            if len(texts) == MAX_TABLES:
                left_out[sheet.name] = None
                break
            texts.append(_write(book, sheet, table))
    if left_out:
        texts[0].notes.append(
            f"the workbook has more than {MAX_TABLES} tables; not or not wholly read: "
            f"sheets {join_addresses([*left_out])}"
        )
    return texts


def _write(book: Workbook, sheet: Sheet, table: SheetTable) -> SheetText:
    left_out = _find_totals(sheet, table)
    table = table._replace(rows=tuple(row for row in table.rows if row not in left_out))
    columns = [_Column(book, sheet, table, column) for column in table.columns]
    text = open_temporary_file()
    with os.fdopen(os.dup(text), "w", encoding="utf-8", newline="") as output:
        writer = csv.writer(output, quoting=csv.QUOTE_ALL)
        for row in table.rows if table.has_header else (table.first_row, *table.rows):
            writer.writerow([column.format(row) for column in columns])
    notes = [f"above the table: {title}" for title in table.titles]
    notes += book.describe_formulas(sheet)
    if errors := [address for column in columns for address in column.lost_errors]:
        notes.append(f"sheet {sheet.name}: cells with an error have no value here: {join_addresses(errors)}")
    notes += _describe_rows(book, sheet, table, left_out)
    notes += chain.from_iterable(column.describe() for column in columns)
    types, formats = [column.type for column in columns], [column.format_code for column in columns]
    names = list(table.names) if table.has_header else [""] * len(columns)
    return SheetText(sheet.name, text, names, types, formats, notes)


def _find_totals(sheet: Sheet, table: SheetTable) -> dict[int, str]:
    """The rows of the table that only hold the totals of a table of the sheet, with their addresses."""
    return {
        area.top: f"{format_address(area.top, area.left)}:{format_address(area.bottom, area.right)}"
        for area in sheet.totals
        if area.top in table.rows
        and all(
            area.left <= column <= area.right
            for column in sheet.rows.get(area.top, ())
            if table.columns[0] <= column <= table.columns[-1]
        )
    }


def _describe_rows(book: Workbook, sheet: Sheet, table: SheetTable, left_out: Mapping[int, str]) -> Iterator[str]:
    """Yields what the rows do not show: which were left out, which a reader of the sheet does not see, and which share
    a number."""
    if left_out:
        yield f"sheet {sheet.name}: totals of a table were left out: {join_addresses(list(left_out.values()))}"
    downwards = dict.fromkeys((top, left) for (row, _), (top, left) in table.covered.items() if row > top)
    shared = [
        format_address(top, left)
        for top, left in downwards
        if top in table.rows and is_counted_once(table, book.get_typed(sheet, top, left), left)
    ]
    if shared:
        yield (
            f"sheet {sheet.name}: numbers of merged cells are in the first of their rows only: {join_addresses(shared)}"
        )
    if struck := book.list_struck(sheet):
        yield f"sheet {sheet.name}: cells are struck out, and their numbers are counted here: {join_addresses(struck)}"
    if not sheet.is_shown:
        yield f"sheet {sheet.name} is hidden"
    hidden = sum(row in sheet.hidden_rows for row in table.rows)
    if hidden:
        verb = "row is" if hidden == 1 else "rows are"
        yield f"sheet {sheet.name}: {hidden:,} {verb} hidden, perhaps by a filter, and counted here"
    if sheet.is_cut:
        yield f"sheet {sheet.name} was cut after {MAX_CELLS:,} cells"


class _Column:
    """A column of a sheet: its type, and how its values are written."""

    def __init__(self, book: Workbook, sheet: Sheet, table: SheetTable, column: int) -> None:
        self._book = book
        self._sheet = sheet
        self._table = table
        self._column = column
        rows: Sequence[int] = table.rows if table.has_header else (table.first_row, *table.rows)
        values = [value for row in rows if (value := self._get(row)) is not None]
        kinds = frozenset(value.kind for value in values) - {"error"}
        texts = [
            text for value in values if value.kind == "text" and (text := str(value.value).strip()) not in _NOTHING
        ]
        self._as_shown = False
        self._mark = ""
        self._texts = texts
        self._count = len(values)
        self._units: list[str] = []
        self.format_code = self._find_format(rows)
        self._mixes_per_cent = False
        self.type = self._choose_type(kinds, texts)
        self.lost_errors = (
            [] if self._as_shown else [format_address(r, column) for r in rows if self._is_error(self._get(r))]
        )

    def _get(self, row: int) -> TypedValue | None:
        return get_typed_cell(self._book, self._sheet, self._table, row, self._column)

    def _is_error(self, value: TypedValue | None) -> bool:
        return value is not None and value.kind == "error"

    def _choose_type(self, kinds: frozenset[str], texts: Sequence[str]) -> str:
        """The SQL type. Empty where the values are text, whose type is decided with that of other columns."""
        kinds = kinds if texts else kinds - {"text"}
        if kinds <= _NUMBERS:
            return NUMBER if kinds else ""
        if kinds & _NUMBERS and kinds <= _NUMBERS | {"text"} and (marks := find_common_mark(texts)) is not None:
            # A cell shows 0.05 as 5%: beside it, the text 10% is 0.1, and beside a bare 5 nobody knows.
            units = {*self._units, *map(find_text_unit, texts)}
            self._mixes_per_cent = len({"%" in unit for unit in units}) > 1
            if not self._mixes_per_cent:
                self._mark, self._units = marks, sorted(units)
                return NUMBER
        name_of_type = next((name for members, name in _TYPES if kinds <= members), None)
        if name_of_type is None:
            self._as_shown = True
            return "" if kinds == {"text"} else "VARCHAR"
        return name_of_type

    def _find_format(self, rows: Sequence[int]) -> str:
        codes: Counter[str] = Counter()
        for row in rows:
            cell = self._sheet.rows.get(row, {}).get(self._column)
            if cell is not None and not isinstance(cell.value, str | bool):
                codes[self._book.get_format(cell)] += 1
        self._units = sorted({find_unit(code) for code in codes})
        codes.pop(GENERAL, None)
        return codes.most_common(1)[0][0] if codes else ""

    def describe(self) -> Iterator[str]:
        """Yields which units the numbers mix, and why a column is text if most of its values are not."""
        name = self._table.names[self._table.columns.index(self._column)] if self._table.has_header else ""
        name = " ".join(name.split()) or format_address(self._table.first_row, self._column)
        if self.type == NUMBER and (note := describe_units(name, self._units)):
            yield note
        if self._mixes_per_cent:
            yield (
                f"column {name} is compared as text, because only some of its values are in per cent, and some are "
                f"texts, such as {self._texts[0][:40]!r}; convert each kind on its own"
            )
        elif self._as_shown and self.type and 0 < len(self._texts) <= _FEW * self._count:
            yield (
                f"column {name} is compared as text, because {len(self._texts):,} of {self._count:,} values are texts, "
                f"such as {self._texts[0][:40]!r}; use TRY_CAST"
            )

    def show(self, row: int) -> str:
        """A cell as the sheet shows it."""
        return show_cell(self._book, self._sheet, self._table, row, self._column)

    def format(self, row: int) -> str:
        """A cell as text that the column's type reads back."""
        value = self._get(row)
        if value is None:
            return ""
        if self._as_shown:
            return self.show(row)
        if value.kind == "text" and self.type:
            text = str(value.value).strip()
            return "" if text in _NOTHING else make_plain_number(text, self._mark)
        return "" if value.kind == "error" else _format_typed(value.value)


def _format_typed(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return f"{value.total_seconds():f} seconds"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < MAX_EXACT_INTEGER:
            return str(int(value))
        return repr(float(f"{value:.15g}"))  # Excel keeps 15 digits: 0.1 + 0.2 is 0.3
    return str(value)
