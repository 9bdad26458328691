"""PDF tables as rows of text. liteparse sometimes merges two rows of numbers ("Alaska Arizona | 209 2,303"); the page's
text lines separate them."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from liteparse import LayoutBlock, LayoutCell, TextItem

_LINE_STEP = 0.5
"""Share of a line's height within which items are on the same line."""

_FULL = 0.5
"""Share of a row's cells that must be filled on a line for it to be a row of its own."""

_NUMBERS = 0.6
"""Share of a line's cells that must hold digits. Wrapped prose fills lines too, but not with numbers."""

_MIN_CELLS = 3

Plain = Callable[[str], str]


class _Line(NamedTuple):
    y: float
    height: float
    cells: dict[int, list["TextItem"]]


def read_table_rows(block: "LayoutBlock", items: Sequence["TextItem"], plain: Plain) -> list[list[str]]:
    """The header, if there is one, and the rows; merged rows are split. `plain` removes text marks."""
    rows = block.rows or []
    tops = [_find_top(row) for row in rows]
    bottom = block.bbox.y + block.bbox.height + 1 if block.bbox else None
    table_rows = [[plain(cell.text) for cell in block.header]] if block.header else []
    for row, (top, after) in zip(rows, pairwise([*tops, bottom]), strict=True):
        texts = [plain(cell.text) for cell in row]
        inside = [] if top is None or after is None else [i for i in items if top - 1 <= i.y + i.height / 2 < after - 1]
        table_rows.extend(_split(row, texts, inside) or [texts])
    return table_rows


def _find_top(row: Iterable["LayoutCell"]) -> float | None:
    return min((cell.bbox.y for cell in row if cell.bbox), default=None)


def _split(row: Sequence["LayoutCell"], texts: Sequence[str], items: Sequence["TextItem"]) -> list[list[str]]:
    """The rows that this one consists of; empty unless the page's lines show several and account for every
    word."""
    used = sum(1 for text in texts if text)
    lines = _group_lines(row, items)
    full = [line for line in lines if len(line.cells) >= max(_FULL * used, _MIN_CELLS)]
    if len(full) < 2 or not any(map(_has_numbers, full)):
        return []
    if _list_words(texts) != _list_words(item.text for line in lines for cell in line.cells.values() for item in cell):
        return []
    return [_split_cells(line, lines, full, len(row)) for line in full]


def _split_cells(own: _Line, lines: Sequence[_Line], full: Sequence[_Line], width: int) -> list[str]:
    """A line's cells; a cell between the lines (spanning rows) belongs to each row."""
    cells = []
    for column in range(width):
        here = own.cells.get(column)
        if here is None and not any(column in line.cells for line in full):
            here = [item for line in lines for item in line.cells.get(column, ())]
        cells.append(" ".join(item.text.strip() for item in here or ()))
    return cells


def _group_lines(row: Sequence["LayoutCell"], items: Sequence["TextItem"]) -> list[_Line]:
    lines: list[_Line] = []
    for item in sorted(items, key=lambda item: (item.y, item.x)):
        column = _find_column(row, item)
        if column is None:
            continue
        if not lines or item.y - lines[-1].y > _LINE_STEP * min(lines[-1].height, item.height) * 0.8:
            lines.append(_Line(item.y, item.height, {}))
        lines[-1].cells.setdefault(column, []).append(item)
    return lines


def _find_column(row: Sequence["LayoutCell"], item: "TextItem") -> int | None:
    """The cell whose middle is nearest to the item."""
    middle = item.x + item.width / 2
    distances = [
        (max(cell.bbox.x - middle, middle - cell.bbox.x - cell.bbox.width, 0.0), abs(cell.bbox.x - item.x), index)
        for index, cell in enumerate(row)
        if cell.bbox
    ]
    return min(distances)[2] if distances else None


def _has_numbers(line: _Line) -> bool:
    with_digits = sum(any(re.search(r"\d", item.text) for item in cell) for cell in line.cells.values())
    return with_digits >= max(_NUMBERS * len(line.cells), _MIN_CELLS)


def _list_words(texts: Iterable[str]) -> list[str]:
    return sorted(word for text in texts for word in text.split())
