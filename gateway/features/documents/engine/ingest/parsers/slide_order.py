"""The order in which the shapes of a slide are read; the file's own is the order in which they were drawn."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pptx.util import Pt

from agent.text.numbers import find_numbers
from agent.text.units import find_unit

if TYPE_CHECKING:
    from pptx.shapes.base import BaseShape

_ROW_HEIGHT = Pt(14)
"""Boxes whose upper edges differ by less are in one row: people place them by hand. Columns may overlap by as much: a
box is wider than its text."""
_MAX_BOXES = 60
"""Boxes of a slide beyond which it is a drawing, without columns: the search for them is cubic."""


class _Box(NamedTuple):
    """A shape with its place in the drawing order and its edges. `is_text` is false for pictures and for shapes that
    only decorate: neither makes a column; `is_figure` for a text that is a figure alone."""

    shape: "BaseShape"
    place: int
    left: int
    right: int
    top: int
    is_text: bool
    is_figure: bool


def sort_shapes(shapes: Iterable["BaseShape"]) -> Iterator["BaseShape"]:
    """Yields the shapes that are shown, row by row from the left; where they were drawn column by column, with a gutter
    between the columns, each column as a whole."""
    boxes = [_make_box(shape, place) for place, shape in enumerate(filter(_is_shown, shapes))]
    for box in _sort_boxes(boxes):
        yield box.shape


def _is_shown(shape: "BaseShape") -> bool:
    return not any(value in {"1", "true"} for value in shape._element.xpath("./*/p:cNvPr/@hidden"))


def _make_box(shape: "BaseShape", place: int) -> _Box:
    left = shape.left or 0
    text = "".join(one.text or "" for one in shape._element.iterfind(".//{*}t"))
    is_text = str(shape._element.tag).endswith("}graphicFrame") or bool(text)
    return _Box(shape, place, left, left + (shape.width or 0), shape.top or 0, is_text, _is_figure(text))


def _is_figure(text: str) -> bool:
    """Whether a text is a number with its unit: "EUR 1,200", "5 M", "12 %"."""
    numbers = find_numbers(text)
    if len(numbers) != 1 or numbers[0].is_word:
        return False
    _, start, end = find_unit(text, numbers[0].start, numbers[0].end)
    return not any(map(str.isalnum, text[:start] + text[end:]))


def _sort_boxes(boxes: Sequence[_Box]) -> Iterator[_Box]:
    rows = _group_rows(boxes)
    while rows:
        count, columns = _find_columns(rows) if len(boxes) <= _MAX_BOXES else (1, [])
        if columns:
            for column in columns:
                yield from _sort_boxes(column)
        else:
            yield from sorted(rows[0], key=lambda box: box.left)
        del rows[:count]


def _group_rows(boxes: Sequence[_Box]) -> list[list[_Box]]:
    """The boxes from the top; those that begin at about the same height are in one row."""
    rows: list[list[_Box]] = []
    for box in sorted(boxes, key=lambda box: box.top):
        if not rows or box.top - rows[-1][0].top > _ROW_HEIGHT:
            rows.append([])
        rows[-1].append(box)
    return rows


def _find_columns(rows: Sequence[Sequence[_Box]]) -> tuple[int, list[list[_Box]]]:
    """The most of the first rows that are columns, and these; one row and no columns if there are none."""
    best: tuple[int, list[list[_Box]]] = (1, [])
    boxes: list[_Box] = []
    for count, row in enumerate(rows, 1):
        boxes += row
        columns = _split_columns(boxes)
        if len(columns) == 1:  # more rows make no gutter
            break
        if count > 1 and _are_drawn_apart(columns) and not _are_labels_and_values(columns):
            best = (count, columns)
    return best


def _split_columns(boxes: Sequence[_Box]) -> list[list[_Box]]:
    """The boxes between the gutters from the left. A picture is in the column that is nearest to its middle."""
    columns: list[list[_Box]] = []
    edges: list[int] = []
    for box in sorted(filter(lambda box: box.is_text, boxes), key=lambda box: box.left):
        if not columns or box.left < edges[-1] - _ROW_HEIGHT:
            columns = columns or [[]]
            edges = edges or [box.right]
        else:
            columns.append([])
            edges.append(box.right)
        columns[-1].append(box)
        edges[-1] = max(edges[-1], box.right)
    for box in boxes:
        if columns and not box.is_text:
            middle = (box.left + box.right) // 2
            nearest = min(
                range(len(columns)), key=lambda place: abs((columns[place][0].left + edges[place]) // 2 - middle)
            )
            columns[nearest].append(box)
    return columns


def _are_drawn_apart(columns: Sequence[Sequence[_Box]]) -> bool:
    """Whether each column was drawn as a whole: its texts follow each other in the file. Single boxes say nothing."""
    places = sorted((box.place, number) for number, column in enumerate(columns) for box in column if box.is_text)
    changes = sum(number != following for (_, number), (_, following) in pairwise(places))
    heights = Counter(number for _, number in places)
    return changes == len(columns) - 1 and sum(height > 1 for height in heights.values()) > 1


def _are_labels_and_values(columns: Sequence[Sequence[_Box]]) -> bool:
    """Whether a column has figures alone, each beside a box of the columns with words."""
    texts = [[box for box in column if box.is_text] for column in columns]
    values = [column for column in texts if all(box.is_figure for box in column)]
    tops = [box.top for column in texts if column not in values for box in column]
    return bool(tops) and any(
        all(any(abs(box.top - top) <= _ROW_HEIGHT for top in tops) for box in column) for column in values
    )
