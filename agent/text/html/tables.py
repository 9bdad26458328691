"""HTML tables as rows of text: spans filled, nested tables separate, layout tables recognised."""

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

from agent.text.superscripts import write_fractions, write_moved

Element: TypeAlias = Any
"""An `lxml.html.HtmlElement`; lxml has no types."""
_Row: TypeAlias = list[Element]
"""The cells of a row."""

_MAX_SPAN = 1000
"""HTML, 4.9.11: column spans end at 1,000; a page that claims more attacks memory."""

MAX_HEAD = 200
"""Characters of a head over several columns that is repeated in each: a longer text would grow by as
many times as it has columns."""
_MAX_CELLS = 500_000
_CELLS = ("td", "th")
_LAYOUT_TAGS = ("h1", "h2", "h3", "h4")
_SHOWN_INPUTS = frozenset(
    {"", "text", "search", "tel", "url", "email", "number", "submit", "button", "reset"}
    | {"date", "month", "week", "time", "datetime-local", "image"}
)
_TICKED_INPUTS = frozenset({"checkbox", "radio"})
_BLOCK_NAMES = (
    "address article aside blockquote body caption center col colgroup dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav noscript "
    "ol optgroup option p pre search section summary table tbody td textarea tfoot th thead tr ul"
)
SEPARATE = frozenset({"button", "meter", "progress", "output"})
"""Elements of a line that join no word and no figure beside them."""
BLOCKS = frozenset(_BLOCK_NAMES.split())
"""Elements that begin a line of their own. All others are part of the line, also unknown ones."""
SPACED = BLOCKS | SEPARATE | {"br", "img", "input"}
"""What parts the words beside it by itself."""
MOVED = frozenset({"sup", "sub"})
"""Elements whose figures are raised or lowered."""


def is_data_table(table: Element) -> bool:
    """Whether the table holds data: layout tables say so, have one cell, or contain headings."""
    if table.get("role") in {"presentation", "none"}:
        return False
    cells = [cell for _, rows in _iter_sections(table) for row in rows for cell in row]
    return len(cells) > 1 and not any(inner.tag in _LAYOUT_TAGS for cell in cells for inner in cell.iter("*"))


def list_nested_tables(table: Element) -> Iterator[Element]:
    """Yields the tables directly inside this one's cells."""
    for inner in table.iterdescendants("table"):
        if next(inner.iterancestors("table")) is table:
            yield inner


def iter_loose_texts(table: Element) -> Iterator[str]:
    """Yields the table's caption, and its content outside of cells, which browsers show before it."""
    yield from filter(str.strip, _iter_loose(table))


def _iter_loose(element: Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag == "caption":
            yield extract_visible_text(child, is_without_tables=True)
        elif isinstance(child.tag, str) and child.tag not in {*_CELLS, "table"}:
            yield from _iter_loose(child)
        yield child.tail or ""


def read_table_rows(table: Element) -> list[list[str]]:
    """The cells' texts. A cell over several rows is repeated in each, and a head over several columns too; any other
    cell over several columns is in the first: a figure counts once."""
    grid: list[list[str]] = []
    cells = 0
    for group, rows in _order_sections(table):
        hanging: dict[int, tuple[float, str]] = {}  # no cell reaches beyond its group of rows
        for row in rows:
            is_head = len(row) > 1 and (group.tag == "thead" or not grid)  # one cell alone is a title
            line = _read_row(row, hanging, is_head=is_head)
            cells += len(line)
            if cells > _MAX_CELLS:
                return grid
            grid.append(line)
    return grid


def _read_row(row: _Row, hanging: dict[int, tuple[float, str]], *, is_head: bool) -> list[str]:
    line: list[str] = []
    for cell in row:
        _fill_rowspans(line, hanging)
        text = write_fractions("".join(iter_words(cell, is_without_tables=True)))
        rows = math.inf if cell.get("rowspan", "").strip() == "0" else _read_span(cell, "rowspan")
        columns = _read_span(cell, "colspan")
        for offset in range(min(columns, _MAX_SPAN - len(line))):
            is_repeated = len(text) <= MAX_HEAD and (is_head or (len(row) > 1 and cell.tag == "th"))
            cell_text = text if offset == 0 or is_repeated else ""
            if rows > 1:
                hanging[len(line)] = (rows - 1, cell_text)
            line.append(cell_text)
    _fill_rowspans(line, hanging)
    return line


def _fill_rowspans(line: list[str], hanging: dict[int, tuple[float, str]]) -> None:
    """Fills the columns that a cell of an earlier row spans."""
    while (place := len(line)) in hanging:
        left, text = hanging.pop(place)
        if left > 1:
            hanging[place] = (left - 1, text)
        line.append(text)


def _iter_sections(table: Element) -> Iterator[tuple[Element, list[_Row]]]:
    """Yields each group with its rows, whatever they are wrapped in: forms around rows and cells are common, though not
    HTML. Cells without a row make one of their own, as in browsers.
    """
    rows: list[_Row] = []
    group = loose = None
    for one in table.iterdescendants("tr", *_CELLS):
        is_row = one.tag == "tr"
        if not is_row and one.getparent().tag == "tr":
            continue
        if next(one.iterancestors("table", *(() if is_row else ("tr", *_CELLS)))) is not table:
            continue
        own = next(one.iterancestors("thead", "tbody", "tfoot", "table"))
        if rows and own is not group:
            yield group, rows
            rows = []
        group = own
        if is_row:
            rows.append(list(_iter_cells(one)))
        elif loose is not None and one.getprevious() is loose:
            rows[-1].append(one)
        else:
            rows.append([one])
        loose = None if is_row else one
    if rows:
        yield group, rows


def _iter_cells(element: Element) -> Iterator[Element]:
    for child in element:
        if child.tag in _CELLS:
            yield child
        elif isinstance(child.tag, str) and child.tag not in {"table", "tr"}:
            yield from _iter_cells(child)


def _order_sections(table: Element) -> list[tuple[Element, list[_Row]]]:
    """The groups as browsers place them: the first head above, and the first foot below, wherever the page has them
    (HTML 4 had feet come before bodies). Others stay where they are, as bodies do (CSS 2.1, 17.2)."""
    head, foot = (_find_group(table, name) for name in ("thead", "tfoot"))

    def place(section: tuple[Element, list[_Row]]) -> int:
        return 0 if section[0] is head else 2 if section[0] is foot else 1

    return sorted(_iter_sections(table), key=place)


def _find_group(table: Element, name: str) -> Element:
    return next((group for group in table.iterdescendants(name) if _find_table(group) is table), None)


def _find_table(element: Element) -> Element:
    return next(element.iterancestors("table"), None)


def _read_span(cell: Element, name: str) -> int:
    value = cell.get(name, "1").strip()
    return min(max(int(value), 1), _MAX_SPAN) if value.isdecimal() and len(value) < 6 else 1


def read_shown_value(element: Element) -> str:
    """The visible text of an input: its value, if it is a button or is filled in, its picture, or its tick."""
    kind = element.get("type", "").lower()
    if kind in _TICKED_INPUTS:
        return f" {'☐' if element.get('checked') is None else '☒'} "
    name = "alt" if kind == "image" else "value"
    return f" {element.get(name) or ''} " if kind in _SHOWN_INPUTS else ""


def extract_visible_text(element: Element, *, is_without_tables: bool = False) -> str:
    """The text of an element in one line, with what its pictures and inputs show."""
    return write_fractions(" ".join("".join(iter_words(element, is_without_tables=is_without_tables)).split()))


def write_moved_figure(element: Element, before: str | None = None) -> str | None:
    """The text of a raised or lowered figure; None if the element has other text, which is part of its line. `before`
    is what stands before it, if that is not only in the tree."""
    text = element.text_content()
    if not text.strip() or next(element.iterdescendants("img", "input"), None) is not None:
        return None
    before = _read_before(element) if before is None else before
    figure = write_moved(1 if element.tag == "sup" else -1, before, text.strip(), _read_after(element))
    return None if figure == text.strip() else figure + (" " if text[-1].isspace() else "")


def _read_before(element: Element) -> str:
    """The nearest text before an element in its line."""
    while True:
        previous, parent = element.getprevious(), element.getparent()
        if previous is not None:
            text, is_start = f"{previous.text_content()}{previous.tail or ''}", previous.tag in SPACED
        elif parent is not None:
            text, is_start = parent.text or "", parent.tag in BLOCKS
        else:
            return ""
        if text or is_start:
            return text
        element = parent if previous is None else previous


def _read_after(element: Element) -> str:
    """The nearest text behind an element in its line."""
    while not element.tail:
        following, parent = element.getnext(), element.getparent()
        if following is not None:
            text: str = "" if following.tag in SPACED else following.text_content()
            if text or following.tag in SPACED:
                return text
        elif parent is None or parent.tag in BLOCKS:
            return ""
        element = parent if following is None else following
    tail: str = element.tail
    return tail


def iter_words(element: Element, *, is_without_tables: bool = False) -> Iterator[str]:
    """Yields the text of an element with what its pictures and inputs show."""
    yield element.text or ""
    for child in element:
        if isinstance(child.tag, str) and not (is_without_tables and child.tag == "table"):
            if child.tag == "img":
                yield f" {child.get('alt') or ''} "
            elif child.tag == "input":
                yield read_shown_value(child)
            elif child.tag in SEPARATE:
                yield f" {''.join(iter_words(child, is_without_tables=is_without_tables))} "
            elif child.tag in MOVED and (figure := write_moved_figure(child)) is not None:
                yield figure
            else:
                spaced = " " if child.tag in BLOCKS or child.tag == "br" else ""
                yield spaced
                yield from iter_words(child, is_without_tables=is_without_tables)
                yield spaced
        yield child.tail or ""
