"""Turned text of a PDF page: the heads of narrow columns, stamps, notes at the side. liteparse reads it, but leaves it
out of its blocks."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liteparse import AnnotationRect, LayoutBlock, LayoutCell, ParsedPage, TextItem

_TURNED = 5.0
"""Degrees; scans are skewed by less."""
_ABOVE = 30.0
"""Points between the head of a column and its table."""
_TALLEST = 300.0
"""Points from the table to the last word of a head."""
_BESIDE = 12.0
"""Points that a head may stand beside its table."""
_WORD_GAP = 0.12
"""Share of a line's height from which a gap parts words."""
_GAP = 1.0
"""Line heights between turned lines of one note."""


def list_turned_items(page: "ParsedPage") -> list["TextItem"]:
    """The turned texts that are in none of the page's blocks."""
    turned = [item for item in page.text_items if get_turn(item) and item.text.strip()]
    if not turned:
        return []
    blocks = [block for block in page.blocks or () if not is_upside_down(block, page)]
    words = Counter(word for block in blocks for text in _iter_texts(block) for word in _split(text))
    words.subtract(word for item in page.text_items if not get_turn(item) for word in _split(item.text))
    left = []
    for item in turned:
        own = Counter(_split(item.text))
        if all(words[word] >= count for word, count in own.items()):
            words -= own
        else:
            left.append(item)
    return left


def is_upside_down(block: "LayoutBlock", page: "ParsedPage") -> bool:
    """Whether a block is of text turned by 180 degrees only: its words are in no order."""
    box = block.bbox
    if box is None or not any(get_turn(item) == 2 for item in page.text_items):
        return False
    inside = [
        item
        for item in page.text_items
        if box.x <= item.x + item.width / 2 <= box.x + box.width
        and box.y <= item.y + item.height / 2 <= box.y + box.height
    ]
    return bool(inside) and all(get_turn(item) == 2 for item in inside)


def split_items(items: Iterable["TextItem"]) -> list["TextItem"]:
    """The words of turned texts with their places, where liteparse was asked for them: it gives those of texts
    turned by 180 degrees out of order, and parts words of others. Slanting texts stay whole."""
    pieces: list[TextItem] = []
    for item in items:
        slant = item.rotation % 90
        if item.words and min(slant, 90 - slant) <= _TURNED:
            pieces += [
                replace(item, text=word.text, x=word.x, y=word.y, width=word.width, height=word.height, words=[])
                for word in item.words
            ]
        else:
            pieces.append(item)
    return pieces


def take_column_heads(block: "LayoutBlock", items: list["TextItem"]) -> dict[int, str]:
    """The turned heads above the columns of a table by their index, and takes them from `items`; empty unless
    there are several."""
    cells = _list_column_cells(block)
    if block.bbox is None or not cells:
        return {}
    left, right = block.bbox.x - _BESIDE, block.bbox.x + block.bbox.width + _BESIDE
    heads: dict[int, list[TextItem]] = {}
    for item in items:
        middle = item.x + item.width / 2
        if left <= middle <= right and -item.height / 2 < _measure_gap(block.bbox, item) < _TALLEST:
            column = min(cells, key=lambda index: abs(cells[index] - middle))
            heads.setdefault(column, []).append(item)
    top = block.bbox
    heads = {column: head for column, head in heads.items() if min(_measure_gap(top, one) for one in head) < _ABOVE}
    if len(heads) < 2:
        return {}
    head_ids = {id(item) for head in heads.values() for item in head}
    items[:] = [item for item in items if id(item) not in head_ids]
    return {column: join_items(sorted(head, key=_by_place)) for column, head in heads.items()}


def _measure_gap(table: "AnnotationRect", item: "TextItem") -> float:
    return float(table.y - (item.y + item.height))


def iter_notes(items: Sequence["TextItem"]) -> Iterator[list["TextItem"]]:
    """Yields the turned texts that belong together, in the order in which they are read."""
    groups: list[list[TextItem]] = []
    for item in sorted(items, key=_by_place):
        group = groups[-1] if groups else None
        if group is not None and get_turn(group[-1]) == get_turn(item) and _is_near(group[-1], item):
            group.append(item)
        else:
            groups.append([item])
    yield from groups


def get_turn(item: "TextItem") -> int:
    """By how many quarters a text is turned; 0 for upright text."""
    angle = item.rotation % 360
    return 0 if min(angle, 360 - angle) <= _TURNED else max(1, round(angle / 90))


def _by_place(item: "TextItem") -> tuple[int, float, float]:
    """Lines of text turned to the left follow each other to the right, those turned to the right to the left."""
    turn = get_turn(item)
    if turn == 2:
        return (turn, -round((item.y + item.height) / max(item.height, 1)), -item.x)
    width = max(item.width, 1)
    line = round(item.x / width)
    return (turn, line, -item.y) if turn == 3 else (turn, -line, item.y)


def join_items(items: Sequence["TextItem"]) -> str:
    """The text of items that follow each other; pieces of one word are not parted."""
    text = ""
    for before, item in zip([None, *items], items, strict=False):
        is_part = before is not None and _measure_step(before, item) < _WORD_GAP * _get_size(item)
        space = "" if is_part or not text or text.endswith(" ") else " "
        text += space + item.text
    return " ".join(text.split())


def _measure_step(before: "TextItem", item: "TextItem") -> float:
    """The points between the end of one text and the start of the next, along their direction; infinity for
    one of another line."""
    turn = get_turn(item)
    if turn == 2:
        across, step = abs(before.y - item.y), before.x - (item.x + item.width)
    else:
        across = abs(before.x - item.x)
        step = before.y - (item.y + item.height) if turn == 3 else item.y - (before.y + before.height)
    return math.inf if across > _get_size(item) / 2 else step


def _get_size(item: "TextItem") -> float:
    return float(item.height if get_turn(item) == 2 else item.width)


def _is_near(one: "TextItem", other: "TextItem") -> bool:
    size = min(one.width, one.height, other.width, other.height)
    distance = max(abs(one.x - other.x) - min(one.width, other.width), 0)
    return bool(distance <= (1 + _GAP) * size)


def _list_column_cells(block: "LayoutBlock") -> dict[int, float]:
    """The middle of each column by its widest filled cells."""
    places: dict[int, list[float]] = {}
    rows: Iterable[Sequence[LayoutCell]] = [*([block.header] if block.header else []), *(block.rows or [])]
    for row in rows:
        for index, cell in enumerate(row):
            if cell.bbox is not None and cell.text.strip():
                places.setdefault(index, []).append(cell.bbox.x + cell.bbox.width / 2)
    return {index: sum(middles) / len(middles) for index, middles in places.items()}


def _iter_texts(block: "LayoutBlock") -> Iterator[str]:
    yield block.text or ""
    yield from block.lines or ()
    for row in [*([block.header] if block.header else []), *(block.rows or [])]:
        yield from (cell.text for cell in row)


def _split(text: str) -> list[str]:
    return re.findall(r"\w+", text)
