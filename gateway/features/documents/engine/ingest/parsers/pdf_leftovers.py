"""Upright text of a PDF's page that liteparse reads and leaves out of its blocks, such as lines that a watermark
crosses. A line that is the same on several pages is read once."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gateway.features.documents.engine.ingest.parsers.draft import Block, Box
from gateway.features.documents.engine.ingest.parsers.pdf_turned import get_turn

if TYPE_CHECKING:
    from liteparse import ParsedPage, TextItem

_LETTER = re.compile(r"[^\W_]")
_MIN_LETTERS = 2
"""A shorter text is in every page's text somewhere."""
_STEP = 0.5
"""Share of a line's height within which texts stand on one line."""


class Leftovers:
    """Adds such lines to the blocks of a file's pages, which come in order."""

    def __init__(self) -> None:
        self._read_lines: set[str] = set()

    def add(self, page: "ParsedPage", blocks: Sequence[Block]) -> list[Block]:
        """The blocks of a page with the lines that are in none of them and were on none of the pages before."""
        text = _join_letters(" ".join(block.text for block in blocks))
        items = [one for one in page.text_items if not get_turn(one) and _is_missing(_join_letters(one.text), text)]
        whole = list(blocks)
        for line in _iter_lines(items):
            block = _make_block(line, page.page_num)
            if block.text not in self._read_lines:
                self._read_lines.add(block.text)
                whole.insert(_find_place(whole, block), block)
        return whole


def _join_letters(text: str) -> str:
    """The letters and digits alone: spaces and hyphens are not the same in lines and in blocks."""
    return "".join(_LETTER.findall(text)).casefold()


def _is_missing(letters: str, text: str) -> bool:
    return len(letters) >= _MIN_LETTERS and letters not in text


def _iter_lines(items: Sequence["TextItem"]) -> "Iterator[list[TextItem]]":
    """Yields the texts of each line from left to right."""
    line: list[TextItem] = []
    for item in sorted(items, key=lambda one: (one.y, one.x)):
        if line and item.y - line[0].y > _STEP * max(line[0].height, 1):
            yield sorted(line, key=lambda one: one.x)
            line = []
        line.append(item)
    if line:
        yield sorted(line, key=lambda one: one.x)


def _make_block(line: Sequence["TextItem"], page: int) -> Block:
    left, top = min(one.x for one in line), min(one.y for one in line)
    right, bottom = max(one.x + one.width for one in line), max(one.y + one.height for one in line)
    bbox: Box = (round(left, 2), round(top, 2), round(right, 2), round(bottom, 2))
    return Block(" ".join(" ".join(one.text for one in line).split()), "text", page, bbox)


def _find_place(blocks: Sequence[Block], line: Block) -> int:
    """Where a line belongs among the blocks: before the first one that begins below it."""
    top = line.bbox[1] if line.bbox else 0
    return next((at for at, block in enumerate(blocks) if block.bbox and block.bbox[1] > top), len(blocks))
