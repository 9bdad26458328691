"""The tables on a sheet: lines above, a header over one or more rows, and the rows below."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, pairwise
from typing import NamedTuple

from agent.text.table_head import HeadCell, classify_text, count_contrast, find_head
from agent.workbooks.sheet_reader import Merge, Sheet, iter_merged
from agent.workbooks.sheets import TypedValue, Workbook

_LOOK_AHEAD = 72
"""Rows that show where a table begins."""
_MAX_TITLES = 20
_MAX_HEADER_ROWS = 4
_MAX_BESIDE = 20
"""Tables side by side; more groups of columns are one table with empty columns."""
_YEARS = range(1900, 2101)
_WIDTH_SHARE = 0.5
"""Of the cells of the widest row: a row with fewer is above the table."""


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


_Covered = Mapping[tuple[int, int], tuple[int, int]]
_Used = Mapping[int, Sequence[int]]
"""The columns that have something to show, by row."""


def find_tables(book: Workbook, sheet: Sheet, *, with_hidden: bool = False) -> list[SheetTable]:
    """The tables of a sheet without its hidden rows and columns, in reading order. There are several where empty rows
    or columns divide cells that each have a header of their own."""
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
    whole = _Layout(book, sheet, covered, {row: sorted(set(places)) for row, places in sorted(used.items())})
    return [_make_table(part) for region in _split_rows(whole) for part in _split_columns(region)]


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


def _make_table(layout: "_Layout") -> SheetTable:
    rows = layout.rows
    top = layout.find_top()
    bottom = layout.find_bottom(top)
    has_header = bottom > top or layout.is_header(rows[top])
    names = layout.join_names(rows[top : bottom + 1])
    if bottom == top:
        head = find_head(layout.make_grid(), top, gaps=layout.list_gaps())
        has_header = head.has_names
        merged = layout.count_merged_rows(head.top) if has_header else 0
        top, bottom = head.top - merged, max(head.bottom - 1, head.top)
        is_joined = bottom > head.top and not merged
        names = list(head.names) if is_joined else layout.join_names(rows[top : bottom + 1])
    titles = [" ".join(layout.show_title(row, column) for column in layout.used[row]) for row in rows[:top]]
    return SheetTable(
        titles=tuple(titles),
        names=tuple(names),
        columns=layout.columns,
        rows=tuple(rows[bottom + 1 :]),
        has_header=has_header,
        first_row=rows[top],
        covered=layout.covered,
    )


def _split_rows(layout: "_Layout") -> Iterator["_Layout"]:
    """Yields the rows of each table. Lines of one cell between two tables are above the lower one."""
    tables: list[list[int]] = []
    lines: list[int] = []
    for block in _group(layout.rows, layout.hidden_rows):
        if tables and all(len(layout.used[row]) == 1 for row in block):
            lines += block
            continue
        first = [*lines[-_MAX_TITLES:], *block[:_LOOK_AHEAD]]
        is_next = tables and layout.select(first).is_table() and layout.select(tables[-1][:_LOOK_AHEAD]).is_table()
        if is_next or not tables:
            tables.append([])
        tables[-1] += [*lines, *block]
        lines = []
    if lines:
        tables[-1] += lines
    yield from (layout.select(rows) for rows in tables)


def _split_columns(layout: "_Layout") -> Iterator["_Layout"]:
    """Yields the columns of each table, if each begins with a column that names its rows or in a row of its own."""
    groups = _group(layout.columns, layout.hidden_columns)
    if len(groups) == 1:
        yield layout
        return
    parts = [layout.select(layout.rows, frozenset(columns)) for columns in groups] if len(groups) <= _MAX_BESIDE else []
    has_own_rows = len({part.rows[0] for part in parts}) == len(parts)
    is_divided = len(parts) > 1 and all(part.is_table() and (has_own_rows or part.names_rows()) for part in parts)
    yield from parts if is_divided else [layout]


def _group(numbers: Sequence[int], hidden: AbstractSet[int]) -> list[list[int]]:
    """Rows or columns in groups that follow each other, but for hidden ones."""
    groups = [[number] for number in numbers[:1]]
    for before, number in pairwise(numbers):
        if all(one in hidden for one in range(before + 1, number)):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


class _Layout:
    """The cells of a sheet, or of some of its rows and columns."""

    def __init__(self, book: Workbook, sheet: Sheet, covered: _Covered, used: _Used) -> None:
        self._book = book
        self._sheet = sheet
        self.covered = covered
        self.used = used
        self.rows = tuple(used)
        self.columns = tuple(sorted({column for places in used.values() for column in places}))
        self.hidden_rows = sheet.hidden_rows
        self.hidden_columns = sheet.hidden_columns

    def select(self, rows: Sequence[int], columns: AbstractSet[int] | None = None) -> "_Layout":
        """The layout of some of the rows, and of some of the columns if they are given."""
        if len(rows) == len(self.rows) and columns is None:
            return self
        chosen = {row: [one for one in self.used[row] if columns is None or one in columns] for row in rows}
        return _Layout(self._book, self._sheet, self.covered, {row: places for row, places in chosen.items() if places})

    def make_grid(self) -> list[list[HeadCell]]:
        """The first cells, as the search for a header needs them. A name over several columns is in the first."""
        return [[self._classify(row, column) for column in self.columns] for row in self.rows[:_LOOK_AHEAD]]

    def list_gaps(self) -> list[int]:
        """The indices of rows that follow empty ones."""
        groups = _group(self.rows, self.hidden_rows)
        return list(accumulate(map(len, groups[:-1])))

    def _classify(self, row: int, column: int) -> HeadCell:
        top, left = self.covered.get((row, column), (row, column))
        text = " ".join(self._book.show(self._sheet, top, left).split()) if left == column else ""
        typed = self._book.get_typed(self._sheet, top, left) if text else None
        if typed is None:
            return HeadCell("text" if text else "", text)
        if typed.kind == "text":
            return HeadCell(classify_text(text), text)
        if typed.kind in {"date", "datetime", "time", "duration"}:
            return HeadCell("moment", text)
        return HeadCell("label" if _is_year(typed) else "number", text)

    def is_table(self) -> bool:
        """Whether the first rows have a header that names values of another kind below it."""
        if len(self.columns) < 2 or len(self.rows) < 2:
            return False
        layout = self.select(self.rows[:_LOOK_AHEAD])
        grid = layout.make_grid()
        head = find_head(grid, layout.find_top(), gaps=layout.list_gaps())
        # A form has one value for each of its names.
        return head.has_names and head.bottom + 1 < len(grid) and count_contrast(grid, head.bottom - 1) > 0

    def names_rows(self) -> bool:
        """Whether the first column has texts or dates."""
        kinds = [row[0].kind for row in self.make_grid() if row[0].kind]
        return 2 * sum(kind in {"text", "moment"} for kind in kinds) > len(kinds)

    def find_top(self) -> int:
        """The index of the first row that is about as wide as the table; those above it are titles."""
        width = max(len(self.used[row]) for row in self.rows[:_LOOK_AHEAD])
        for index, row in enumerate(self.rows[: _MAX_TITLES + 1]):
            filled = sum(bool(self._show(row, column)) for column in self.columns)
            if width < 2 or (len(self.used[row]) >= 2 and filled >= _WIDTH_SHARE * width):
                return index
        return 0

    def find_bottom(self, top: int) -> int:
        """The index of the header's last row."""
        rows, bottom = self.rows, top
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

    def _has_names_below(self, spans: Sequence[Merge], row: int) -> bool:
        """Whether a row names each of the columns below a merged name, and nothing else. In a form the values below
        each other are merged alike."""
        is_next = any(len(_group([one.bottom, row], self.hidden_rows)) == 1 for one in spans)
        are_names = any(sum(one.left <= column <= one.right for column in self.used[row]) > 1 for one in spans)
        return is_next and are_names and self.is_header(row)

    def count_merged_rows(self, top: int) -> int:
        """The rows above a header that name groups of its columns in merged cells."""
        count = 0
        while count < min(top, _MAX_HEADER_ROWS - 1):
            row, above = self.rows[top - count], self.rows[top - count - 1]
            spans = any(
                one.top <= above <= one.bottom and (one.bottom >= row or one.right > one.left)
                for one in self._sheet.merges
            )
            is_next = len(_group([above, row], self.hidden_rows)) == 1
            if not spans or not is_next or len(self.used[above]) < 2 or not self.is_header(above):
                break
            count += 1
        return count

    def is_header(self, row: int) -> bool:
        """Whether a row has no values: texts and years may be names."""
        for column in self.columns:
            typed = self._book.get_typed(self._sheet, *self.covered.get((row, column), (row, column)))
            if typed is not None and typed.kind != "text" and not _is_year(typed):
                return False
        return True

    def join_names(self, rows: Sequence[int]) -> list[str]:
        """The name of each column: what stands above it in the header, each text once."""
        return [
            " ".join(dict.fromkeys(text for row in rows if (text := self._show(row, column))))
            for column in self.columns
        ]

    def show_title(self, row: int, column: int) -> str:
        """A cell above the table, or the one that a merge shows there."""
        return self._book.show(self._sheet, row, column) or self._show(row, column)

    def _show(self, row: int, column: int) -> str:
        return self._book.show(self._sheet, *self.covered.get((row, column), (row, column)))


def _is_year(typed: TypedValue) -> bool:
    return typed.kind in {"general", "number"} and isinstance(typed.value, float) and typed.value in _YEARS
