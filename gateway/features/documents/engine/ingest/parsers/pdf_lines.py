"""The lines of a PDF's page, their cells, and the lines that may be rows of a table without lines."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gateway.features.documents.engine.ingest.parsers.pdf_turned import get_turn

if TYPE_CHECKING:
    from liteparse import TextItem, WordBox

_LINE_STEP = 0.5
"""Share of a line's height within which texts are on one line."""
_STAGGERED, _LAID = 0.3, 0.2
"""Shares of a line's height: from the first on lines that overlap are beside each other, up to the second the lower one
follows the upper one."""
_SAME_SIZE = 0.8
"""A smaller text is a raised figure."""
_CELL_GAP = 0.9
"""Line heights between two cells; words are nearer to each other."""
_WORD_GAP = 0.45
"""The same between two names of columns, which may be longer than what is below them."""
_ROW_STEP = 2.5
"""Line heights from one row to the next."""
_MAX_STAGGERED = 200
"""Texts of a line that others are joined to; a line of more is a drawing."""

Sides: TypeAlias = tuple[float, float]
"""The left and the right side of a cell or a column."""


class Cell(NamedTuple):
    """A text of a line, which stands apart from others."""

    left: float
    right: float
    text: str


class Line(NamedTuple):
    """Texts beside each other."""

    top: float
    bottom: float
    items: Sequence["TextItem"]
    cells: Sequence[Cell]

    @property
    def height(self) -> float:
        """From its top to its bottom."""
        return self.bottom - self.top


def list_lines(items: Iterable["TextItem"]) -> list[Line]:
    """The lines of a page from its top, of texts that are not turned."""
    upright = [one for one in items if one.text.strip() and not get_turn(one)]
    groups: list[list[TextItem]] = []
    for item in sorted(upright, key=lambda one: (one.y, one.x)):
        if not groups or item.y - groups[-1][0].y > _LINE_STEP * max(groups[-1][0].height, 1):
            groups.append([])
        groups[-1].append(item)
    return _join_staggered([_make_line(sorted(group, key=lambda one: one.x)) for group in groups])


def _join_staggered(lines: Sequence[Line]) -> list[Line]:
    """The lines with those in one that stand beside each other at other heights: a cell of several lines is beside the
    middle of its row."""
    joined: list[Line] = []
    for line in lines:
        cells = _stack(joined[-1], line) if joined else None
        if cells is None:
            joined.append(line)
        else:
            above = joined[-1]
            joined[-1] = Line(above.top, max(above.bottom, line.bottom), [*above.items, *line.items], cells)
    return joined


def _stack(above: Line, line: Line) -> list[Cell] | None:
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
    joined = Cell(min(own.left, beside[0].left), max(own.right, beside[0].right), f"{beside[0].text} {own.text}")
    return [joined if one is beside[0] else one for one in others.cells]


def _make_line(items: Sequence["TextItem"]) -> Line:
    top, bottom = min(one.y for one in items), max(one.y + one.height for one in items)
    return Line(top, bottom, items, _join_words(items, _CELL_GAP * (bottom - top)))


def part_names(line: Line) -> Line:
    """A line with cells of their own for words that are further apart than those of a text."""
    words = sorted((word for item in line.items for word in item.words), key=lambda one: one.x)
    return line._replace(cells=_join_words(words, _WORD_GAP * line.height))


def _join_words(words: Iterable["TextItem | WordBox"], gap: float) -> list[Cell]:
    """The cells of texts from the left, between which there is at least this gap."""
    cells: list[Cell] = []
    for word in words:
        text, right = " ".join(word.text.split()), word.x + word.width
        if cells and word.x - cells[-1].right < gap:
            left, before, texts = cells[-1]
            cells[-1] = Cell(left, max(before, right), f"{texts} {text}")
        else:
            cells.append(Cell(word.x, right, text))
    return cells


def iter_runs(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Yields lines that follow each other and have several cells each; those between them may have one, which is not
    as wide as several."""
    run: list[Line] = []
    sides: list[Sides] = []
    for line in lines:
        is_near = bool(run) and line.top - run[-1].top <= _ROW_STEP * max(run[-1].height, line.height)
        fits = len(line.cells) > 1 or _count_beside(sides, line.cells[0]) < 2
        if run and not (is_near and fits):
            yield _trim(run)
            run, sides = [], []
        if run or len(line.cells) > 1:
            run.append(line)
            sides = join_sides([*sides, *((one.left, one.right) for one in line.cells)])
    yield _trim(run)


def _count_beside(columns: Iterable[Sides], cell: Cell) -> int:
    """Counts the columns that a cell is above or below."""
    return sum(left <= cell.right and cell.left <= right for left, right in columns)


def join_sides(sides: Iterable[Sides]) -> list[Sides]:
    """The sides of what stands below each other."""
    columns: list[Sides] = []
    for left, right in sorted(sides):
        if columns and left <= columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def _trim(run: Sequence[Line]) -> Sequence[Line]:
    """A run without the lines at its end that have one cell."""
    end = next((at + 1 for at in reversed(range(len(run))) if len(run[at].cells) > 1), 0)
    return run[:end]
