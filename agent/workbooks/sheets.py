"""Cells of a workbook: what a sheet shows, and the typed value below it."""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from lxml import etree  # type: ignore[import-untyped]

from agent.workbooks.date_formats import parse_moment, to_datetime
from agent.workbooks.formulas import CellValue, NoValueError, compute, count_column
from agent.workbooks.number_formats import (
    GENERAL,
    FormatKind,
    classify_format,
    format_number,
    format_text,
)
from agent.workbooks.package import (
    Element,
    Relation,
    SheetPart,
    WorkbookPackage,
    collect_string,
    decode_string,
    get_name,
)
from agent.workbooks.remarks import find_totals_area, iter_page_heads, read_comments, read_input_message

MAX_CELLS = 2_000_000
"""An empty sheet may claim 17 billion cells; those that are stored count."""
_MAX_COLUMNS = 16_384
_ADDRESS = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_MAX_ADDRESSES = 10
_MAX_SPILLED = 10_000
"""Cells of a sheet that formulas of others fill; a formula may claim billions."""
_UNKNOWN_FORMULA = "?"
"""One that the file only refers to, or that a data table has instead."""


class Cell(NamedTuple):
    """A stored cell. `formula` is empty unless the file has no value of it, and `shift` is how far a shared one has
    moved; `format` is an index of the workbook's formats."""

    value: CellValue
    format: int = 0
    formula: str = ""
    shift: tuple[int, int] = (0, 0)


class Merge(NamedTuple):
    """Merged cells, first and last row and column, from 1."""

    top: int
    left: int
    bottom: int
    right: int


@dataclass
class Sheet:
    """A sheet: its cells by row and column from 1, merged cells, hidden rows and columns, comments by address."""

    name: str
    is_shown: bool
    rows: dict[int, dict[int, Cell]] = field(default_factory=dict)
    merges: list[Merge] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    comments: dict[str, str] = field(default_factory=dict)
    page_heads: list[str] = field(default_factory=list)
    """The texts of headers and footers of its pages."""
    input_messages: dict[str, list[str]] = field(default_factory=dict)
    """What is shown beside cells that are being filled in, and the cells that show it."""
    drawing: str = ""
    controls: str = ""
    """The part of its form controls and of the shapes of comments."""
    totals: list[Merge] = field(default_factory=list)
    """The cells of rows that tables of the sheet add for their totals."""
    is_cut: bool = False
    linked_cells: int = 0
    """Cells that show a picture or an entry of an online service, and store an error for programs that show neither."""


class TypedValue(NamedTuple):
    """A value and what it is: its format distinguishes a date from a number."""

    kind: FormatKind | str
    value: object


class Workbook:
    """The sheets of a workbook. Formulas without a stored value are computed once, where they are simple."""

    def __init__(self, package: WorkbookPackage) -> None:
        self.package = package
        self.date1904 = package.date1904
        self._formats = package.read_formats()
        strings = package.read_strings()
        self.sheets = [_read_sheet(package, part, strings) for part in package.sheets]
        self._by_name = {sheet.name.casefold(): sheet for sheet in self.sheets}
        self._computed: dict[tuple[str, int, int], float | None] = {}
        self._shown: dict[tuple[float, int], str] = {}

    def get_format(self, cell: Cell) -> str:
        """The format code of a cell."""
        return self._formats[cell.format] if cell.format < len(self._formats) else GENERAL

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
        """A cell as the sheet shows it; a formula without a value says so."""
        cell = sheet.rows.get(row, {}).get(column)
        if cell is None:
            return ""
        try:
            value = self.get_value(sheet, row, column)
        except NoValueError:
            return f"[formula without value {format_address(row, column)}: ={cell.formula}]"
        if value is None:
            return ""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        code = self.get_format(cell)
        if isinstance(value, str):
            return value if code in {GENERAL, "@"} else format_text(value, code)
        key = (value, cell.format)
        if key not in self._shown:
            self._shown[key] = format_number(value, code, date1904=self.date1904)
        return self._shown[key]

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


def _read_sheet(package: WorkbookPackage, part: SheetPart, strings: list[str]) -> Sheet:
    sheet = Sheet(part.name, part.is_shown)
    reader = _SheetReader(sheet, strings, package)
    with package.open(part.path) as stream:
        for _, element in etree.iterparse(stream, events=("end",), tag=_READ, resolve_entities=False, no_network=True):
            reader.read(element)
    reader.fill_spilled()
    relations = package.list_relations(part.path).values()
    for relation in sorted(relations, key=lambda one: one.kind == "threadedComment"):  # after their plain copies
        _add_related(package, sheet, relation)
    return sheet


_READ = ("{*}row", "{*}mergeCell", "{*}col", "{*}headerFooter", "{*}dataValidation")


def _add_related(package: WorkbookPackage, sheet: Sheet, relation: Relation) -> None:
    if relation.kind == "drawing":
        sheet.drawing = relation.target
    elif relation.kind == "vmlDrawing":
        sheet.controls = relation.target
    elif relation.kind in {"comments", "threadedComment"}:
        sheet.comments |= read_comments(package.read(relation.target))
    elif relation.kind == "table" and (area := _parse_area(find_totals_area(package.read(relation.target)))):
        sheet.totals.append(area._replace(top=area.bottom))


def _parse_area(text: str) -> Merge | None:
    """The cells of an area such as `A1:C3`; None for another text."""
    corners = _ADDRESS.findall(text)
    if len(corners) != 2:
        return None
    (left, top), (right, bottom) = corners
    return Merge(int(top), count_column(left), int(bottom), count_column(right))


class _SheetReader:
    """Reads the rows of a sheet one by one."""

    def __init__(self, sheet: Sheet, strings: list[str], package: WorkbookPackage) -> None:
        self._sheet = sheet
        self._date1904 = package.date1904
        self._recalculates = package.recalculates
        self._strings = strings
        self._shared: dict[str, tuple[str, int, int]] = {}
        self._spilling: list[tuple[Merge, str]] = []
        self._row = 0
        self._count = 0

    def read(self, element: Element) -> None:
        """Takes a row, merged cells, the properties of columns, input messages, or headers and footers."""
        name = get_name(element)
        if name == "row":
            self._read_row(element)
            element.clear()
            while element.getprevious() is not None:  # what was read is freed
                del element.getparent()[0]
        elif name == "mergeCell":
            if area := _parse_area(element.get("ref", "")):
                self._sheet.merges.append(area)
        elif name == "headerFooter":
            self._sheet.page_heads = list(dict.fromkeys(iter_page_heads(element)))
        elif name == "dataValidation":
            places, text = read_input_message(element)
            if text:
                self._sheet.input_messages.setdefault(text, []).extend(places)
        elif element.get("hidden") in {"1", "true"}:
            last = min(int(element.get("max", "0")), _MAX_COLUMNS)
            self._sheet.hidden_columns.update(range(int(element.get("min", "0")), last + 1))

    def fill_spilled(self) -> None:
        """Gives cells that a formula of another one fills that formula, where the file has no value of either."""
        filled = 0
        for place, formula in self._spilling:
            for row in range(place.top, place.bottom + 1):
                for column in range(place.left, place.right + 1):
                    if filled == _MAX_SPILLED:
                        return
                    self._sheet.rows.setdefault(row, {}).setdefault(column, Cell(None, 0, formula))
                    filled += 1

    def _read_row(self, row: Element) -> None:
        number = row.get("r")
        self._row = int(number) if number else self._row + 1
        if row.get("hidden") in {"1", "true"}:
            self._sheet.hidden_rows.add(self._row)
        column = 0
        cells: dict[int, Cell] = {}
        for element in row:
            if get_name(element) != "c":
                continue
            address = _ADDRESS.fullmatch(element.get("r", ""))
            column = count_column(address[1]) if address else column + 1
            if self._count >= MAX_CELLS:
                self._sheet.is_cut = True
                break
            cell = self._read_cell(element, column)
            if cell is not None:
                cells[column] = cell
                self._count += 1
        if cells:
            self._sheet.rows[self._row] = cells

    def _read_cell(self, element: Element, column: int) -> Cell | None:
        text, formula, shift, spills = "", "", (0, 0), ""
        is_text, kind = False, element.get("t", "n")
        for one in element:
            name = get_name(one)
            if name == "v":
                text, is_text = one.text or "", kind == "str"
            elif name == "is":
                text = collect_string(one)
            elif name == "f":
                formula, shift = self._read_formula(one, column)
                spills = one.get("ref", "") if one.get("t") in {"array", "dataTable"} else ""
        style = element.get("s", "0")
        index = int(style) if style.isdecimal() else 0
        value = self._convert(kind, text)
        if self._recalculates and formula and value == 0 and not isinstance(value, bool):
            value = None
        self._sheet.linked_cells += kind == "e" and element.get("vm") is not None
        if value is not None:
            return Cell(value, index)
        if is_text:  # the formula's value is a text without letters
            return None
        place = _parse_area(spills)
        if place and place.left <= place.right:  # else no row has a cell that would count to the limit
            self._spilling.append((place, formula))
        return Cell(None, index, formula, shift) if formula else None

    def _read_formula(self, element: Element, column: int) -> tuple[str, tuple[int, int]]:
        text, group = element.text or "", element.get("si", "")
        if element.get("t") == "shared" and group:
            if text:
                self._shared[group] = (text, self._row, column)
            elif group in self._shared:
                text, row, first = self._shared[group]
                return text, (self._row - row, column - first)
        return text or _UNKNOWN_FORMULA, (0, 0)

    def _convert(self, kind: str, text: str) -> CellValue:
        if text == "":
            return None
        if kind == "s":
            return self._strings[int(text)] if text.isdecimal() and int(text) < len(self._strings) else ""
        if kind == "b":
            return text.strip() in {"1", "true"}
        if kind == "n":
            try:
                return float(text)
            except ValueError:
                return text
        if kind == "d" and (serial := parse_moment(text, date1904=self._date1904)) is not None:
            return serial
        return decode_string(text) if kind == "str" else text


def iter_merged(sheet: Sheet) -> Iterator[tuple[int, int, int, int]]:
    """Yields for each cell that a merge covers its row and column, and those of the cell that it shows. Merges over
    whole rows or columns end where the sheet's cells do."""
    last_row = max(sheet.rows, default=0)
    last_column = max((max(cells, default=0) for cells in sheet.rows.values()), default=0)
    for top, left, bottom, right in sheet.merges:
        for row in range(top, min(bottom, last_row) + 1):
            for column in range(left, min(right, last_column) + 1):
                if (row, column) != (top, left):
                    yield row, column, top, left
