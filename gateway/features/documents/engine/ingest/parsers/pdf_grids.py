"""Tables of a PDF's page with lines around their cells, of which some are merged.

liteparse cuts such a table at all of its lines, so that a cell over several rows or columns is in one of them, and its
words in several. The lines show which cells are merged. Blocks are only replaced by a table that adds no text.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gateway.features.documents.engine.ingest.parsers.draft import Box
from gateway.features.documents.engine.ingest.parsers.pdf_merged import Cell, MergedTable
from gateway.features.documents.engine.ingest.parsers.pdf_parts import (
    AlignedPart,
    Part,
    count_letters,
    iter_texts,
    touches,
)
from gateway.features.documents.engine.ingest.parsers.pdf_turned import get_turn

if TYPE_CHECKING:
    from liteparse import ParsedPage, TextItem, WordBox

_THIN = 3.0
"""Points: a filled box up to this wide is a line."""
_NEAR = 2.5
"""Points between lines that count as one, and from the end of a line to the one that it meets."""
_COVERED = 0.9
"""The share of a cell's side that its line covers; what underlines a text is shorter."""
_MAX_SEGMENTS = 5000
"""A table of more is a drawing."""
_MAX_CELLS = 10_000
_MAX_TABLES = 50
"""On one page."""
_REPLACED = frozenset({"paragraph", "heading", "list_item", "table"})
_GAP = 1.0
"""Text heights between the texts of two cells; words of one are nearer to each other."""
_WORDLESS = frozenset({"rule", "figure"})

_Word: TypeAlias = "TextItem | WordBox"


class _Segment(NamedTuple):
    """A level or upright line: its place across its direction, and its ends along it."""

    place: float
    start: float
    end: float


class _Grid(NamedTuple):
    """The places of a table's upright and level lines, and the cells between them."""

    xs: Sequence[float]
    ys: Sequence[float]
    cells: Sequence[Cell]

    @property
    def box(self) -> Box:
        """The sides of the table."""
        return (self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])


def arrange_grids(page: "ParsedPage") -> list[Part]:
    """The blocks of a page, in their order, with tables whose lines merge cells as such."""
    parts: list[Part] = list(page.blocks or ())
    tables = [one for one in page.blocks or () if one.kind == "table" and one.bbox is not None][:_MAX_TABLES]
    if not tables or page.vector_graphics is None:
        return parts
    level, upright = _list_segments(page)
    for table in tables:
        box = (table.bbox.x, table.bbox.y, table.bbox.x + table.bbox.width, table.bbox.y + table.bbox.height)
        grid = _find_grid(_cut(level, (box[1], box[0], box[3], box[2])), _cut(upright, box))
        if grid is not None:
            parts = _replace(parts, grid, page.text_items)
    return parts


def _list_segments(page: "ParsedPage") -> tuple[list[_Segment], list[_Segment]]:
    """The level and the upright lines that a page draws, also those that are flat boxes."""
    level: list[_Segment] = []
    upright: list[_Segment] = []
    graphics = page.vector_graphics
    assert graphics is not None
    for line in graphics.lines:
        if line.stroke and abs(line.y1 - line.y2) <= 1:
            level.append(_Segment((line.y1 + line.y2) / 2, *sorted((line.x1, line.x2))))
        elif line.stroke and abs(line.x1 - line.x2) <= 1:
            upright.append(_Segment((line.x1 + line.x2) / 2, *sorted((line.y1, line.y2))))
    for shape in graphics.shapes:
        x, y, width, height = shape.bbox
        if shape.fill and not shape.stroke and height <= _THIN < width:
            level.append(_Segment(y + height / 2, x, x + width))
        elif shape.fill and not shape.stroke and width <= _THIN < height:
            upright.append(_Segment(x + width / 2, y, y + height))
    return level, upright


def _cut(segments: Iterable[_Segment], box: Box) -> list[_Segment]:
    """The lines in a box, which is given by its least place, start, and greatest place and end; their parts in it."""
    low, start, high, end = box[0] - _NEAR, box[1] - _NEAR, box[2] + _NEAR, box[3] + _NEAR
    return [
        _Segment(one.place, max(one.start, start), min(one.end, end))
        for one in segments
        if low <= one.place <= high and one.start < end and start < one.end
    ]


def _find_grid(level: Sequence[_Segment], upright: Sequence[_Segment]) -> _Grid | None:
    """The cells between lines; None if the lines do not part the whole into cells."""
    if len(level) + len(upright) > _MAX_SEGMENTS:
        return None
    xs, ys = _list_places(upright), _list_places(level)
    if min(len(xs), len(ys)) < 3 or len(xs) * len(ys) > _MAX_CELLS:
        return None
    left_of = _find_covered(upright, xs, ys)
    above = _find_covered(level, ys, xs)
    # A line that is the side of no cell, as one below a word, parts none.
    xs_used = [place for place in range(len(xs)) if any(left_of[place])]
    ys_used = [place for place in range(len(ys)) if any(above[place])]
    if len(xs_used) < len(xs) or len(ys_used) < len(ys):
        wanted_xs, wanted_ys = [xs[place] for place in xs_used], [ys[place] for place in ys_used]
        if min(len(wanted_xs), len(wanted_ys)) < 3:
            return None
        xs, ys = wanted_xs, wanted_ys
        left_of, above = _find_covered(upright, xs, ys), _find_covered(level, ys, xs)
    cells = _list_cells(left_of, above)
    return _Grid(xs, ys, cells) if cells else None


def _list_places(segments: Sequence[_Segment]) -> list[float]:
    """The places of lines, of which those that are near to each other count as one."""
    places: list[float] = []
    for place in sorted(one.place for one in segments):
        if not places or place - places[-1] > _NEAR:
            places.append(place)
    return places


def _find_covered(segments: Sequence[_Segment], places: Sequence[float], stops: Sequence[float]) -> list[list[bool]]:
    """For each place, whether its lines cover the way from each stop to the next."""
    lines: list[list[_Segment]] = [[] for _ in places]
    for one in sorted(segments, key=lambda segment: segment.start):
        index = bisect_right(places, one.place) - 1
        if index + 1 < len(places) and places[index + 1] - one.place <= 0:
            index += 1
        lines[max(index, 0)].append(one)
    return [
        [_measure(line, start, end) >= _COVERED * (end - start) for start, end in pairwise(stops)] for line in lines
    ]


def _measure(line: Iterable[_Segment], start: float, end: float) -> float:
    """The length that segments, sorted by their starts, cover between two places."""
    covered, reached = 0.0, start
    for one in line:
        begin, stop = max(one.start, reached), min(one.end, end)
        if stop > begin:
            covered += stop - begin
            reached = stop
    return covered


def _list_cells(left_of: Sequence[Sequence[bool]], above: Sequence[Sequence[bool]]) -> list[Cell]:
    """The cells by their lines; empty if one is open or has corners."""
    rows, columns = len(above) - 1, len(left_of) - 1
    used: set[tuple[int, int]] = set()
    cells: list[Cell] = []
    for top in range(rows):
        for left in range(columns):
            if (top, left) in used:
                continue
            right = left + 1
            while right < columns and not left_of[right][top]:
                right += 1
            bottom = top + 1
            while bottom < rows and not above[bottom][left]:
                bottom += 1
            cell = Cell(top, left, bottom, right)
            inside = {(row, column) for row in range(top, bottom) for column in range(left, right)}
            if not inside.isdisjoint(used) or not _is_closed(cell, left_of, above):
                return []
            used |= inside
            cells.append(cell)
    return cells


def _is_closed(cell: Cell, left_of: Sequence[Sequence[bool]], above: Sequence[Sequence[bool]]) -> bool:
    """Whether lines are all around a cell, and none is in it."""
    rows, columns = range(cell.top, cell.bottom), range(cell.left, cell.right)
    is_bounded = all(left_of[cell.left][row] and left_of[cell.right][row] for row in rows) and all(
        above[cell.top][column] and above[cell.bottom][column] for column in columns
    )
    is_crossed = any(left_of[column][row] for column in columns[1:] for row in rows) or any(
        above[row][column] for row in rows[1:] for column in columns
    )
    return is_bounded and not is_crossed


def _replace(parts: list[Part], grid: _Grid, items: Sequence["TextItem"]) -> list[Part]:
    """The parts with a table in place of those that stand between its lines; the same ones if one goes beyond them, or
    if it is one table without merged cells already."""
    touched = [place for place, part in enumerate(parts) if touches(part, grid.box)]
    blocks = [part for place in touched if not isinstance(part := parts[place], AlignedPart)]
    with_words = [one for one in blocks if one.kind not in _WORDLESS]
    is_merged = any(cell.is_merged for cell in grid.cells)
    if sum(len(one.rows or ()) + bool(one.header) for one in blocks) >= len(grid.ys):
        return parts  # liteparse has rows that have no lines
    if len(blocks) < len(touched) or not (is_merged or len(with_words) > 1):
        return parts
    if not all(one.kind in _REPLACED for one in with_words) or _has_turned_text(grid, items):
        return parts
    inside = [one for one in items if one.text.strip() and _is_inside(one, grid.box)]
    boxes = [
        (one.x, one.y, one.x + one.width, one.y + one.height) for one in (block.bbox for block in with_words) if one
    ]
    own = {id(one) for one in inside}
    if any(id(one) not in own and one.text.strip() and any(_is_inside(one, box) for box in boxes) for one in items):
        return parts
    words = list(_iter_words(inside, grid.xs))
    if count_letters(word.text for word in words) - count_letters(iter_texts(blocks)):
        return parts
    contents = _list_contents(grid, words)
    if any(cell.right - cell.left > 1 and _has_gaps(lines) for cell, lines in contents.items()):
        return parts
    texts = {cell: " ".join(word.text.strip() for line in lines for word in line) for cell, lines in contents.items()}
    others = [part for place, part in enumerate(parts) if place not in touched]
    return [*others[: touched[0]], *_make_parts(grid, texts), *others[touched[0] :]]


def _has_turned_text(grid: _Grid, items: Iterable["TextItem"]) -> bool:
    """Whether a turned text is in a table or above it, as the heads of narrow columns are."""
    left, _, right, bottom = grid.box
    return any(get_turn(one) and one.y < bottom and one.x < right and left < one.x + one.width for one in items)


def _is_inside(one: _Word, box: Box) -> bool:
    x, y = one.x + one.width / 2, one.y + one.height / 2
    return bool(box[0] <= x <= box[2] and box[1] <= y <= box[3])


def _iter_words(items: Iterable["TextItem"], xs: Sequence[float]) -> Iterator[_Word]:
    """Yields texts that are in one column, and the words of others."""
    for item in items:
        left, right = bisect_right(xs, item.x + 1), bisect_right(xs, item.x + item.width - 1)
        if left == right or not item.words:
            yield item
        else:
            yield from item.words


def _list_contents(grid: _Grid, words: Iterable[_Word]) -> dict[Cell, list[list[_Word]]]:
    """The words of each cell that has some, line by line."""
    owners = {
        (row, column): cell
        for cell in grid.cells
        for row in range(cell.top, cell.bottom)
        for column in range(cell.left, cell.right)
    }
    contents: dict[Cell, list[_Word]] = {}
    for word in words:
        row, column = _find_place(grid.ys, word.y + word.height / 2), _find_place(grid.xs, word.x + word.width / 2)
        contents.setdefault(owners[row, column], []).append(word)
    return {cell: _list_lines(words) for cell, words in contents.items()}


def _find_place(places: Sequence[float], value: float) -> int:
    return min(max(bisect_right(places, value) - 1, 0), len(places) - 2)


def _list_lines(words: Iterable[_Word]) -> list[list[_Word]]:
    lines: list[list[_Word]] = []
    for word in sorted(words, key=lambda one: one.y + one.height / 2):
        last = lines[-1][-1] if lines else None
        if last is None or word.y + word.height / 2 - (last.y + last.height / 2) > min(last.height, word.height) / 2:
            lines.append([])
        lines[-1].append(word)
    return [sorted(line, key=lambda one: one.x) for line in lines]


def _has_gaps(lines: Iterable[Sequence[_Word]]) -> bool:
    """Whether words are as far apart as those of several cells are, whose lines are not drawn."""
    return any(
        word.x - before.x - before.width > _GAP * word.height for line in lines for before, word in pairwise(line)
    )


def _make_parts(grid: _Grid, texts: Mapping[Cell, str]) -> Iterator[Part]:
    """Yields the titles, which are in cells over all columns above a table, and the table."""
    width, height = len(grid.xs) - 1, len(grid.ys) - 1
    whole_rows = {cell.top: cell for cell in grid.cells if cell.right - cell.left == width}
    first = 0
    while first in whole_rows and whole_rows[first].bottom < height:
        cell = whole_rows[first]
        if cell in texts:
            yield AlignedPart((), texts[cell], _round((grid.xs[0], grid.ys[first], grid.xs[-1], grid.ys[cell.bottom])))
        first = cell.bottom
    cells = [cell for cell in grid.cells if cell.top >= first]
    rows = sorted({cell.top for cell in cells})
    columns = sorted({cell.left for cell in cells})
    moved = [
        Cell(
            bisect_left(rows, cell.top),
            bisect_left(columns, cell.left),
            bisect_left(rows, cell.bottom),
            bisect_left(columns, cell.right),
        )
        for cell in cells
    ]
    table = MergedTable((len(rows), len(columns)), moved)
    box = _round((grid.xs[0], grid.ys[first], grid.xs[-1], grid.ys[-1]))
    yield AlignedPart((), table.write([texts.get(cell, "") for cell in cells]), box, table)


def _round(box: Box) -> Box:
    left, top, right, bottom = box
    return (round(left, 2), round(top, 2), round(right, 2), round(bottom, 2))
