"""Tables of a PDF's page that have no lines, such as opening hours or the totals of an invoice.

liteparse reads some of them column by column, as paragraphs, or merges a row with an empty cell into the one above. The
texts' places give the rows. Blocks are only replaced by a table that has all of their letters.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gateway.features.documents.engine.ingest.parsers.draft import Box
from gateway.features.documents.engine.ingest.parsers.pdf_turned import get_turn

if TYPE_CHECKING:
    from liteparse import LayoutBlock, ParsedPage, TextItem

_LINE_STEP = 0.5
"""Share of a line's height within which texts are on one line."""
_STAGGERED, _LAID = 0.3, 0.2
"""Shares of a line's height: from the first on lines that overlap are beside each other, up to the second the lower one
follows the upper one."""
_SAME_SIZE = 0.8
"""A smaller text is a raised figure."""
_CELL_GAP = 0.9
"""Line heights between two cells; words are nearer to each other."""
_ROW_STEP = 2.5
"""Line heights from one row to the next."""
_EVEN = 1.35
"""The largest step between lines in smallest ones where rows of one line follow each other: cells of several lines have
larger steps between rows."""
_MAX_LABEL_WORDS, _MAX_CELL_WORDS = 6, 3
"""Words in a cell of the first column and of others, in the mean: columns of prose have more."""
_FIGURES = 0.6
"""Share of a column's cells with digits."""
_MIN_ROWS, _MIN_ROWS_OF_MANY = 3, 2
"""Rows of a table of two columns, and of more."""
_MAX_COLUMNS = 60
_MAX_STAGGERED = 200
"""Texts of a line that others are joined to; a line of more is a drawing."""
_MAX_TABLES = 50
"""On one page."""
_REPLACED = frozenset({"paragraph", "table"})


class AlignedPart(NamedTuple):
    """A table, or the text above or below it in the same block, if there are no rows."""

    rows: Sequence[Sequence[str]]
    text: str
    bbox: Box


_Sides: TypeAlias = tuple[float, float]
"""The left and the right side of a cell or a column."""
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
    return _join_staggered([_make_line(sorted(group, key=lambda one: one.x)) for group in groups])


def _join_staggered(lines: Sequence[_Line]) -> list[_Line]:
    """The lines with those in one that stand beside each other at other heights: a cell of several lines is beside the
    middle of its row."""
    joined: list[_Line] = []
    for line in lines:
        cells = _stack(joined[-1], line) if joined else None
        if cells is None:
            joined.append(line)
        else:
            above = joined[-1]
            joined[-1] = _Line(above.top, max(above.bottom, line.bottom), [*above.items, *line.items], cells)
    return joined


def _stack(above: _Line, line: _Line) -> list[_Cell] | None:
    """The cells of two lines in one row; None unless one of them is a single cell, which is beside those of the other
    or below one of its own."""
    if len(above.items) > _MAX_STAGGERED:
        return None
    height = line.height
    single, others = (line, above) if len(line.cells) == 1 else (above, line)
    sizes = sorted(item.height for item in (*above.items, *line.items))
    if len(single.cells) > 1 or above.bottom - line.top < _STAGGERED * height or sizes[0] < _SAME_SIZE * sizes[-1]:
        return None
    own = single.cells[0]
    beside = [one for one in others.cells if own.left < one.right and one.left < own.right]
    if not beside:
        return sorted([*others.cells, own])
    items = [one for one in above.items if own.left < one.x + one.width and one.x < own.right]
    if single is above or len(beside) > 1 or line.top < max(one.y + one.height for one in items) - _LAID * height:
        return None
    joined = _Cell(min(own.left, beside[0].left), max(own.right, beside[0].right), f"{beside[0].text} {own.text}")
    return [joined if one is beside[0] else one for one in others.cells]


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
    """Yields lines that follow each other and have several cells each; those between them may have one, which is not
    as wide as several."""
    run: list[_Line] = []
    sides: list[_Sides] = []
    for line in lines:
        is_near = bool(run) and line.top - run[-1].top <= _ROW_STEP * max(run[-1].height, line.height)
        fits = len(line.cells) > 1 or _count_beside(sides, line.cells[0]) < 2
        if run and not (is_near and fits):
            yield _trim(run)
            run, sides = [], []
        if run or len(line.cells) > 1:
            run.append(line)
            sides = _join_sides([*sides, *((one.left, one.right) for one in line.cells)])
    yield _trim(run)


def _count_beside(columns: Iterable[_Sides], cell: _Cell) -> int:
    """Counts the columns that a cell is above or below."""
    return sum(left <= cell.right and cell.left <= right for left, right in columns)


def _join_sides(sides: Iterable[_Sides]) -> list[_Sides]:
    """The sides of what stands below each other."""
    columns: list[_Sides] = []
    for left, right in sorted(sides):
        if columns and left <= columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def _trim(run: Sequence[_Line]) -> Sequence[_Line]:
    """A run without the lines at its end that have one cell."""
    end = next((at + 1 for at in reversed(range(len(run))) if len(run[at].cells) > 1), 0)
    return run[:end]


def _find_columns(run: Sequence[_Line]) -> list[_Sides]:
    """The sides of the columns of a table; empty if the lines are not its rows.

    Names may stand beside the values of their columns, or over several: a first line with as many cells as the others
    have columns names them in order.
    """
    if not run:
        return []
    columns = _measure_columns(run)
    below = [] if len(columns) == len(run[0].cells) else _measure_columns(run[1:])
    are_names = bool(below) and (not columns or len(run[0].cells) == len(below))
    return below if are_names and _are_apart(_find_places(below, run[0])) else columns


def _measure_columns(run: Sequence[_Line]) -> list[_Sides]:
    columns = _join_sides((cell.left, cell.right) for line in run for cell in line.cells)
    full = sum(len(line.cells) > 1 for line in run)
    if not 2 <= len(columns) <= _MAX_COLUMNS or full < (_MIN_ROWS if len(columns) == 2 else _MIN_ROWS_OF_MANY):
        return []
    cells: list[list[str]] = [[] for _ in columns]
    for line in run:
        places = _find_places(columns, line)
        if not _are_apart(places):
            return []
        for place, cell in zip(places, line.cells, strict=True):
            cells[place].append(cell.text)
    return [] if _is_prose(cells) else columns


def _are_apart(places: Sequence[int]) -> bool:
    return len(set(places)) == len(places)


def _is_prose(columns: Sequence[Sequence[str]]) -> bool:
    """Whether columns are texts that go on from line to line. Beside a column of figures long texts are cells."""
    if len(columns) > _MIN_ROWS_OF_MANY and any(map(_holds_figures, columns[1:])):
        return False
    limits = [_MAX_LABEL_WORDS, *[_MAX_CELL_WORDS] * (len(columns) - 1)]
    counts = [[len(text.split()) for text in texts] for texts in columns]
    return any(sum(words) > limit * len(words) for words, limit in zip(counts, limits, strict=True))


def _holds_figures(texts: Sequence[str]) -> bool:
    with_digits = sum(any(map(str.isdigit, text)) for text in texts)
    return len(texts) > 1 and with_digits >= _FIGURES * len(texts)


def _find_places(columns: Sequence[_Sides], line: _Line) -> list[int]:
    """The column of each cell of a line; those of a full one are in order."""
    if len(line.cells) == len(columns):
        return list(range(len(columns)))
    return [
        next(place for place, (_, right) in enumerate(columns) if cell.left <= right or place == len(columns) - 1)
        for cell in line.cells
    ]


def _replace(parts: list[Part], run: Sequence[_Line], lines: Sequence[_Line], *, is_ruled: bool) -> list[Part]:
    """The parts with the table of a run; the same ones if it does not have all that they have."""
    top, bottom = run[0].top, run[-1].bottom
    left = min(line.cells[0].left for line in run)
    right = max(line.cells[-1].right for line in run)
    touched = [place for place, part in enumerate(parts) if _touches(part, (left, top, right, bottom))]
    blocks = [part for place in touched if not isinstance(part := parts[place], AlignedPart)]
    if not blocks or len(blocks) < touched[-1] - touched[0] + 1:
        return parts
    if not all(one.kind in _REPLACED or _is_cell(one, run) for one in blocks):
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
    is_mixed = any(_mixes_columns(one, columns, run, figures_only=is_ruled) for one in tables)
    if is_ruled:
        is_misread = is_split and _lacks_row(tables, run, columns)
    else:
        is_misread = _is_misread(tables, run, [*above, *below], columns, is_split=is_split)
    if tables and not (is_mixed or is_misread):
        return parts
    if _count_letters(item.text for line in region for item in line.items) != _count_letters(_iter_texts(blocks)):
        return parts
    rows = [[""] * len(columns) for _ in run]
    for row, line in zip(rows, run, strict=True):
        for place, cell in zip(_find_places(columns, line), line.cells, strict=True):
            row[place] = cell.text
    replaced = [
        *_iter_paragraphs(above),
        AlignedPart(rows, "", (round(left, 2), round(top, 2), round(right, 2), round(bottom, 2))),
        *_iter_paragraphs(below),
    ]
    return [*parts[: touched[0]], *replaced, *parts[touched[-1] + 1 :]]


def _is_cell(block: "LayoutBlock", run: Sequence[_Line]) -> bool:
    """Whether what is taken for a heading is part of a line with several cells."""
    box = block.bbox
    if block.kind != "heading" or box is None:
        return False
    return any(line.top - 1 <= box.y + box.height / 2 <= line.bottom + 1 and len(line.cells) > 1 for line in run)


def _lacks_row(tables: Sequence["LayoutBlock"], run: Sequence[_Line], columns: Sequence[_Sides]) -> bool:
    """Whether a row with figures stands above or below liteparse's table, which has all columns."""
    box = tables[0].bbox if len(tables) == 1 else None
    if box is None or max(map(len, tables[0].rows or [()])) != len(columns):
        return False
    texts = _list_texts(run[1:], columns)
    outside = [line for line in run if not box.y - 1 <= (line.top + line.bottom) / 2 <= box.y + box.height + 1]
    return any(
        _holds_figures(texts[place]) and any(map(str.isdigit, cell.text))
        for line in outside
        for place, cell in zip(_find_places(columns, line), line.cells, strict=True)
    )


def _list_texts(lines: Iterable[_Line], columns: Sequence[_Sides]) -> list[list[str]]:
    """The texts in each column."""
    texts: list[list[str]] = [[] for _ in columns]
    for line in lines:
        for place, cell in zip(_find_places(columns, line), line.cells, strict=True):
            texts[place].append(cell.text)
    return texts


def _mixes_columns(
    table: "LayoutBlock", columns: Sequence[_Sides], run: Sequence[_Line], *, figures_only: bool
) -> bool:
    """Whether liteparse's table has values of several columns in one: each row has only one of them, as one of a debit
    and a credit."""
    texts = _list_texts(run[1:], columns)
    compared = {place for place, column in enumerate(texts) if not figures_only or _holds_figures(column)}
    for cells in zip_longest(*(table.rows or [])):
        middles = [one.bbox.x + one.bbox.width / 2 for one in cells if one is not None and one.bbox and one.text]
        own = {at for at, (left, right) in enumerate(columns) for middle in middles if left <= middle <= right}
        if len(own & compared) > 1:
            return True
    return False


def _is_misread(
    tables: Sequence["LayoutBlock"],
    run: Sequence[_Line],
    others: Sequence[_Line],
    columns: Sequence[_Sides],
    *,
    is_split: bool,
) -> bool:
    """Whether liteparse's table lacks a column, which is a paragraph (`is_split`), lacks a row although no cell has
    several lines, or has a sentence beside it cut into cells."""
    steps = [below.top - above.top for above, below in pairwise(run)]
    box = tables[0].bbox if tables else None
    if len(tables) > 1 or box is None or max(steps) > _EVEN * min(steps):
        return False
    inside = [line for line in others if box.y - 1 <= (line.top + line.bottom) / 2 <= box.y + box.height + 1]
    if not all(_crosses(line, columns) for line in inside):  # more lines of a cell
        return False
    rows = len(tables[0].rows or ()) + bool(tables[0].header)
    return is_split or bool(inside) or rows < len(run)


def _crosses(line: _Line, columns: Sequence[_Sides]) -> bool:
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
