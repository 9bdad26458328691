"""The table on a sheet: lines above it, its header over one or more rows, and the rows below."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.workbooks.sheets import Sheet, TypedValue, Workbook, iter_merged

_LOOK_AHEAD = 50
"""Rows that show how wide a table is."""
_MAX_TITLES = 20
_MAX_HEADER_ROWS = 4
_YEARS = range(1900, 2101)
_WIDTH_SHARE = 0.5
"""Of the cells of the widest row: a row with fewer stands above the table."""


class SheetTable(NamedTuple):
    """A sheet as a table. Numbers of rows and columns count from 1, as in the file.

    `titles` are lines above the table; `names` are those of `columns`, joined over the rows of the header; `has_header`
    is false if the first row holds values.
    """

    titles: tuple[str, ...]
    names: tuple[str, ...]
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    has_header: bool
    first_row: int
    covered: Mapping[tuple[int, int], tuple[int, int]]
    """For each cell that a merge covers, the cell that it shows."""


def find_table(book: Workbook, sheet: Sheet, *, with_hidden: bool = False) -> SheetTable | None:
    """The table of a sheet without its hidden rows and columns; None if nothing is there."""
    covered = {(row, column): (top, left) for row, column, top, left in iter_merged(sheet)}
    hidden_rows = frozenset() if with_hidden else frozenset(sheet.hidden_rows)
    hidden_columns = frozenset() if with_hidden else frozenset(sheet.hidden_columns)
    used: dict[int, list[int]] = {}
    for row, cells in sorted(sheet.rows.items()):
        visible_columns = [column for column in cells if column not in hidden_columns and book.show(sheet, row, column)]
        if visible_columns and row not in hidden_rows:
            used[row] = visible_columns
    for (row, left), column in {} if with_hidden else find_moved_cells(sheet).items():
        if book.show(sheet, row, left):
            used.setdefault(row, []).append(column)
    if not used:
        return None
    used = {row: sorted(set(places)) for row, places in sorted(used.items())}
    rows = list(used)
    columns = tuple(sorted({column for places in used.values() for column in places}))
    layout = _Layout(book, sheet, covered, columns)
    top = layout.find_top(rows, used)
    bottom = layout.find_bottom(rows, top)
    titles = [" ".join(layout.show_title(row, column) for column in used[row]) for row in rows[:top]]
    return SheetTable(
        titles=tuple(titles),
        names=tuple(layout.join_names(rows[top : bottom + 1])),
        columns=columns,
        rows=tuple(rows[bottom + 1 :]),
        has_header=layout.is_header(rows[top]),
        first_row=rows[top],
        covered=covered,
    )


def show_cell(book: Workbook, sheet: Sheet, table: SheetTable, row: int, column: int) -> str:
    """A cell of the table's rows. One merged downwards is in every row, one merged to the right in its first column."""
    top, left = table.covered.get((row, column), (row, column))
    return book.show(sheet, top, left) if _is_first(table, left, column) else ""


def get_typed_cell(book: Workbook, sheet: Sheet, table: SheetTable, row: int, column: int) -> TypedValue | None:
    """The typed value of a cell, merged cells as in `show_cell`; but a number is in the first row only, as a sum counts
    it. A year, and what the first column has, names rows and is in each."""
    top, left = table.covered.get((row, column), (row, column))
    if not _is_first(table, left, column):
        return None
    typed = book.get_typed(sheet, top, left)
    return None if top < row and is_counted_once(table, typed, column) else typed


def is_counted_once(table: SheetTable, typed: TypedValue | None, column: int) -> bool:
    """Whether a value that is merged downwards is an amount: it belongs to all of its rows together."""
    is_amount = typed is not None and typed.kind in {"general", "number", "duration"} and not _is_year(typed)
    return is_amount and column != table.columns[0]


def find_moved_cells(sheet: Sheet) -> dict[tuple[int, int], int]:
    """The cells of hidden columns that a merge shows, by row and column, each with the column where it is seen."""
    hidden = sheet.hidden_columns
    visible = [column for column in range(1, max(hidden, default=0) + 2) if column not in hidden]
    moved: dict[tuple[int, int], int] = {}
    for merge in sheet.merges:
        if merge.left in hidden and merge.top not in sheet.hidden_rows:
            column = visible[bisect_left(visible, merge.left)]
            if column <= merge.right and merge.left in sheet.rows.get(merge.top, ()):
                moved[merge.top, merge.left] = column
    return moved


def _is_first(table: SheetTable, left: int, column: int) -> bool:
    """Whether a column is the first of the table's that a merge from `left` on covers."""
    return left == column or table.columns[bisect_left(table.columns, left)] == column


class _Layout:
    def __init__(
        self,
        book: Workbook,
        sheet: Sheet,
        covered: Mapping[tuple[int, int], tuple[int, int]],
        columns: Sequence[int],
    ) -> None:
        self._book = book
        self._sheet = sheet
        self._covered = covered
        self._columns = columns

    def find_top(self, rows: Sequence[int], used: Mapping[int, Sequence[int]]) -> int:
        """The index of the first row that is about as wide as the table; those above it are titles."""
        first = rows[: _MAX_TITLES + 1]
        width = max(len(used[row]) for row in rows[:_LOOK_AHEAD])
        for index, row in enumerate(first):
            filled = sum(bool(self._show(row, column)) for column in self._columns)
            if width < 2 or (len(used[row]) >= 2 and filled >= _WIDTH_SHARE * width):
                return index
        return 0

    def find_bottom(self, rows: Sequence[int], top: int) -> int:
        """The index of the header's last row."""
        bottom = top
        for _ in range(_MAX_HEADER_ROWS):
            row = rows[bottom]
            merges = [one for one in self._sheet.merges if one.top <= row <= one.bottom and one.top >= rows[top]]
            below = max((one.bottom for one in merges), default=row)
            spans = [one for one in merges if one.right > one.left and one.bottom == row]
            following = rows[bottom + 1] if bottom + 1 < len(rows) else None
            if following is None or not (following <= below or self._has_names_below(spans, following)):
                break
            bottom += 1
        return bottom if self.is_header(rows[bottom]) else top

    def _has_names_below(self, spans: Sequence[object], row: int) -> bool:
        """Whether a row names the columns below a merged name, and nothing else."""
        return bool(spans) and self.is_header(row)

    def is_header(self, row: int) -> bool:
        """Whether a row has no values: texts and years may be names."""
        for column in self._columns:
            typed = self._book.get_typed(self._sheet, *self._covered.get((row, column), (row, column)))
            if typed is not None and typed.kind != "text" and not _is_year(typed):
                return False
        return True

    def join_names(self, rows: Sequence[int]) -> list[str]:
        """The name of each column: what stands above it in the header, each text once."""
        return [
            " ".join(dict.fromkeys(text for row in rows if (text := self._show(row, column))))
            for column in self._columns
        ]

    def show_title(self, row: int, column: int) -> str:
        """A cell above the table, or the one that a merge shows there."""
        return self._book.show(self._sheet, row, column) or self._show(row, column)

    def _show(self, row: int, column: int) -> str:
        return self._book.show(self._sheet, *self._covered.get((row, column), (row, column)))


def _is_year(typed: TypedValue) -> bool:
    return typed.kind in {"general", "number"} and isinstance(typed.value, float) and typed.value in _YEARS
