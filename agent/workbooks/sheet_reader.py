"""Reads the part of a sheet: its cells as they are stored, merged cells, what is hidden, and what is beside them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree  # type: ignore[import-untyped]

from agent.text.struck import strike_out
from agent.workbooks.date_formats import parse_moment
from agent.workbooks.formulas import CellValue, count_column
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


def read_sheet(
    package: WorkbookPackage, part: SheetPart, strings: Mapping[bool, Sequence[str]], struck: AbstractSet[int]
) -> Sheet:
    """Reads a sheet. `strings` are the shared ones as other cells show them and, by True, those that are struck out;
    `struck` are the styles of the latter."""
    sheet = Sheet(part.name, part.is_shown)
    reader = _SheetReader(sheet, strings, struck, package)
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

    def __init__(
        self,
        sheet: Sheet,
        strings: Mapping[bool, Sequence[str]],
        struck: AbstractSet[int],
        package: WorkbookPackage,
    ) -> None:
        self._sheet = sheet
        self._date1904 = package.date1904
        self._recalculates = package.recalculates
        self._strings = strings
        self._struck = struck
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
        style = element.get("s", "0")
        index = int(style) if style.isdecimal() else 0
        is_struck = index in self._struck
        for one in element:
            name = get_name(one)
            if name == "v":
                text, is_text = one.text or "", kind == "str"
            elif name == "is":
                text = collect_string(one, is_struck=is_struck)
            elif name == "f":
                formula, shift = self._read_formula(one, column)
                spills = one.get("ref", "") if one.get("t") in {"array", "dataTable"} else ""
        value = self._convert(kind, text, is_struck=is_struck)
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

    def _convert(self, kind: str, text: str, *, is_struck: bool) -> CellValue:
        if text == "":
            return None
        if kind == "s":
            strings = self._strings[is_struck]
            return strings[int(text)] if text.isdecimal() and int(text) < len(strings) else ""
        if kind == "b":
            return text.strip() in {"1", "true"}
        if kind == "n":
            try:
                return float(text)
            except ValueError:
                return text
        if kind == "d" and (serial := parse_moment(text, date1904=self._date1904)) is not None:
            return serial
        if kind != "str":
            return text
        return strike_out(decode_string(text)) if is_struck else decode_string(text)


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
