"""Heads and feet of a PDF's pages: a line that says the same as on the pages before is read once, as is a counter.

A line with words that differs in its number alone is the page's own: "Lot 2", "Amount due 3".
"""

import re
from collections.abc import Sequence

from gateway.features.documents.engine.ingest.parsers.draft import Block

_EDGE = 0.12
"""Share of a page's height at its top and at its foot in which heads and feet are."""
_NEAR = 2
"""Pages back on which the same line makes this one a repetition: left and right pages may have heads of their own."""
_COUNTER = re.compile(r"\W*(\d{1,6})(?:\W+\d{1,6})?\W*")

_Key = tuple[str | int, float]
"""A line's text, or how far a counter is from the page's number, and the line's height on the page."""


class RunningHeads:
    """Leaves out the repeated heads and feet of a file's pages, which come in order."""

    def __init__(self) -> None:
        self._last_pages: dict[_Key, int] = {}

    def leave_out(self, blocks: Sequence[Block], page: int, height: float) -> list[Block]:
        """The blocks of a page without what they repeat; all of them if they are nothing else."""
        own: list[Block] = []
        for block in blocks:
            key = _make_key(block, page, height)
            if key is None or not self._is_repeated(key, page):
                own.append(_demote(block, height))
            if key is not None:
                self._last_pages[key] = page
        return own or list(blocks)

    def _is_repeated(self, key: _Key, page: int) -> bool:
        last = self._last_pages.get(key)
        return last is not None and (isinstance(key[0], int) or page - last <= _NEAR)


def _make_key(block: Block, page: int, height: float) -> _Key | None:
    """What a block at a page's edge says, and where; None for any other block."""
    if block.bbox is None or block.layout not in ("text", "header"):
        return None
    _, top, _, bottom = block.bbox
    if bottom > _EDGE * height and top < (1 - _EDGE) * height:
        return None
    counter = _COUNTER.fullmatch(block.text)
    return block.text if counter is None else int(counter[1]) - page, round(top)


def _demote(block: Block, height: float) -> Block:
    """Makes text of a heading at a page's foot: what follows it is on another page."""
    if block.layout == "header" and block.bbox is not None and block.bbox[1] >= (1 - _EDGE) * height:
        return block._replace(layout="text", level=None)
    return block
