"""Tables that a page makes of other elements, by style sheets (`display: table-row`) or by roles (`role="row"`)."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from agent.text.html.styles import read_own_style

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_TABLES = frozenset({"table", "inline-table", "grid", "treegrid"})
_CELLS = frozenset({"cell", "gridcell", "columnheader", "rowheader", "table-cell"})
_MIN_ROWS = 2
"""Rows of several cells: fewer place what is beside each other, and name no columns."""


def name_tables(body: Element) -> None:
    """Gives the rows and cells of such tables the names that tables of HTML have, by which an empty cell keeps its
    place."""
    for table in list(body.iter("*")):
        if table.tag != "table" and not _TABLES.isdisjoint(_list_kinds(table)):
            rows = [(row, list(_iter_cells(row))) for row in _iter_rows(table)]
            widths = [len(cells) for _, cells in rows]
            # Some pages write fixed columns as rows of their own: then the first row is shorter than others.
            if sum(width > 1 for width in widths) >= _MIN_ROWS and widths[0] == max(widths):
                _name(table, rows)


def _name(table: Element, rows: list[tuple[Element, list[Element]]]) -> None:
    table.tag = "table"
    for row, cells in rows:
        row.tag = "tr"
        for cell in cells:
            cell.tag = "th" if cell.get("role") in {"columnheader", "rowheader"} else "td"


def _list_kinds(element: Element) -> set[str]:
    """What an element is by its role, and what part of a table by its style."""
    style = element.get("style", "")
    display = read_own_style(style).get("display", "") if "table" in style else ""
    return {element.get("role", ""), display if "table" in display else ""}


def _iter_rows(element: Element) -> Iterator[Element]:
    for child in element:
        if isinstance(child.tag, str):
            kinds = _list_kinds(child)
            if not kinds.isdisjoint({"row", "table-row"}):
                yield child
            elif child.tag != "table" and _TABLES.isdisjoint(kinds):
                yield from _iter_rows(child)


def _iter_cells(row: Element) -> Iterator[Element]:
    for child in row:
        if isinstance(child.tag, str):
            if not _CELLS.isdisjoint(_list_kinds(child)):
                yield child
            elif child.tag != "table":
                yield from _iter_cells(child)
