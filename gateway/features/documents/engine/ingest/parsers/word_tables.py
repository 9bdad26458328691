"""Tables of Word as rows of text."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from docx.oxml.ns import qn

from agent.text.html.tables import MAX_HEAD
from gateway.features.documents.engine.ingest.parsers.graphics import CHOICES, choose_content
from gateway.features.documents.engine.ingest.parsers.word_inline import HIDDEN

Element: TypeAlias = Any
"""An lxml element; lxml has no types."""

_MAX_SPAN = 1000
"""Word has 63 columns; a file that claims more attacks memory."""
_MAX_CELLS = 500_000


def read_grid(table: Element, read_cell: Callable[[Element], str]) -> list[list[str]]:
    """The table's rows. A cell merged downwards is in every row, a head merged to the right in each column, any other
    one merged to the right in its first column; rows that start late are shifted."""
    grid: list[list[str]] = []
    above: dict[int, str] = {}
    cells = 0
    for row in _iter_children(table, qn("w:tr")):
        if row.find("/".join(map(qn, ("w:trPr", "w:del")))) is not None:
            continue
        line = [""] * _read_number(row, "w:trPr", "w:gridBefore", 0)
        removed = "/".join(map(qn, ("w:tcPr", "w:cellDel")))
        row_cells = [cell for cell in _iter_children(row, qn("w:tc")) if cell.find(removed) is None]
        repeats = row.find("/".join(map(qn, ("w:trPr", "w:tblHeader")))) is not None  # on each page
        is_head = len(row_cells) > 1 and (repeats or not grid)  # one cell alone is a title
        for cell in row_cells:
            _add_cell(line, cell, above, read_cell, is_head=is_head)
        cells += len(line)
        if cells > _MAX_CELLS:
            break
        grid.append(line)
    return grid


def _add_cell(
    line: list[str],
    cell: Element,
    above: dict[int, str],
    read_cell: Callable[[Element], str],
    *,
    is_head: bool,
) -> None:
    place = len(line)
    merge = cell.find("/".join(map(qn, ("w:tcPr", "w:vMerge"))))
    goes_on = merge is not None and merge.get(qn("w:val"), "continue") == "continue"
    text = above[place] if goes_on and place in above else read_cell(cell)
    if merge is not None:
        above[place] = text
    else:
        above.pop(place, None)
    line.append(text)
    line.extend(
        [text if is_head and len(text) <= MAX_HEAD else ""] * (_read_number(cell, "w:tcPr", "w:gridSpan", 1) - 1)
    )


def _iter_children(parent: Element, wanted: str) -> Iterator[Element]:
    """Yields the rows of a table or the cells of a row, whatever they are wrapped in."""
    for child in parent:
        if not isinstance(child.tag, str) or child.tag in HIDDEN:
            continue
        if child.tag == wanted:
            yield child
        elif child.tag == f"{CHOICES}AlternateContent":
            yield from _iter_children(choose_content(child), wanted)
        else:
            yield from _iter_children(child, wanted)


def _read_number(element: Element, properties: str, name: str, default: int) -> int:
    child = element.find("/".join(map(qn, (properties, name))))
    value = "" if child is None else child.get(qn("w:val"), "")
    return min(int(value), _MAX_SPAN) if value.isdecimal() and len(value) < 6 else default
