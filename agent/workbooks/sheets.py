"""Cells of a workbook: what a sheet shows, and the typed value below it."""

import datetime as dt
from collections.abc import Iterator
from typing import IO, NamedTuple

from agent.text.struck import strike_out
from agent.workbooks.date_formats import to_datetime
from agent.workbooks.formulas import CellValue, NoValueError, compute, find_area
from agent.workbooks.number_formats import (
    GENERAL,
    FormatKind,
    classify_format,
    format_number,
    format_text,
)
from agent.workbooks.package import CellStyle, WorkbookPackage
from agent.workbooks.sheet_reader import Cell, Sheet, read_sheet

_MAX_ADDRESSES = 10
_MAX_AREA = 100_000
"""Cells of an area that are shown; a chart has fewer."""
_NO_STYLE = CellStyle(GENERAL)


class TypedValue(NamedTuple):
    """A value and what it is: its format distinguishes a date from a number."""

    kind: FormatKind | str
    value: object


class Workbook:
    """The sheets of a workbook. Formulas without a stored value are computed once, where they are simple."""

    def __init__(self, package: WorkbookPackage) -> None:
        self.package = package
        self.date1904 = package.date1904
        self._styles = package.read_styles()
        self._struck = frozenset(index for index, style in enumerate(self._styles) if style.is_struck)
        strings = {is_struck: package.read_strings(is_struck=is_struck) for is_struck in {False, bool(self._struck)}}
        self.sheets = [read_sheet(package, part, strings, self._struck) for part in package.sheets]
        self._by_name = {sheet.name.casefold(): sheet for sheet in self.sheets}
        self._computed: dict[tuple[str, int, int], float | None] = {}
        self._shown: dict[tuple[float, int], str] = {}

    def get_format(self, cell: Cell) -> str:
        """The format code of a cell."""
        return self._get_style(cell).format

    def _get_style(self, cell: Cell) -> CellStyle:
        return self._styles[cell.format] if cell.format < len(self._styles) else _NO_STYLE

    def get_value(self, sheet: Sheet, row: int, column: int) -> CellValue:
        """A cell's value, computed if need be. Raises `NoValueError`."""
        cell = sheet.rows.get(row, {}).get(column)
        if cell is None:
            return None
        if not cell.formula:
            return cell.value
        key = (sheet.name, row, column)
        if key not in self._computed:
            self._computed[key] = None  # a circle has no value
            self._computed[key] = compute(cell.formula, sheet.name, self._look_up, shift=cell.shift)
        computed = self._computed[key]
        if computed is None:
            raise NoValueError
        return computed

    def _look_up(self, sheet: str, row: int, column: int) -> CellValue:
        target = self._by_name.get(sheet.casefold())
        if target is None:
            raise NoValueError
        try:
            return self.get_value(target, row, column)
        except RecursionError as error:  # a long chain of formulas
            raise NoValueError from error

    def show(self, sheet: Sheet, row: int, column: int) -> str:
        """A cell as the sheet shows it, with marks around what is struck out; a formula without a value says so."""
        cell = sheet.rows.get(row, {}).get(column)
        if cell is None:
            return ""
        try:
            value = self.get_value(sheet, row, column)
        except NoValueError:
            return f"[formula without value {format_address(row, column)}: ={cell.formula}]"
        if value is None:
            return ""
        code, is_struck = self._get_style(cell)
        if isinstance(value, str):  # the reader has marked what is struck out of it
            return value if code in {GENERAL, "@"} else format_text(value, code)
        if isinstance(value, bool):
            text = "TRUE" if value else "FALSE"
            return strike_out(text) if is_struck else text
        key = (value, cell.format)
        if key not in self._shown:
            text = format_number(value, code, date1904=self.date1904)
            self._shown[key] = strike_out(text) if is_struck else text
        return self._shown[key]

    def show_area(self, reference: str) -> list[list[str]]:
        """The cells of an area such as `Sheet1!$A$2:$B$5` row by row, hidden ones empty; none for other references."""
        try:
            first, last = find_area(reference)
        except NoValueError:
            return []
        sheet = self._by_name.get(first.sheet.casefold())
        rows, columns = range(first.row, last.row + 1), range(first.column, last.column + 1)
        if sheet is None or len(rows) * len(columns) > _MAX_AREA:
            return []
        return [
            [
                "" if row in sheet.hidden_rows or column in sheet.hidden_columns else self.show(sheet, row, column)
                for column in columns
            ]
            for row in rows
        ]

    def get_area_format(self, reference: str) -> str:
        """The format code of the first cell of an area; empty for other references."""
        try:
            first, _ = find_area(reference)
        except NoValueError:
            return ""
        sheet = self._by_name.get(first.sheet.casefold())
        cell = sheet.rows.get(first.row, {}).get(first.column) if sheet else None
        return self.get_format(cell) if cell else ""

    def get_typed(self, sheet: Sheet, row: int, column: int) -> TypedValue | None:
        """A cell's value with its type; None for an empty cell, an error and a formula without a value."""
        cell = sheet.rows.get(row, {}).get(column)
        try:
            value = None if cell is None else self.get_value(sheet, row, column)
        except NoValueError:
            return None
        if cell is None or value is None:
            return None
        if isinstance(value, bool):
            return TypedValue("boolean", value)
        if isinstance(value, str):
            return TypedValue("error" if is_error(value) else "text", value)
        return self._convert(value, classify_format(self.get_format(cell)), self.show(sheet, row, column))

    def _convert(self, value: float, kind: FormatKind, shown: str) -> TypedValue:
        if kind in {"code", "text"}:
            return TypedValue("text", shown)
        if kind == "duration" or (kind == "time" and not 0 <= value < 1):
            return TypedValue("duration", dt.timedelta(milliseconds=round(value * 86_400_000)))
        if kind in {"date", "datetime", "time"}:
            moment = to_datetime(value, date1904=self.date1904)
            if moment is None:
                return TypedValue("number", value)
            if kind == "time":
                return TypedValue("time", moment.time())
            has_time = moment.time() != dt.time()
            return TypedValue("datetime", moment) if has_time else TypedValue("date", moment.date())
        return TypedValue("number", value)

    def list_struck(self, sheet: Sheet) -> list[str]:
        """The addresses of the cells that are struck out as a whole: what they say is no longer valid."""
        return [
            format_address(row, column)
            for row, cells in (sheet.rows if self._struck else {}).items()
            for column, cell in cells.items()
            if cell.format in self._struck
        ]

    def describe_formulas(self, sheet: Sheet) -> Iterator[str]:
        """Yields what formulas without a stored value became: computed, or listed by their addresses."""
        computed, unknown = [], []
        for row, cells in sheet.rows.items():
            for column, cell in cells.items():
                if cell.formula:
                    try:
                        self.get_value(sheet, row, column)
                    except NoValueError:
                        unknown.append(format_address(row, column))
                    else:
                        computed.append(format_address(row, column))
        if computed:
            yield f"sheet {sheet.name}: computed, because the file stores no value: {join_addresses(computed)}"
        if unknown:
            yield f"sheet {sheet.name}: formula without value: {join_addresses(unknown)}"


def open_workbook(file: bytes | IO[bytes]) -> Workbook:
    """Opens an xlsx. Raises `zipfile.BadZipFile`, KeyError and `lxml.etree.XMLSyntaxError` for damage."""
    return Workbook(WorkbookPackage(file))


def is_error(text: str) -> bool:
    """Whether a value is one of Excel's errors, such as #N/A."""
    return text.startswith("#") and text in _ERRORS


_ERRORS = frozenset(
    {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!", "#CALC!"}
)


def format_address(row: int, column: int) -> str:
    """The address of a cell, such as B3."""
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return f"{letters}{row}"


def join_addresses(addresses: list[str]) -> str:
    """The first of some addresses, and how many more there are."""
    listed = ", ".join(addresses[:_MAX_ADDRESSES])
    return listed + (f" and {len(addresses) - _MAX_ADDRESSES:,} more" if len(addresses) > _MAX_ADDRESSES else "")
