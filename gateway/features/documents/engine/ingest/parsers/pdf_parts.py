"""Parts of a PDF's page: blocks as liteparse has read them, and tables and texts in place of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gateway.features.documents.engine.ingest.parsers.draft import Box
from gateway.features.documents.engine.ingest.parsers.pdf_lines import Line
from gateway.features.documents.engine.ingest.parsers.pdf_merged import MergedTable

if TYPE_CHECKING:
    from liteparse import LayoutBlock


class AlignedPart(NamedTuple):
    """A table, or the text above or below it in the same block, if there are no rows. Of a `merged` table there is the
    text that it writes."""

    rows: Sequence[Sequence[str]]
    text: str
    bbox: Box
    merged: MergedTable | None = None


Part: TypeAlias = "LayoutBlock | AlignedPart"


def list_region(lines: Sequence[Line], blocks: Sequence["LayoutBlock"]) -> list[Line]:
    """The lines beside the blocks, from the top of the highest to the bottom of the lowest."""
    boxes = [one.bbox for one in blocks if one.bbox is not None]
    begin, end = min(box.y for box in boxes), max(box.y + box.height for box in boxes)
    return [line for line in lines if begin - 1 <= (line.top + line.bottom) / 2 <= end + 1]


def list_merged(parts: Iterable[Part]) -> dict[Box, MergedTable]:
    """The tables with merged cells, by their boxes."""
    return {part.bbox: part.merged for part in parts if isinstance(part, AlignedPart) and part.merged is not None}


def touches(part: Part, box: Box) -> bool:
    """Whether a part has a place in common with the box."""
    if isinstance(part, AlignedPart):
        return _overlap(part.bbox, box)
    own = part.bbox
    return own is not None and _overlap((own.x, own.y, own.x + own.width, own.y + own.height), box)


def is_above(part: Part, level: float) -> bool:
    """Whether a part ends above a level of the page; so does one that has no place."""
    box = part.bbox
    bottom = box[3] if isinstance(box, tuple) else box.y + box.height if box is not None else float("-inf")
    return bottom <= level


def is_below(part: Part, level: float) -> bool:
    """Whether a part begins below a level of the page."""
    box = part.bbox
    return box is not None and (box[1] if isinstance(box, tuple) else box.y) >= level


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def iter_texts(blocks: Iterable["LayoutBlock"]) -> Iterator[str]:
    """Yields the texts of the blocks and of their cells."""
    for block in blocks:
        yield block.text or ""
        for row in [*([block.header] if block.header else []), *(block.rows or [])]:
            yield from (cell.text for cell in row)


def count_letters(texts: Iterable[str]) -> Counter[str]:
    """Counts letters and digits: hyphens and marks of emphasis are not the same in blocks and texts."""
    return Counter(letter for text in texts for letter in text if letter.isalnum())


def iter_paragraphs(lines: Sequence[Line]) -> Iterator[AlignedPart]:
    """Yields the paragraphs of lines, which larger gaps part."""
    group: list[Line] = []
    for line in lines:
        if group and line.top - group[-1].bottom > line.height:
            yield _make_paragraph(group)
            group = []
        group.append(line)
    if group:
        yield _make_paragraph(group)


def _make_paragraph(lines: Sequence[Line]) -> AlignedPart:
    left, right = min(line.cells[0].left for line in lines), max(line.cells[-1].right for line in lines)
    text = " ".join(cell.text for line in lines for cell in line.cells)
    return AlignedPart((), text, (round(left, 2), round(lines[0].top, 2), round(right, 2), round(lines[-1].bottom, 2)))
