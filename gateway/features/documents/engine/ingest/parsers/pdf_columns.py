"""Tables of a PDF's page that have no lines, such as opening hours or the totals of an invoice.

liteparse reads some of them column by column, as paragraphs, or merges a row with an empty cell into the one above. The
texts' places give the rows. Blocks are only replaced by a table that has all of their letters.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gateway.features.documents.engine.ingest.parsers.draft import Box
from gateway.features.documents.engine.ingest.parsers.pdf_turned import get_turn

if TYPE_CHECKING:
    from liteparse import LayoutBlock, ParsedPage, TextItem

_LINE_STEP = 0.5
"""Share of a line's height within which texts are on one line."""
_CELL_GAP = 0.9
"""Line heights between two cells; words are nearer to each other."""
_ROW_STEP = 2.5
"""Line heights from one row to the next."""
_EVEN = 1.35
"""The largest step between lines in smallest ones where rows of one line follow each other: cells of several lines have
larger steps between rows."""
_MAX_LABEL_WORDS, _MAX_CELL_WORDS = 6, 3
"""Words in a cell of the first column and of others, in the mean: columns of prose have more."""
_MIN_ROWS, _MIN_ROWS_OF_MANY = 3, 2
"""Rows of a table of two columns, and of more."""
_MAX_COLUMNS = 60
_MAX_TABLES = 50
"""On one page."""
_REPLACED = frozenset({"paragraph", "table"})


class AlignedPart(NamedTuple):
    """A table, or the text above or below it in the same block, if there are no rows."""

    rows: Sequence[Sequence[str]]
    text: str
    bbox: Box


Part: TypeAlias = "LayoutBlock | AlignedPart"


class _Cell(NamedTuple):
    left: float
    right: float
    text: str


class _Line(NamedTuple):
    top: float
    bottom: float
    items: Sequence["TextItem"]
    cells: Sequence[_Cell]

    @property
    def height(self) -> float:
        return self.bottom - self.top


def arrange_tables(page: "ParsedPage") -> list[Part]:
    """The blocks of a page, in their order, with its tables without lines as rows."""
    parts: list[Part] = list(page.blocks or ())
    if not any(one.kind in _REPLACED for one in page.blocks or ()):
        return parts
    lines = _list_lines(page.text_items)
    layout = page.complexity.layout if page.complexity else None
    is_ruled = layout is None or layout.ruled_table_count > 0
    runs = (run for run in _iter_runs(lines) if _find_columns(run))
    for run, _ in zip(runs, range(_MAX_TABLES), strict=False):
        parts = _replace(parts, run, lines, is_ruled=is_ruled)
    return parts


def _list_lines(items: Iterable["TextItem"]) -> list[_Line]:
    upright = [one for one in items if one.text.strip() and not get_turn(one)]
    groups: list[list[TextItem]] = []
    for item in sorted(upright, key=lambda one: (one.y, one.x)):
        if not groups or item.y - groups[-1][0].y > _LINE_STEP * max(groups[-1][0].height, 1):
            groups.append([])
        groups[-1].append(item)
    return [_make_line(sorted(group, key=lambda one: one.x)) for group in groups]


def _make_line(items: Sequence["TextItem"]) -> _Line:
    top, bottom = min(one.y for one in items), max(one.y + one.height for one in items)
    cells: list[_Cell] = []
    for item in items:
        text, right = " ".join(item.text.split()), item.x + item.width
        if cells and item.x - cells[-1].right < _CELL_GAP * (bottom - top):
            left, before, words = cells[-1]
            cells[-1] = _Cell(left, max(before, right), f"{words} {text}")
        else:
            cells.append(_Cell(item.x, right, text))
    return _Line(top, bottom, items, cells)


def _iter_runs(lines: Sequence[_Line]) -> Iterator[Sequence[_Line]]:
    """Yields lines that follow each other and have several cells each; one between them may have its label alone."""
    run: list[_Line] = []
    for line in lines:
        is_near = bool(run) and line.top - run[-1].top <= _ROW_STEP * max(run[-1].height, line.height)
        is_label = is_near and len(line.cells) == 1 and abs(line.cells[0].left - run[0].cells[0].left) < line.height
        if run and not (is_near and (len(line.cells) > 1 or is_label)):
            yield _trim(run)
            run = []
        if run or len(line.cells) > 1:
            run.append(line)
    yield _trim(run)


def _trim(run: Sequence[_Line]) -> Sequence[_Line]:
    """A run without the lines at its end that have one cell."""
    end = next((at + 1 for at in reversed(range(len(run))) if len(run[at].cells) > 1), 0)
    return run[:end]


def _find_columns(run: Sequence[_Line]) -> list[tuple[float, float]]:
    """The sides of the columns of a table; empty if the lines are not its rows."""
    columns: list[tuple[float, float]] = []
    for cell in sorted(cell for line in run for cell in line.cells):
        if columns and cell.left <= columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], cell.right))
        else:
            columns.append((cell.left, cell.right))
    full = sum(len(line.cells) > 1 for line in run)
    if not 2 <= len(columns) <= _MAX_COLUMNS or full < (_MIN_ROWS if len(columns) == 2 else _MIN_ROWS_OF_MANY):
        return []
    words: list[list[int]] = [[] for _ in columns]
    for line in run:
        places = [_find_place(columns, cell) for cell in line.cells]
        if len(set(places)) < len(places):
            return []
        for place, cell in zip(places, line.cells, strict=True):
            words[place].append(len(cell.text.split()))
    limits = [_MAX_LABEL_WORDS, *[_MAX_CELL_WORDS] * (len(columns) - 1)]
    is_prose = any(sum(counts) > limit * len(counts) for counts, limit in zip(words, limits, strict=True))
    return [] if is_prose else columns


def _find_place(columns: Sequence[tuple[float, float]], cell: _Cell) -> int:
    return next(place for place, (left, right) in enumerate(columns) if left <= cell.left <= right)


def _replace(parts: list[Part], run: Sequence[_Line], lines: Sequence[_Line], *, is_ruled: bool) -> list[Part]:
    """The parts with the table of a run; the same ones if it does not have all that they have."""
    top, bottom = run[0].top, run[-1].bottom
    left = min(line.cells[0].left for line in run)
    right = max(line.cells[-1].right for line in run)
    touched = [place for place, part in enumerate(parts) if _touches(part, (left, top, right, bottom))]
    blocks = [part for place in touched if not isinstance(part := parts[place], AlignedPart)]
    if not blocks or len(blocks) < touched[-1] - touched[0] + 1 or any(one.kind not in _REPLACED for one in blocks):
        return parts
    boxes = [one.bbox for one in blocks if one.bbox is not None]
    begin, end = min(box.y for box in boxes), max(box.y + box.height for box in boxes)
    region = [line for line in lines if begin - 1 <= (line.top + line.bottom) / 2 <= end + 1]
    above = [line for line in region if line.top < top]
    below = [line for line in region if line.top > run[-1].top]
    if any(len(line.cells) > 1 for line in (*above, *below)):
        return parts
    columns = _find_columns(run)
    tables = [one for one in blocks if one.kind == "table"]
    is_split = len(blocks) > len(tables)
    if tables and (is_ruled or not _is_misread(tables, run, [*above, *below], columns, is_split=is_split)):
        return parts
    if _count_letters(item.text for line in region for item in line.items) != _count_letters(_iter_texts(blocks)):
        return parts
    rows = [[""] * len(columns) for _ in run]
    for row, line in zip(rows, run, strict=True):
        for cell in line.cells:
            row[_find_place(columns, cell)] = cell.text
    replaced = [
        *_iter_paragraphs(above),
        AlignedPart(rows, "", (round(left, 2), round(top, 2), round(right, 2), round(bottom, 2))),
        *_iter_paragraphs(below),
    ]
    return [*parts[: touched[0]], *replaced, *parts[touched[-1] + 1 :]]


def _is_misread(
    tables: Sequence["LayoutBlock"],
    run: Sequence[_Line],
    others: Sequence[_Line],
    columns: Sequence[tuple[float, float]],
    *,
    is_split: bool,
) -> bool:
    """Whether liteparse's table lacks a column, which is a paragraph (`is_split`), lacks a row although no cell has
    several lines, or has a sentence beside it cut into cells."""
    steps = [below.top - above.top for above, below in pairwise(run)]
    box = tables[0].bbox
    if len(tables) > 1 or box is None or max(steps) > _EVEN * min(steps):
        return False
    inside = [line for line in others if box.y - 1 <= (line.top + line.bottom) / 2 <= box.y + box.height + 1]
    if not all(_crosses(line, columns) for line in inside):  # more lines of a cell
        return False
    rows = len(tables[0].rows or ()) + bool(tables[0].header)
    return is_split or bool(inside) or rows < len(run)


def _crosses(line: _Line, columns: Sequence[tuple[float, float]]) -> bool:
    """Whether a text runs over several columns."""
    return sum(line.cells[0].left <= right and left <= line.cells[-1].right for left, right in columns) > 1


def _touches(part: Part, box: Box) -> bool:
    if isinstance(part, AlignedPart):
        return _overlap(part.bbox, box)
    own = part.bbox
    return own is not None and _overlap((own.x, own.y, own.x + own.width, own.y + own.height), box)


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _iter_texts(blocks: Iterable["LayoutBlock"]) -> Iterator[str]:
    for block in blocks:
        yield block.text or ""
        for row in [*([block.header] if block.header else []), *(block.rows or [])]:
            yield from (cell.text for cell in row)


def _count_letters(texts: Iterable[str]) -> Counter[str]:
    """Counts letters and digits: hyphens and marks of emphasis are not the same in blocks and texts."""
    return Counter(letter for text in texts for letter in text if letter.isalnum())


def _iter_paragraphs(lines: Sequence[_Line]) -> Iterator[AlignedPart]:
    group: list[_Line] = []
    for line in lines:
        if group and line.top - group[-1].bottom > line.height:
            yield _make_paragraph(group)
            group = []
        group.append(line)
    if group:
        yield _make_paragraph(group)


def _make_paragraph(lines: Sequence[_Line]) -> AlignedPart:
    left, right = min(line.cells[0].left for line in lines), max(line.cells[-1].right for line in lines)
    text = " ".join(cell.text for line in lines for cell in line.cells)
    return AlignedPart((), text, (round(left, 2), round(lines[0].top, 2), round(right, 2), round(lines[-1].bottom, 2)))
