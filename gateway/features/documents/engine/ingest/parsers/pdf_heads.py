"""Heads and feet of a PDF's pages: a line that says the same as on the pages before is read once, as is the counter of
the pages ("2 / 4", "Page 2 of 4", "The Author      14").

A line with words that differs in its number alone is the page's own: "Lot 2", "Amount due 3".
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent.answers.derived.labels import PAGE_WORDS
from gateway.features.documents.engine.ingest.parsers.draft import Block, Box
from gateway.features.documents.engine.ingest.parsers.pdf_turned import get_turn

if TYPE_CHECKING:
    from liteparse import ParsedPage, TextItem

_EDGE = 0.12
"""Share of a page's height at its top and at its foot in which heads and feet are."""
_NEAR = 2
"""Pages back on which the same line makes this one a repetition: left and right pages may have heads of their own."""
_MIN_PAGES = 3
"""Pages on which a counter is as far from the page's number."""
_MIN_PAGES_OF_HUNDREDS = 6
"""The same for a figure of three digits without a word, which may be an amount."""
_LARGE = 1.15
"""Size of a heading as a multiple of the page's commonest size."""
_GAP = 1.5
"""Gap that sets a figure apart from the words of its line, in sizes of its letters."""
_HUNDRED = 100
_BLANK = "\0"
_TOTAL = r"(?:\s*/\s*|\s+[^\W\d_]{2,4}\s+)(?P<total>\d{1,3})"
_WORDED = re.compile(
    rf"(?<!\w)(?:{'|'.join(PAGE_WORDS.split())}|[ps]\.|sid\.)\s*(?P<figure>\d{{1,3}})(?:{_TOTAL})?(?![.,:/-]?\w)",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"([-\u2013\u2014\u00b7\u2022~]\s*)?(?P<figure>\d{{1,3}})(?:{_TOTAL})?(?(1)\s*[-\u2013\u2014\u00b7\u2022~])"
)


class _Line(NamedTuple):
    """A block at a page's edge. `same` is its text without the figure that may count the pages, `offset` how far that
    is from the page's number, `needed` on how many pages it must be, `end` the only number of pages that its total
    allows (0 for any)."""

    top: int
    same: str
    offset: int = 0
    needed: int = 0
    end: int = 0


class RunningHeads:
    """Leaves out the repeated heads and feet of a file's pages, once it knows all of them."""

    def __init__(self) -> None:
        self._lines: dict[Block, _Line] = {}
        self._pages: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
        self._last_pages: dict[tuple[str, int], int] = {}
        self._count = 0

    def add(self, blocks: Sequence[Block], page: "ParsedPage") -> list[Block]:
        """Takes the blocks of a page; these, where headings at its foot are text."""
        self._count = max(self._count, page.page_num)
        items = [item for item in page.text_items if not get_turn(item)]
        sizes: Counter[float] = Counter()
        for item in items:
            sizes[round(item.font_size or 0, 1)] += len(item.text)
        limit = _LARGE * max(sizes, key=sizes.__getitem__, default=0.0)
        for block in blocks:
            if block.bbox is not None and block.layout in ("text", "header") and _is_at_edge(block.bbox, page.height):
                inside = [item for item in items if block.layout == "text" and _is_in(item, block.bbox)]
                is_usual = all((item.font_size or 0) <= limit for item in inside)
                line = _read_line(block.text, inside if is_usual else [], page.page_num, round(block.bbox[1]))
                self._lines[_demote(block, page.height)] = line
                if line.needed:
                    self._pages[line.same, line.offset].add(page.page_num)
        return [_demote(block, page.height) for block in blocks]

    def leave_out(self, blocks: Sequence[Block], page: int) -> list[Block]:
        """The blocks of a page, which come in order, without what they repeat; all of them if they are nothing else."""
        return [block for block in blocks if not self._is_repeated(block, page)] or list(blocks)

    def _is_repeated(self, block: Block, page: int) -> bool:
        line = self._lines.get(block)
        if line is None:
            return False
        pages = self._pages.get((line.same, line.offset), set())
        is_counted = 0 < line.needed <= len(pages) and line.end in (0, self._count)
        key = (line.same if is_counted else block.text, line.top)
        last = self._last_pages.get(key)
        self._last_pages[key] = page
        return last is not None and (is_counted or page - last <= _NEAR)


def _is_at_edge(box: Box, height: float) -> bool:
    return box[3] <= _EDGE * height or box[1] >= (1 - _EDGE) * height


def _is_in(item: "TextItem", box: Box) -> bool:
    left, top, right, bottom = box
    return bool(left - 1 <= item.x <= right and top <= item.y + item.height / 2 <= bottom)


def _read_line(text: str, items: Sequence["TextItem"], page: int, top: int) -> _Line:
    """A line with its counter: a figure behind a word for a page, or set apart at the line's start or end."""
    if not items:
        return _Line(top, text)
    for match in _WORDED.finditer(text):
        if match["total"] is None or int(match["total"]) >= int(match["figure"]):
            same = text[: match.start("figure")] + _BLANK + text[match.end("figure") :]
            return _Line(top, same, int(match["figure"]) - page, _MIN_PAGES)
    pieces = _list_pieces(items)
    for piece, start in ((pieces[0], 0), (pieces[-1], len(text) - len(pieces[-1]))):
        bare = _BARE.fullmatch(piece)
        if bare is None or text[max(start, 0) :][: len(piece)] != piece:
            continue
        figure, total = int(bare["figure"]), int(bare["total"] or 0)
        if total and total < figure:
            continue
        same = text[: start + bare.start("figure")] + _BLANK + text[start + bare.end("figure") :]
        end = total - figure + page if total else 0
        return _Line(top, same, figure - page, _MIN_PAGES if figure < _HUNDRED else _MIN_PAGES_OF_HUNDREDS, end)
    return _Line(top, text)


def _list_pieces(items: Sequence["TextItem"]) -> list[str]:
    """The texts of a line that gaps or bars part, from the left; all as one if there are several lines."""
    if max(item.y for item in items) - min(item.y for item in items) > max(item.height for item in items) / 2:
        return [" ".join(item.text for item in items)]
    line = ""
    end = items[0].x
    for item in sorted(items, key=lambda one: one.x):
        line += ("|" if item.x - end > _GAP * (item.font_size or item.height) else " ") + item.text
        end = item.x + item.width
    return [" ".join(piece.split()) for piece in re.split(r"\||\s{3,}", line) if piece.strip()] or [""]


def _demote(block: Block, height: float) -> Block:
    """Makes text of a heading at a page's foot: what follows it is on another page."""
    if block.layout == "header" and block.bbox is not None and block.bbox[1] >= (1 - _EDGE) * height:
        return block._replace(layout="text", level=None)
    return block
