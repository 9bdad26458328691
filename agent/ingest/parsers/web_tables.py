"""HTML tables as rows of text: spans filled, nested tables separate, layout tables recognised."""

from collections.abc import Iterator
from typing import Any, TypeAlias

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""

_MAX_SPAN = 1000
"""HTML, 4.9.11: column spans end at 1,000; a page that claims more attacks memory."""

_MAX_CELLS = 500_000
_CELLS = ("td", "th")
_LAYOUT_TAGS = ("h1", "h2", "h3", "h4")
_SKIPPED = frozenset({"table", "script", "style", "template", "noscript"})
_TIGHT = frozenset(
    {"a", "abbr", "b", "cite", "code", "em", "font", "i", "mark", "small", "span", "strong", "sub", "sup", "u", "var"}
)


def is_data_table(table: Element) -> bool:
    """Returns whether the table holds data: layout tables say so, have one cell, or contain headings."""
    if table.get("role") in {"presentation", "none"}:
        return False
    cells = [cell for row in _iter_rows(table) for cell in row if cell.tag in _CELLS]
    return len(cells) > 1 and not any(inner.tag in _LAYOUT_TAGS for cell in cells for inner in cell.iter("*"))


def list_nested_tables(table: Element) -> Iterator[Element]:
    """Yields the tables directly inside this one's cells."""
    for inner in table.iterdescendants("table"):
        if next(inner.iterancestors("table")) is table:
            yield inner


def read_table_rows(table: Element) -> list[list[str]]:
    """Returns the cells' texts. A cell over several rows is repeated in each; one over several columns stands in the
    first."""
    grid: list[list[str]] = []
    hanging: dict[int, tuple[int, str]] = {}
    cells = 0
    for row in _iter_rows(table):
        line = _read_row(row, hanging)
        cells += len(line)
        if cells > _MAX_CELLS:
            break
        grid.append(line)
    return grid


def _read_row(row: Element, hanging: dict[int, tuple[int, str]]) -> list[str]:
    line: list[str] = []
    for cell in row:
        if cell.tag not in _CELLS:
            continue
        _fill_rowspans(line, hanging)
        text = "".join(_iter_words(cell))
        rows, columns = _read_span(cell, "rowspan"), _read_span(cell, "colspan")
        for offset in range(min(columns, _MAX_SPAN - len(line))):
            shown = text if offset == 0 else ""
            if rows > 1:
                hanging[len(line)] = (rows - 1, shown)
            line.append(shown)
    _fill_rowspans(line, hanging)
    return line


def _fill_rowspans(line: list[str], hanging: dict[int, tuple[int, str]]) -> None:
    """Fills the columns that a cell of an earlier row spans."""
    while (place := len(line)) in hanging:
        left, text = hanging.pop(place)
        if left > 1:
            hanging[place] = (left - 1, text)
        line.append(text)


def _iter_rows(table: Element) -> Iterator[Element]:
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in {"thead", "tbody", "tfoot"}:
            yield from (row for row in child if row.tag == "tr")


def _read_span(cell: Element, name: str) -> int:
    value = cell.get(name, "1").strip()
    return min(max(int(value), 1), _MAX_SPAN) if value.isdecimal() and len(value) < 6 else 1


def _iter_words(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if isinstance(child.tag, str) and child.tag not in _SKIPPED and child.get("hidden") is None:
            spaced = "" if child.tag in _TIGHT else " "
            yield spaced
            yield from _iter_words(child)
            yield spaced
        yield child.tail or ""
